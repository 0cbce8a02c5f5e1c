package proxy_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// A part is what one end of a connection sends.
type part struct {
	client bool
	text   string
}

// A passage is what came of a conversation.
type passage struct {
	up, down string // what the server and the client received
	history  string
	desyncs  int64
}

// converse has both ends of a connection of one protocol send their parts in
// turn, each in the pieces that cut makes of it and that arrive one by one.
func converse(t *testing.T, where string, rules []string, parts []part, cut func(string) []string) passage {
	t.Helper()
	var p passage
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &stage{t: t, ctx: ctx, start: time.Now(), ends: map[string]*end{}, owners: map[string]int{}, rules: proxy.RulesOf(t, rules...)}
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
		client, upstream := s.pair(where)
		var ends sync.WaitGroup
		ends.Go(func() { p.down = all(client) })
		ends.Go(func() { p.up = all(upstream) })
		for _, part := range parts {
			to := upstream
			if part.client {
				to = client
			}
			for _, piece := range cut(part.text) {
				if _, err := to.Write([]byte(piece)); err != nil {
					t.Errorf("write %q: %v", piece, err)
				}
				synctest.Wait()
			}
			time.Sleep(10 * time.Second) // nobody answers what is still held
		}
		_ = client.(*testbed.Conn).CloseWrite()
		synctest.Wait()
		_ = upstream.(*testbed.Conn).CloseWrite()
		ends.Wait()
		client.Close()
		upstream.Close()
		synctest.Wait()
		cancel()
		s.wait.Wait()
		if err := s.record.Close(); err != nil {
			t.Error(err)
		}
		// Behind something that is held nothing is read: when it was is another matter then.
		p.history = whenRead.ReplaceAllString(strings.Join(inOrder(s.file.String()), "\n"), "")
		p.desyncs = s.server.Desyncs()
	})
	return p
}

var whenRead = regexp.MustCompile(`"[ar]":\d+,?`)

// pair connects, and returns both ends.
func (s *stage) pair(where string) (client, upstream net.Conn) {
	ln, err := s.net.Listen(where + "-server")
	if err != nil {
		s.t.Fatal(err)
	}
	defer ln.Close()
	if client, err = s.dial(where, "100"); err != nil {
		s.t.Fatal(err)
	}
	if upstream, err = ln.Accept(); err != nil {
		s.t.Fatal(err)
	}
	return client, upstream
}

func all(c net.Conn) string {
	var out strings.Builder
	buf := make([]byte, 1<<16)
	for {
		n, err := c.Read(buf)
		out.Write(buf[:n])
		if err != nil {
			return out.String()
		}
	}
}

// sent concatenates what one end sends.
func sent(parts []part, client bool) string {
	var out strings.Builder
	for _, p := range parts {
		if p.client == client {
			out.WriteString(p.text)
		}
	}
	return out.String()
}

func encoded(t *testing.T, list ...pgproto3.Message) string {
	t.Helper()
	var out []byte
	for _, m := range list {
		var err error
		if out, err = m.Encode(out); err != nil {
			t.Fatal(err)
		}
	}
	return string(out)
}

func redisTalk() []part {
	words := func(text string) string { return multibulk(strings.Fields(text)) }
	return []part{
		{true, words("SET job tokA NX PX 500") + words("GET x") + "PING\r\n" + words("SET job tokB NX PX 500") + words("SUBSCRIBE news")},
		{false, "+OK\r\n$-1\r\n+PONG\r\n$-1\r\n*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n"},
		{false, "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n"},
		{true, words("UNSUBSCRIBE news") + words("MULTI") + words("DEL job") + words("INCR fence") + words("EXEC")},
		{false, "*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:41\r\n"},
	}
}

func pgTalk(t *testing.T) []part {
	const update = "UPDATE counter SET value = $1 WHERE id = $2"
	return []part{
		{true, encoded(t, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersionNumber, Parameters: map[string]string{"user": "u"}})},
		{false, encoded(t, &pgproto3.AuthenticationOk{}, &pgproto3.ParameterStatus{Name: "a", Value: "b"}, &pgproto3.BackendKeyData{ProcessID: 7, SecretKey: 9}, ready("I"))},
		{true, encoded(t, &pgproto3.Parse{Name: "s", Query: update}, &pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("8"), []byte("1")}},
			&pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, &pgproto3.Sync{}, &pgproto3.Query{String: "BEGIN; INSERT INTO counter (id, value) VALUES (2, 3)"})},
		{false, encoded(t, &pgproto3.ParseComplete{}, &pgproto3.BindComplete{}, &pgproto3.NoData{}, &pgproto3.NoticeResponse{Severity: "NOTICE", Message: "m"},
			&pgproto3.CommandComplete{CommandTag: []byte("UPDATE 1")}, ready("I"), &pgproto3.CommandComplete{CommandTag: []byte("BEGIN")},
			&pgproto3.CommandComplete{CommandTag: []byte("INSERT 0 1")}, &pgproto3.NotificationResponse{PID: 7, Channel: "c", Payload: "p"}, ready("T"))},
		{true, encoded(t, &pgproto3.Query{String: "COMMIT"})},
		{false, encoded(t, &pgproto3.CommandComplete{CommandTag: []byte("COMMIT")}, ready("I"))},
	}
}

// The bytes, their order and the history are the same wherever a message is
// split, byte by byte and with many messages in one read, with rules that act
// on them and with none.
func TestC001SplitAnywhere(t *testing.T) {
	for _, tt := range []struct {
		name, where string
		parts       []part
		rules       []string
	}{
		{"Redis", "redis", redisTalk(), nil},
		{"Redis, held", "redis", redisTalk(), []string{"stall-after", "SETNX=2s", "freeze-before", "DEL=1s"}},
		{"Postgres", "pg", pgTalk(t), nil},
		{"Postgres, held", "pg", pgTalk(t), []string{"stall-before", "UPDATE=2s", "freeze-after", "COMMIT=1s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole := converse(t, tt.where, tt.rules, tt.parts, func(s string) []string { return []string{s} })
			if whole.up != sent(tt.parts, true) || whole.down != sent(tt.parts, false) || whole.desyncs != 0 {
				t.Fatalf("the server received %q\nthe client %q\n%d desyncs", whole.up, whole.down, whole.desyncs)
			}
			same := func(name string, cut func(string) []string) {
				if got := converse(t, tt.where, tt.rules, tt.parts, cut); got != whole {
					t.Fatalf("%s:\n%+v\nwhole:\n%+v", name, got, whole)
				}
			}
			same("byte by byte", func(s string) []string { return strings.Split(s, "") })
			longest := 0
			for _, p := range tt.parts {
				longest = max(longest, len(p.text))
			}
			for at := 1; at < longest; at++ {
				same(fmt.Sprintf("split at %d", at), func(s string) []string {
					if at >= len(s) {
						return []string{s}
					}
					return []string{s[:at], s[at:]}
				})
			}
		})
	}
}

// A length that no message can have is neither believed nor answered: nothing
// is set aside for it, every byte goes on, and the other connections never hear
// of it.
func TestC009HostileLengths(t *testing.T) {
	start := pgTalk(t)[:2]
	tail := strings.Repeat("x", 3000)
	for _, tt := range []struct {
		name, where string
		parts       []part
	}{
		{"Redis, negative bulk", "redis", []part{{true, "*2\r\n$-5\r\n" + tail}}},
		{"Redis, huge bulk", "redis", []part{{true, "*2\r\n$3\r\nGET\r\n$99999999999999999999\r\n" + tail}}},
		{"Redis, huge array", "redis", []part{{true, "*2147483647\r\n$3\r\nGET\r\n" + tail}}},
		{"Redis, bulk of the cap", "redis", []part{{true, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n" + tail}}},
		{"Redis, negative reply", "redis", []part{{true, "PING\r\n"}, {false, "$-17\r\n" + tail}}},
		{"Redis, huge reply", "redis", []part{{true, "PING\r\n"}, {false, "*4294967296\r\n" + tail}}},
		{"Redis, deep reply", "redis", []part{{true, "PING\r\n"}, {false, strings.Repeat("*1\r\n", 100000)}}},
		{"Postgres, startup", "pg", []part{{true, "\x7f\xff\xff\xff\x00\x03\x00\x00" + tail}}},
		{"Postgres, zero", "pg", slices.Concat(start, []part{{true, "Q\x00\x00\x00\x00" + tail}})},
		{"Postgres, negative", "pg", slices.Concat(start, []part{{true, "B\xff\xff\xff\xff" + tail}})},
		{"Postgres, one gigabyte", "pg", slices.Concat(start, []part{{true, "Q\x3f\xff\xff\xff" + tail}})},
		{"Postgres, reply", "pg", slices.Concat(start, []part{{true, encoded(t, &pgproto3.Query{String: "SELECT 1"})}, {false, "D\xff\xff\xff\xf0" + tail}})},
		{"Postgres, three bytes", "pg", slices.Concat(start, []part{{false, "Z\x00\x00\x00\x03" + tail}})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := converse(t, tt.where, nil, tt.parts, func(s string) []string { return []string{s} })
			runtime.ReadMemStats(&after)
			if got.up != sent(tt.parts, true) || got.down != sent(tt.parts, false) {
				t.Errorf("%d bytes reached the server and %d the client, of %d and %d", len(got.up), len(got.down), len(sent(tt.parts, true)), len(sent(tt.parts, false)))
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
				t.Errorf("%d MiB were set aside", n>>20)
			}
		})
	}
}

// What cannot become an op is not waited for: half a command is there before
// any time has passed, and so is half a reply.
func TestC013NoDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &stage{t: t, ctx: ctx, start: time.Now(), ends: map[string]*end{}, owners: map[string]int{}}
		if err := s.open(); err != nil {
			t.Fatal(err)
		}
		client, upstream := s.pair("redis")
		buf := make([]byte, 100)
		for _, step := range []struct {
			from, to net.Conn
			text     string
		}{
			{client, upstream, "*2\r\n$3\r\nGET\r\n$100\r\nha"}, {upstream, client, "+unasked"}, {client, upstream, "lf"},
		} {
			if _, err := step.from.Write([]byte(step.text)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if n, err := step.to.Read(buf); err != nil || string(buf[:n]) != step.text {
				t.Errorf("read %q, %v; want %q", buf[:n], err, step.text)
			}
		}
		if waited := time.Since(s.start); waited != 0 {
			t.Errorf("it took %v", waited)
		}
		client.Close()
		upstream.Close()
		synctest.Wait()
		cancel()
		s.wait.Wait()
		_ = s.record.Close()
	})
}

// A connection counts once as desync, however much of it makes no sense.
func TestC010DesyncIsCounted(t *testing.T) {
	parts := []part{{true, "*1\r\n$-7\r\nPING\r\n"}, {false, "?\x00\xff"}, {true, "*1\r\n$-7\r\nPING\r\n"}, {false, "$-9\r\n"}}
	got := converse(t, "redis", nil, parts, func(s string) []string { return []string{s} })
	if got.desyncs != 1 || got.up != sent(parts, true) || got.down != sent(parts, false) {
		t.Errorf("%d desyncs, %q up, %q down", got.desyncs, got.up, got.down)
	}
}
