package probe

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

func TestParseInvariantFindsTableAndColumn(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT value FROM counter WHERE id = 1":                    "counter.value",
		"select Value from Counter":                                 "counter.value",
		" SELECT value\n FROM counter WHERE id=1 ; ":                "counter.value",
		`SELECT "Value" FROM "My Table" WHERE id = 1`:               "My Table.Value",
		"SELECT value FROM public.counter WHERE id = 1":             "public.counter.value",
		"SELECT counter.value FROM public.counter WHERE id = 1":     "public.counter.value",
		"SELECT c.value FROM counter AS c WHERE c.id = 1":           "counter.value",
		"SELECT c.value FROM counter c ORDER BY c.id LIMIT 1":       "counter.value",
		"SELECT value FROM counter WHERE name IN ('a,b', 'from')":   "counter.value",
		"SELECT value FROM counter WHERE id = (SELECT 1 LIMIT 1)":   "counter.value",
		"SELECT sum(value) FROM counter":                            "",
		"SELECT value + 1 FROM counter":                             "",
		"SELECT d.value FROM counter c WHERE id = 1":                "",
		"SELECT value FROM counter, other":                          "",
		"SELECT value FROM counter JOIN other USING (id)":           "",
		"SELECT value FROM counter UNION SELECT 1":                  "",
		"SELECT value FROM counter WHERE id = 1 UNION SELECT 1":     "",
		"SELECT value FROM counter GROUP BY value":                  "",
		"SELECT value FROM (SELECT 1 AS value) counter":             "",
		"SELECT DISTINCT value FROM counter":                        "",
		"SELECT value FROM ONLY counter":                            "",
		"SELECT 'value' FROM counter":                               "",
		"SELECT 1":                                                  "",
		"SELECT coalesce(sum(value), 0) FROM counter":               "",
		"SELECT value FROM counter -- of things":                    "",
		"SELECT value FROM counter WHERE a = $$;$$":                 "",
		"WITH c AS (SELECT value, id FROM counter) SELECT 1":        "",
		`SELECT value FROM counter WHERE a = E'it\'s; "not" (nice'`: "",
	} {
		inv, err := ParseInvariant(CounterKind, sql)
		got := strings.Trim(inv.Table+"."+inv.Column, ".")
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", sql, got, err, want)
		}
		if inv.Kind != CounterKind || inv.Query == "" || strings.HasSuffix(inv.Query, ";") {
			t.Errorf("%s: got %+v", sql, inv)
		}
	}
}

func TestParseInvariantNamesFlagAndWhatIsExpected(t *testing.T) {
	for sql, want := range map[string]string{
		"":                                    "empty",
		" ; ":                                 "empty",
		"counter.value":                       "begins with COUNTER",
		"UPDATE counter SET value = 0":        "begins with UPDATE",
		"(SELECT 1)":                          "begins with (",
		"SELECT":                              "selects nothing",
		"SELECT value, fence FROM counter":    "more than one column",
		"SELECT value FROM counter; SELECT 2": "more than one statement",
		"SELECT sum(value FROM counter":       "parentheses",
		"SELECT value) FROM (counter":         "parentheses",
		"SELECT value FROM counter WHERE a='": "quote",
	} {
		_, err := ParseInvariant(FenceKind, sql)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--fence ") ||
			!strings.Contains(err.Error(), "expected a query for one integer") {
			t.Errorf("%q: got %v, want an error of --fence with %q", sql, err, want)
		}
	}
	if _, err := ParseInvariant("sum", "SELECT 1"); err == nil {
		t.Error("an unknown kind was accepted")
	}
}

func TestReadInvariant(t *testing.T) {
	pg := testbed.Postgres(t)
	execSQL(t, pg.URL(), "CREATE TABLE n (id int, v bigint); INSERT INTO n VALUES (1, 9007199254740993), (2, -7), (3, NULL)")
	for _, test := range []struct {
		sql    string
		value  int64
		exists bool
		err    string
	}{
		{"SELECT v FROM n WHERE id = 1", 9007199254740993, true, ""},
		{"SELECT v FROM n WHERE id = 2", -7, true, ""},
		{"SELECT sum(v) FROM n", 9007199254740986, true, ""}, // a numeric
		{"SELECT count(*)::text FROM n", 3, true, ""},
		{"SELECT v FROM n WHERE id = 3", 0, false, ""}, // NULL
		{"SELECT v FROM n WHERE id = 4", 0, false, ""}, // no row
		{"SELECT v FROM missing", 0, false, ""},        // no table
		{"SELECT v FROM n", 0, false, "expected one row, got 3"},
		{"WITH x AS (SELECT 1) SELECT 1, 2", 0, false, "expected one column, got 2"},
		{"SELECT 1.5", 0, false, `expected an integer, got "1.5"`},
		{"SELECT nothing FROM n", 0, false, "nothing"},
	} {
		inv, err := ParseInvariant(CounterKind, test.sql)
		if err != nil {
			t.Fatal(err)
		}
		value, exists, err := ReadInvariant(t.Context(), pg.URL(), inv)
		if value != test.value || exists != test.exists || (err == nil) != (test.err == "") {
			t.Errorf("%s: got %d, %v, %v", test.sql, value, exists, err)
		}
		if err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %v, want an error with %q", test.sql, err, test.err)
		}
	}
	if _, _, err := ReadInvariant(t.Context(), "postgres://postgres@127.0.0.1:1/postgres", mustParse(t, "SELECT 1")); err == nil {
		t.Error("an unreachable database gave no error")
	}
}

func TestWaitIdleWaitsForTransactionAndDeparture(t *testing.T) {
	pg := testbed.Postgres(t)
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	pids := []int32{int32(conn.PgConn().PID()), 1 << 30} // the second is nobody
	if err := WaitIdle(t.Context(), pg.URL(), pids); err != nil {
		t.Fatalf("idle backend: %v", err)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err = WaitIdle(short, pg.URL(), pids)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "idle in transaction") {
		t.Fatalf("in a transaction: %v, want to run out of time", err)
	}
	done := make(chan error, 1)
	go func() { done <- WaitIdle(t.Context(), pg.URL(), pids) }()
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after the rollback: %v", err)
	}
	if err := WaitIdle(t.Context(), "postgres://127.0.0.1:1/x", nil); err != nil {
		t.Errorf("no backend to wait for: %v", err)
	}
}

func TestWaitIdleSaysWhenStatesAreHidden(t *testing.T) {
	pg := testbed.Postgres(t)
	execSQL(t, pg.URL(), "CREATE ROLE nosy LOGIN")
	conn, err := pgx.Connect(t.Context(), pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	nosy := strings.Replace(pg.URL(), "postgres@", "nosy@", 1)
	err = WaitIdle(short, nosy, []int32{int32(conn.PgConn().PID())})
	if !errors.Is(err, ErrStateHidden) {
		t.Errorf("got %v, want ErrStateHidden", err)
	}
}

func mustParse(t *testing.T, sql string) check.Invariant {
	t.Helper()
	inv, err := ParseInvariant(CounterKind, sql)
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func execSQL(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
}
