package pgwire

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A table that was declared needs no telling names.
func TestDeclaredLeases(t *testing.T) {
	for _, declared := range []bool{false, true} {
		cache := NewCache()
		if declared {
			cache.Declare(lock.LeaseTable{Table: "public.seats", Owner: "sitter", Until: "stamp", Key: []string{"place"}})
		}
		tr := newTracker()
		tr.opt.Statements = cache
		pl := newPlayer(t, tr).play(encode(t, append(started[:2:2],
			fe{p("", "update seats set sitter = $1, stamp = $2 where place = $3 and area = 5 and (sitter is null or stamp < $4)"),
				b("", "", "a", "2000-01-01 00:01:00Z", "x", "2000-01-01 00:00:00Z"), e(""), syn}, be{parsed, boundOK, c("UPDATE 1"), z('I')},
			fe{q("update seats set stamp = '2000-01-01 00:02:00Z' where place = 'x' and sitter = 'a'")}, be{c("UPDATE 1"), z('I')},
			fe{q("delete from seats where place = 'x' and sitter = 'a'")}, be{c("DELETE 1"), z('I')},
			fe{q("insert into seats (place, sitter, stamp) values ('x', 'b', '2000-01-01 00:03:00Z')")}, be{bad("23505"), z('I')})), 0)
		key := "lease:seats:" + cellsKey(hasher, []lock.Cell{{Column: "place", Value: hasher.Of([]byte("x"))}})
		want := strings.ReplaceAll(lines(`
			UPDATE K acquire granted
			UPDATE K renew done
			DELETE K release done
			INSERT K acquire refused 23505`), "K", key)
		got := locked(pl.marks)
		if declared && got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if !declared && strings.Contains(got, key) {
			t.Errorf("nobody said which column names the row:\n%s", got)
		}
	}
}
