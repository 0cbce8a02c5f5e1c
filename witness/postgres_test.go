package witness

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
)

func connectTo(url string) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		conf, err := pgx.ParseConfig(url)
		if err != nil {
			return nil, err
		}
		conf.RuntimeParams["application_name"] = sideName
		return pgx.ConnectConfig(ctx, conf)
	}
}

// pgHouse is a house with one Postgres.
func pgHouse(t *testing.T, server *testbed.Server) (*House, *logged) {
	log := &logged{}
	h := New(Options{
		Postgres: []Postgres{{Name: "main", Address: server.Addr(), Connect: connectTo(server.URL())}},
		Now:      clockFrom(time.Now()), Locks: func() uint64 { return 0 }, Record: newRecorded(), Log: log.log(),
	})
	t.Cleanup(func() { h.Close() })
	return h, log
}

// Every advisory lock has the key that it would have if its number were written
// out.
func TestAdvisoryLocksOfABackend(t *testing.T) {
	server := testbed.Postgres(t)
	h, log := pgHouse(t, server)
	h.Begin(0)
	ctx := t.Context()
	c, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	want := map[string]bool{}
	for _, l := range []struct {
		sql, key string
		shared   bool
	}{
		{"pg_advisory_lock(42)", "advisory:42", false},
		{"pg_advisory_lock(-1)", "advisory:-1", false},
		{"pg_advisory_lock(9223372036854775807)", "advisory:9223372036854775807", false},
		{"pg_advisory_lock(-9223372036854775808)", "advisory:-9223372036854775808", false},
		{"pg_advisory_lock(1, -2)", "advisory:1:-2", false},
		{"pg_advisory_lock_shared(7)", "advisory:7", true},
	} {
		if _, err := c.Exec(ctx, "SELECT "+l.sql); err != nil {
			t.Fatal(err)
		}
		want[l.key] = l.shared
	}
	r := h.postgres[server.Addr()].registrar
	ask := func(pid int32) []pgwire.Advisory {
		got := make(chan []pgwire.Advisory, 1)
		r.queue <- &holdings{pid: pid, then: func(held []pgwire.Advisory, ok bool) {
			if !ok {
				t.Error("no answer")
			}
			got <- held
		}}
		return await(t, got)
	}
	held := ask(int32(c.PgConn().PID()))
	if len(held) != len(want) {
		t.Errorf("it holds %v", held)
	}
	for _, a := range held {
		if shared, ok := want[a.Key()]; !ok || shared != a.Shared {
			t.Errorf("%s, shared %v", a.Key(), a.Shared)
		}
	}
	if other := ask(1 << 30); len(other) != 0 {
		t.Errorf("nobody holds %v", other)
	}
	if log.String() != "" {
		t.Errorf("log: %s", log)
	}
}

// What a table's rows were written is what the server has counted, whoever did
// it, of the tables that matter.
func TestTallyOfWhatTheServerCounted(t *testing.T) {
	for name, start := range map[string]func(testing.TB) *testbed.Server{"15": func(t testing.TB) *testbed.Server { return testbed.Postgres(t) }, "18": testbed.Postgres18} {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			h, log := pgHouse(t, server)
			ctx := t.Context()
			run := func(statements ...string) int32 {
				c, err := pgx.Connect(ctx, server.URL())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close(ctx)
				for _, sql := range statements {
					if _, err := c.Exec(ctx, sql); err != nil {
						t.Fatal(err)
					}
				}
				return int32(c.PgConn().PID())
			}
			run("CREATE TABLE counter (id int, value int)", "INSERT INTO counter VALUES (1, 0), (2, 0)", "CREATE TABLE other (id int)",
				"CREATE SCHEMA billing", "CREATE TABLE billing.invoice (id int)",
				"CREATE TABLE parted (id int) PARTITION BY RANGE (id)", "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10)")
			h.Baseline(ctx)
			pids := []int32{
				run("UPDATE counter SET value = 1", "INSERT INTO other VALUES (1)", "BEGIN", "UPDATE counter SET value = 2 WHERE id = 1", "ROLLBACK"),
				run("DELETE FROM counter WHERE id = 2", "INSERT INTO billing.invoice VALUES (1)", "INSERT INTO parted VALUES (1), (2)",
					"CREATE TABLE fresh (id int)", "INSERT INTO fresh VALUES (1)"),
			}
			slow, err := pgx.Connect(ctx, server.URL())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := slow.Exec(ctx, "INSERT INTO counter VALUES (3, 0)"); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(100*time.Millisecond, func() { _ = slow.Close(ctx) })
			tables := []string{"counter", "billing.invoice", "parted", "fresh", "absent"}
			got := h.Tally(ctx, func(table string) bool { return slices.Contains(tables, table) }, pids)
			u, err := url.Parse(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			up := "main" + u.Path
			want := []history.Tally{
				{Upstream: up, Table: "billing.invoice", Inserted: 1},
				{Upstream: up, Table: "counter", Inserted: 1, Updated: 3, Deleted: 1},
				{Upstream: up, Table: "fresh", Inserted: 1},
				{Upstream: up, Table: "parted", Inserted: 2},
			}
			if !slices.Equal(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if log.String() != "" {
				t.Errorf("log: %s", log)
			}
			stay, err := pgx.Connect(ctx, server.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer stay.Close(ctx)
			if _, err := stay.Exec(ctx, "INSERT INTO other VALUES (2)"); err != nil {
				t.Fatal(err)
			}
			again, said := pgHouse(t, server)
			again.Baseline(ctx)
			if got := again.Tally(ctx, func(string) bool { return true }, nil); len(got) > 0 || !strings.Contains(said.String(), "may be counted late") {
				t.Errorf("somebody was just there, and yet %+v; log %s", got, said)
			}
		})
	}
}
