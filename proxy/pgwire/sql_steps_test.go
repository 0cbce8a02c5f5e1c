package pgwire

import (
	"strings"
	"testing"
	"time"
)

// A hostile text of some length is read in time, whatever it nests or repeats: what
// goes back over all of it at each step takes minutes.
func TestHostileTextsAreReadInTime(t *testing.T) {
	const n = 40 << 10
	for _, unit := range []string{
		"with a as (", "select pg_advisory_lock(", "pg_advisory_lock(1), ", "(", "now() + ", "(now() + ", "interval '1' * ", "coalesce(1, ",
		"a < now() and ", "(a < 1 or ", "not ", "cast(", "select a, ", "returning ", "as (", "$1 * ", "extract(epoch from ", "make_interval(secs => ",
	} {
		for _, lead := range []string{"select pg_advisory_lock(1), ", "update t set locked_until = ", "update t set until_at = now() where ", "insert into locks (a) values (", "with x as (select pg_try_advisory_lock(1)) ", "delete from t where "} {
			start := time.Now()
			sealed(hasher, []byte(lead+strings.Repeat(unit, n/len(unit))), false)
			if d := time.Since(start); d > time.Minute {
				t.Errorf("%s(%s)*: read in %v", lead, unit, d)
			}
		}
	}
}
