package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/lockfaultd/lockfaultd/internal/alarm"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// TestC002ByteIdentity holds a recorder to each side of lockfaultd while clients do
// what clients do, half-closes and resets among it, without rules and with
// rules that match and do nothing.
func TestC002ByteIdentity(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "lockfaultd")
	if err := buildProduct(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	redis, postgres := testbed.Redis(t).Addr(), testbed.Postgres(t).Addr()
	for _, w := range []way{plain, armed} {
		t.Run("redis "+string(w), func(t *testing.T) { identical(t, w, binary, "redis", redis, redisClients()) })
		t.Run("postgres "+string(w), func(t *testing.T) { identical(t, w, binary, "postgres", postgres, postgresClients()) })
	}
}

// A client talks to a server through one address and may ask another, which
// leads straight to it, what it should have heard.
type client func(t *testing.T, through, straight string)

func identical(t *testing.T, w way, binary, protocol, server string, clients []client) {
	c, err := w.open(t.Context(), binary, protocol, server, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, run := range clients {
		all.Go(func() { run(t, c.addr, server) })
	}
	all.Wait()
	saw, err := c.close()
	if err != nil {
		t.Error(err)
	}
	for _, d := range saw.report.Different {
		t.Error(d)
	}
	if saw.open {
		t.Error("connections stayed open")
	}
	for _, c := range saw.complaints {
		if c.kind != alarm.Desync { // some clients send rubbish
			t.Errorf("%s: %s", c.kind, c.line)
		}
	}
	// Each protocol has one client that resets its connection, and Redis some that
	// it refuses.
	if r := saw.report; r.Conns < len(clients) || r.Equal < r.Conns-1-refusals {
		t.Errorf("got %+v, want nearly all of at least %d connections equal to their end", r, len(clients))
	}
	if w == armed && (saw.ops == 0 || saw.injections == 0) {
		t.Errorf("%d ops and %d injections: the rules never matched", saw.ops, saw.injections)
	}
}

func open(t *testing.T, address string) *net.TCPConn {
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return nil
	}
	_ = c.SetDeadline(time.Now().Add(60 * time.Second)) // a TCP connection has deadlines
	return c.(*net.TCPConn)
}

// converse sends bytes in pieces, ends its stream and returns all that comes back.
func converse(t *testing.T, address string, say []byte, piece int) []byte {
	c := open(t, address)
	if c == nil {
		return nil
	}
	defer c.Close()
	go func() {
		for rest := say; len(rest) > 0; rest = rest[min(piece, len(rest)):] {
			if _, err := c.Write(rest[:min(piece, len(rest))]); err != nil {
				return // the server has said why
			}
		}
		_ = c.CloseWrite() // as above
	}()
	heard, err := io.ReadAll(c)
	if err != nil {
		t.Errorf("read: %v after %d bytes", err, len(heard))
	}
	return heard
}

func resp(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func redisClients() []client {
	same := func(say string, piece int) client {
		return func(t *testing.T, through, straight string) {
			want := converse(t, straight, []byte(say), len(say))
			if got := converse(t, through, []byte(say), piece); !bytes.Equal(got, want) || len(want) == 0 {
				t.Errorf("%.40q: %d bytes in answer, want %d as directly", say, len(got), len(want))
			}
		}
	}
	var counter, values strings.Builder
	counter.WriteString(resp("SET", "c002:n", "0"))
	for range 2000 {
		counter.WriteString(resp("INCR", "c002:n"))
	}
	for i, size := range []int{0, 1, 4096, 70_000, 3 << 20} {
		values.WriteString(resp("SET", fmt.Sprint("c002:v", i), strings.Repeat("v", size)) + resp("GET", fmt.Sprint("c002:v", i)))
	}
	return []client{
		same(counter.String(), 1<<20),
		same(values.String(), 30_000),
		same("PING\r\n\r\n*0\r\nset c002:i 'a b'\nGET\tc002:i\r\n"+resp("EXISTS", "c002:i")+"*-1\r\nping\n", 1),
		same(resp("MULTI")+resp("PING")+resp("EXEC")+resp("GET")+resp("NOSUCH", "x")+resp("PING")+"*1\r\n$-5\r\nPING\r\n"+resp("PING"), 7),
		same(resp("SUBSCRIBE", "c002:a", "c002:b")+resp("UNSUBSCRIBE")+resp("PING")+resp("QUIT"), 5),
		same(resp("PING")+strings.TrimSuffix(resp("SET", "c002:cut", "token", "NX", "PX", "10000"), "000\r\n"), 9),
		pushes, locks, refused, impatient(resp("SET", "c002:big", strings.Repeat("b", 8<<20)) + resp("GET", "c002:big")),
	}
}

func pushes(t *testing.T, through, _ string) {
	say := resp("HELLO", "3") + resp("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "c002:p") + resp("SUBSCRIBE", "c002:chan") +
		resp("PUBLISH", "c002:chan", "news") + resp("SET", "c002:p", "1") + resp("HELLO", "2") + resp("RESET") + resp("PING")
	if got := converse(t, through, []byte(say), 11); !bytes.HasSuffix(got, []byte("+RESET\r\n+PONG\r\n")) || !bytes.Contains(got, []byte("news")) {
		t.Errorf("pushes: got %q", got)
	}
}

// refusals is how many times refused asks.
const refusals = 20

// refused goes on sending when the server has said why it listens no longer.
func refused(t *testing.T, through, _ string) {
	for range refusals {
		c := open(t, through)
		if c == nil {
			return
		}
		_, err := io.WriteString(c, "*\x00")
		for err == nil {
			_, err = c.Write(make([]byte, 1024))
		}
		said := make([]byte, 100)
		n, _ := c.Read(said) // what was said tells
		if !bytes.Contains(said[:n], []byte("Protocol error")) {
			t.Errorf("refused with %q, want the reason", said[:n])
		}
		c.Close()
	}
}

// locks takes, renews and releases what the armed rules are about.
func locks(t *testing.T, through, _ string) {
	release := "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	var say strings.Builder
	for i := range 50 {
		token := fmt.Sprint("token", i)
		say.WriteString(resp("SET", "c002:lock", token, "NX", "PX", "10000") + resp("PEXPIRE", "c002:lock", "20000") + resp("EVAL", release, "1", "c002:lock", token))
	}
	if got := converse(t, through, []byte(say.String()), 50); string(got) != strings.Repeat("+OK\r\n:1\r\n:1\r\n", 50) {
		t.Errorf("locks: got %q", got)
	}
}

// impatient resets its connection in the middle of a long answer.
func impatient(say string) client {
	return func(t *testing.T, through, _ string) {
		c := open(t, through)
		if c == nil {
			return
		}
		defer c.Close()
		if _, err := io.WriteString(c, say); err != nil {
			t.Error(err)
		}
		if _, err := io.CopyN(io.Discard, c, 100_000); err != nil {
			t.Error(err)
		}
		_ = c.SetLinger(0) // the connection is ours
	}
}

func encode(t *testing.T, messages ...pgproto3.FrontendMessage) []byte {
	var out []byte
	for _, m := range messages {
		var err error
		if out, err = m.Encode(out); err != nil {
			t.Error(err)
		}
	}
	return out
}

var startup = &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "postgres", "database": "postgres"}}

func postgresClients() []client {
	return []client{halfClosing(1 << 20), halfClosing(3), copying, usual, cancelled, func(t *testing.T, through, straight string) {
		long := encode(t, startup, &pgproto3.Query{String: "select repeat('x', 1000) from generate_series(1, 10000)"})
		impatient(string(long))(t, through, straight)
	}}
}

// halfClosing sends everything at once, ends its stream without a Terminate
// and must hear what it hears directly, once it is let in.
func halfClosing(piece int) client {
	return func(t *testing.T, through, straight string) {
		say := encode(t, startup,
			&pgproto3.Query{String: "create temp table c002 (id int primary key, v text); insert into c002 values (1, 'a'); select id + 0 from c002; select 1/0; select 2"},
			&pgproto3.Query{String: "create temp table c002 (id int primary key, v text); insert into c002 values (1, 'a')"},
			&pgproto3.Parse{Name: "s", Query: "update c002 set v = $1 where id = 1 returning v || ''"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Flush{},
			&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("b")}}, &pgproto3.Execute{}, &pgproto3.Sync{},
			&pgproto3.Bind{PreparedStatement: "none"}, &pgproto3.Execute{}, &pgproto3.Query{String: "select 3"}, &pgproto3.Sync{}, &pgproto3.Sync{},
			&pgproto3.Query{String: "begin"}, &pgproto3.Query{String: "select pg_advisory_xact_lock(2)"}, &pgproto3.Query{String: "update c002 set v = 'c'"}, &pgproto3.Query{String: "commit"},
			&pgproto3.Query{String: ""}, &pgproto3.Query{String: "select repeat('long', 100000)"},
			&pgproto3.Query{String: "copy c002 from stdin"}, &pgproto3.CopyData{Data: []byte("2\tx\n3\t")}, &pgproto3.CopyData{Data: []byte("y\n")}, &pgproto3.CopyDone{},
			&pgproto3.Query{String: "copy c002 to stdout"},
		)
		want, got := letIn(t, converse(t, straight, say, len(say))), letIn(t, converse(t, through, say, piece))
		if !bytes.Equal(got, want) {
			t.Errorf("got %d bytes after the first ReadyForQuery, want %d as directly", len(got), len(want))
		}
	}
}

// letIn cuts off what differs from connection to connection.
func letIn(t *testing.T, answer []byte) []byte {
	_, rest, found := bytes.Cut(answer, []byte("Z\x00\x00\x00\x05I"))
	if !found || len(rest) == 0 {
		t.Errorf("no ReadyForQuery, or nothing behind it: %.200q", answer)
	}
	return rest
}

func connect(t *testing.T, address string) *pgx.Conn {
	conn, err := pgx.Connect(t.Context(), "postgres://postgres@"+address+"/postgres?sslmode=disable")
	if err != nil {
		t.Error(err)
		return nil
	}
	return conn
}

// copying moves more than any buffer holds, in both directions.
func copying(t *testing.T, through, _ string) {
	conn := connect(t, through)
	if conn == nil {
		return
	}
	defer conn.Close(t.Context())
	ctx := t.Context()
	if _, err := conn.Exec(ctx, "create temp table c002 (id int, v text)"); err != nil {
		t.Error(err)
	}
	rows := make([][]any, 100_000)
	for i := range rows {
		rows[i] = []any{i, strings.Repeat("r", i%100)}
	}
	n, err := conn.CopyFrom(ctx, pgx.Identifier{"c002"}, []string{"id", "v"}, pgx.CopyFromRows(rows))
	if err != nil || n != int64(len(rows)) {
		t.Errorf("copied in %d rows, %v", n, err)
	}
	var out bytes.Buffer
	tag, err := conn.PgConn().CopyTo(ctx, &out, "copy c002 to stdout")
	if err != nil || tag.RowsAffected() != int64(len(rows)) {
		t.Errorf("copied out %v, %v", tag, err)
	}
}

// usual is a pgx that prepares, batches, and is notified.
func usual(t *testing.T, through, _ string) {
	conn := connect(t, through)
	if conn == nil {
		return
	}
	ctx := t.Context()
	defer conn.Close(ctx)
	batch := &pgx.Batch{}
	for i := range 500 {
		batch.Queue("select $1::int + 1", i)
	}
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		t.Error(err)
	}
	for range 20 {
		if _, err := conn.Exec(ctx, "listen c002"); err != nil {
			t.Error(err)
		}
		if _, err := conn.Exec(ctx, "select pg_notify('c002', 'hear')"); err != nil {
			t.Error(err)
		}
		if _, err := conn.WaitForNotification(ctx); err != nil {
			t.Error(err)
		}
	}
}

// cancelled has its query cancelled, over a connection of its own.
func cancelled(t *testing.T, through, straight string) {
	conn, other := connect(t, through), connect(t, straight)
	if conn == nil || other == nil {
		return
	}
	defer conn.Close(t.Context())
	defer other.Close(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "select pg_sleep(50)")
		done <- err
	}()
	pid := conn.PgConn().PID()
	for running := false; !running; {
		if err := other.QueryRow(t.Context(), "select wait_event = 'PgSleep' is true from pg_stat_activity where pid = $1", pid).Scan(&running); err != nil {
			t.Error(err)
			return
		}
	}
	if err := conn.PgConn().CancelRequest(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("the query ended with %v, want it cancelled", err)
	}
}
