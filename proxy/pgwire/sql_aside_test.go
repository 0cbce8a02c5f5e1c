package pgwire

import (
	"strings"
	"testing"
)

// What a statement asks of another table chooses among its rows, and tells nothing of them.
func TestASubqueryOfAnotherTable(t *testing.T) {
	for _, tt := range []struct{ sql, want string }{
		{`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f WHERE id = 1) < $2`, "write UPDATE t set v=8 where id=1 +f aside f.fence aside f.id opaque"},
		{`UPDATE t SET v = 8 WHERE $2 > (SELECT f.fence FROM s.f WHERE f.id = 1) AND id = 1`, "write UPDATE t set v=8 where id=1 +s.f aside s.f.fence aside s.f.id opaque"},
		{`UPDATE t SET v = 8 WHERE id = 1 AND ((SELECT max(x.fence) FROM f AS x) <= 3)`, "write UPDATE t set v=8 where id=1 +f aside f.fence opaque"},
		{`DELETE FROM t WHERE id = 1 AND (SELECT n FROM f WHERE a = 1 OR b < 2) = 3`, "write DELETE t where id=1 +f aside f.n aside f.a aside f.b opaque"},
		{`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM ONLY f) < $2`, "write UPDATE t set v=8 where id=1 +f aside f.fence opaque"},
	} {
		if got := line(readSQL(tt.sql, false)[0]); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.sql, got, tt.want)
		}
	}
}

func TestASubqueryThatMayLookAtTheRowItself(t *testing.T) {
	for _, sql := range []string{
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f WHERE f.id = t.id) < $2`,
		`UPDATE t AS f SET v = 8 WHERE id = 1 AND (SELECT f.fence FROM g) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT v FROM t) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT v FROM public.t AS x) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT v FROM ONLY t) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT f.fence FROM f AS x) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f, t) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f JOIN g ON true) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT g(v) FROM f) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f()) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f WHERE id = v) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f) < v`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f) < $2 + v`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f LIMIT 1) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence, v FROM f) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND EXISTS (SELECT fence FROM f)`,
		`UPDATE t SET v = 8 WHERE id = 1 OR (SELECT fence FROM f) < $2`,
		`UPDATE t SET v = 8 WHERE id = 1 AND (SELECT fence FROM f) < $2 AND abs(v) < 3`,
		`UPDATE t SET v = 8 FROM f WHERE t.id = 1 AND (SELECT fence FROM f) < $2`,
		`WITH f AS (SELECT v FROM t) UPDATE t SET v = 8 WHERE id = 1 AND (SELECT v FROM f) < $2`,
		`INSERT INTO t VALUES (1) ON CONFLICT (id) DO UPDATE SET v = 8 WHERE (SELECT fence FROM f) < $2`,
		`SELECT v FROM t WHERE id = 1 AND (SELECT fence FROM f) < $2`,
	} {
		if got := line(readSQL(sql, false)[0]); strings.Contains(got, "aside") || !strings.Contains(got, "opaque") {
			t.Errorf("%s\n got %s", sql, got)
		}
	}
}
