package pgwire

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A relay is a proxy that does what a tracker says and nothing else: it
// forwards what is clear, withholds what is not, and answers what is to be
// answered.
type relay struct {
	t        *testing.T
	listener net.Listener
	upstream string
	buffer   int // size of a read
	cache    *Cache
	wg       sync.WaitGroup

	mu    sync.Mutex
	marks []wire.Mark
	ends  []*Tracker
}

func newRelay(t *testing.T, upstream string, buffer int) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, listener: l, upstream: upstream, buffer: buffer, cache: NewCache()}
	r.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.wg.Go(func() { r.serve(c) })
		}
	})
	return r
}

func (r *relay) stop() []wire.Mark {
	r.listener.Close()
	r.wg.Wait()
	return r.marks
}

func (r *relay) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", r.upstream)
	if err != nil {
		r.t.Error(err)
		return
	}
	defer server.Close()
	tr := NewTracker(Options{Hash: hasher, Statements: r.cache})
	r.mu.Lock()
	r.ends = append(r.ends, tr)
	r.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() { r.pump(client, server, client, tr.Client) })
	wg.Go(func() { r.pump(server, client, nil, tr.Upstream) })
	wg.Wait()
}

func (r *relay) pump(from, to, answers net.Conn, scan func([]byte, []wire.Mark) ([]wire.Mark, int64)) {
	defer to.(*net.TCPConn).CloseWrite()
	chunk := make([]byte, r.buffer)
	var held []byte
	var base int64 // offset of held
	for {
		n, err := from.Read(chunk)
		r.mu.Lock()
		before := len(r.marks)
		var clear int64
		r.marks, clear = scan(chunk[:n], r.marks)
		fresh := append([]wire.Mark(nil), r.marks[before:]...)
		r.mu.Unlock()
		held = append(held, chunk[:n]...)
		for _, m := range fresh {
			if m.Kind == wire.Answer {
				held, base = held[m.End-base:], m.End
				answers.Write(m.Bytes)
			}
		}
		to.Write(held[:clear-base])
		held, base = held[clear-base:], clear
		if err != nil {
			to.Write(held)
			return
		}
	}
}

func (r *relay) url(t *testing.T, database string) string {
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = r.listener.Addr().String()
	return u.String()
}

// outcome writes the ops down as they ended.
func outcomes(marks []wire.Mark) []string {
	var out []string
	for _, m := range marks {
		switch {
		case m.Kind == wire.Blind:
			out = append(out, "blind "+strings.TrimPrefix(m.Reason, fmt.Sprintf("at byte %d: ", m.Start)))
		case m.Kind == wire.Reply && m.Op.Kind != lock.Other:
			s := fmt.Sprintf("%s %s %d", m.Op.Verb, m.Op.Outcome, m.Op.Rows)
			for _, c := range m.Op.Row {
				s += fmt.Sprintf(" %s=%s", c.Column, show(c.Value))
			}
			if m.Op.SQL != nil {
				for _, a := range m.Op.SQL.Set {
					s += fmt.Sprintf(" %s:%s%+d", a.Column, show(a.Value), a.Delta)
				}
			}
			out = append(out, s+" "+m.Op.Err)
		}
	}
	return out
}

// Each of pgx's ways to send a query shows the same ops.
func TestPgxAgainstPostgres(t *testing.T) {
	pg := testbed.Postgres(t)
	ctx := context.Background()
	direct, err := pgx.Connect(ctx, pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close(ctx)
	want := `INSERT done 1 id:1+0 value:7+0 fence:0+0
		SELECT done 1 value=7
		UPDATE done 1 value:8+0
		UPDATE done 1 value=8 fence:3+0
		UPDATE done 0 fence:2+0
		BEGIN done 0
		FORUPDATE granted 1
		SELECT done 1 value=8 fence=3
		UPDATE done 1 value:?+1
		COMMIT done 0
		BEGIN done 0
		UPDATE failed 0 value:?+0 22012
		UPDATE failed 0 value:9+0 25P02
		ROLLBACK done 0
		UPDATE rolled-back 1 value:?+5
		INSERT failed 0 id:1+0 value:0+0 23505
		SELECT done 2
		COPY done 2`
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		for _, buffer := range []int{3, 1 << 15} {
			t.Run(fmt.Sprintf("%v in reads of %d", mode, buffer), func(t *testing.T) {
				if _, err := direct.Exec(ctx, "drop table if exists counter; create table counter (id bigint primary key, value bigint, fence int default 0)"); err != nil {
					t.Fatal(err)
				}
				r := newRelay(t, pg.Addr(), buffer)
				config, err := pgx.ParseConfig(r.url(t, pg.URL()) + "&application_name=relay")
				if err != nil {
					t.Fatal(err)
				}
				config.DefaultQueryExecMode = mode
				conn, err := pgx.ConnectConfig(ctx, config)
				if err != nil {
					t.Fatal(err)
				}
				service(t, conn)
				pid := conn.PgConn().PID()
				conn.Close(ctx)
				got := outcomes(r.stop())
				if trimmed(got) != lines(want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), lines(want))
				}
				if tr := r.ends[0]; tr.ApplicationName() != "relay" || tr.BackendPID() != int32(pid) {
					t.Errorf("application %q, pid %d, want %d", tr.ApplicationName(), tr.BackendPID(), pid)
				}
			})
		}
	}
}

func trimmed(list []string) string { return lines(strings.Join(list, "\n")) }

// service does what a service does to a counter.
func service(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	ctx := context.Background()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fails := func(_ any, err error) {
		t.Helper()
		if err == nil {
			t.Fatal("no error")
		}
	}
	var value, fence int64
	must(conn.Exec(ctx, "INSERT INTO counter (id, value, fence) VALUES ($1, $2, $3)", 1, 7, 0))
	must(nil, conn.QueryRow(ctx, "SELECT value FROM counter WHERE id = $1", 1).Scan(&value))
	must(conn.Exec(ctx, "UPDATE counter SET value = $1 WHERE id = $2", 8, 1))
	must(nil, conn.QueryRow(ctx, "UPDATE counter SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value", 3).Scan(&value))
	must(conn.Exec(ctx, "UPDATE counter SET fence = $1 WHERE id = 1 AND fence < $1", 2))
	tx, err := conn.Begin(ctx)
	must(nil, err)
	must(nil, tx.QueryRow(ctx, "SELECT value, fence FROM counter WHERE id = $1 FOR UPDATE", 1).Scan(&value, &fence))
	must(tx.Exec(ctx, "UPDATE counter SET value = value + $1 WHERE id = 1", 1))
	must(nil, tx.Commit(ctx))
	tx, err = conn.Begin(ctx)
	must(nil, err)
	fails(tx.Exec(ctx, "UPDATE counter SET value = value / (value - value) WHERE id = $1", 1))
	fails(tx.Exec(ctx, "UPDATE counter SET value = 9 WHERE id = 1"))
	must(nil, tx.Rollback(ctx))
	batch := &pgx.Batch{}
	batch.Queue("UPDATE counter SET value = value + $1 WHERE id = 1", 5)
	batch.Queue("INSERT INTO counter (id, value) VALUES ($1, $2)", 1, 0)
	fails(nil, conn.SendBatch(ctx, batch).Close())
	rows, err := conn.Query(ctx, "SELECT x FROM counter, generate_series(1, $1) x", 2)
	must(nil, err)
	rows.Close()
	must(nil, rows.Err())
	must(conn.CopyFrom(ctx, pgx.Identifier{"counter"}, []string{"id", "value"}, pgx.CopyFromRows([][]any{{int64(2), int64(1)}, {int64(3), int64(1)}})))
	must(nil, conn.Ping(ctx))
}

// What pgbench does to the accounts is what the ops say.
func TestPgbenchAgainstPostgres(t *testing.T) {
	pg := testbed.Postgres(t)
	pgbench := program(t, "pgbench")
	ctx := context.Background()
	direct, err := pgx.Connect(ctx, pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close(ctx)
	if out, err := exec.Command(pgbench, "-i", "-q", pg.URL()).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, mode := range []string{"simple", "extended", "prepared"} {
		t.Run(mode, func(t *testing.T) {
			before := balance(t, direct)
			r := newRelay(t, pg.Addr(), 1<<12)
			const transactions = 100
			out, err := exec.Command(pgbench, "-n", "-c", "2", "-j", "1", "-t", fmt.Sprint(transactions/2), "-M", mode, r.url(t, pg.URL())).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			counts, sum := map[string]int{}, int64(0)
			for _, m := range r.stop() {
				if m.Kind == wire.Blind {
					t.Error(m.Reason)
				}
				if m.Kind != wire.Reply {
					continue
				}
				counts[fmt.Sprintf("%s %s %s", m.Op.Verb, m.Op.Outcome, table(m.Op))]++
				if m.Op.Kind == lock.Write && m.Op.SQL.Table == "pgbench_accounts" {
					sum += m.Op.SQL.Set[0].Delta
				}
			}
			for _, want := range []string{"BEGIN done ", "UPDATE done pgbench_accounts", "SELECT done pgbench_accounts", "UPDATE done pgbench_tellers", "UPDATE done pgbench_branches", "INSERT done pgbench_history", "END done "} {
				if counts[want] < transactions {
					t.Errorf("%s: %d, want %d", want, counts[want], transactions)
				}
			}
			if after := balance(t, direct); after-before != sum {
				t.Errorf("the balance changed by %d, the ops say %d", after-before, sum)
			}
		})
	}
}

func table(op *lock.Op) string {
	if op.SQL == nil {
		return ""
	}
	return op.SQL.Table
}

func balance(t *testing.T, conn *pgx.Conn) (sum int64) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), "SELECT sum(abalance) FROM pgbench_accounts").Scan(&sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// What psql sends, COPY in both directions and errors among it.
func TestPsqlAgainstPostgres(t *testing.T) {
	pg := testbed.Postgres(t)
	psql := program(t, "psql")
	r := newRelay(t, pg.Addr(), 100)
	cmd := exec.Command(psql, "-X", "-q", r.url(t, pg.URL()))
	cmd.Stdin = strings.NewReader(`
create table t (a int);
copy t from stdin;
1
2
\.
copy t to stdout;
\d t
insert into t values (3) \; select 1/0;
insert into t (a) values (4) \; commit \; select 1/0;
begin \; update t set a = 5 where a = 4;
commit;
prepare p as delete from t where a = $1;
execute p(5);
declare c cursor with hold for select a from t;
fetch 1 from c;
truncate table t;
`)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := lines(`COPY done 2
		INSERT rolled-back 1
		INSERT done 1 a:4+0
		COMMIT done 0
		BEGIN done 0
		UPDATE done 1 a:5+0
		COMMIT done 0
		DELETE done 1
		TRUNCATE done 0`)
	if got := trimmed(outcomes(r.stop())); got != want {
		t.Errorf("got\n%s\nwant\n%s\n%s", got, want, out)
	}
}

func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	list, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(list) == 0 {
		lacks(t, "%s is not installed", name)
	}
	return list[len(list)-1]
}

// lacks skips the test for what this machine lacks, and fails it in CI.
func lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}
