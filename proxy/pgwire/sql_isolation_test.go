package pgwire

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// What is said of a transaction's isolation is what the server says.
func TestIsolation(t *testing.T) {
	const ask = "select id, current_setting('transaction_isolation') from isolated"
	for _, script := range []string{
		"", "begin", "begin isolation level repeatable read", "start transaction read only, isolation level serializable",
		"begin transaction isolation level read committed", "begin work isolation level serializable read write",
		"begin|set transaction isolation level repeatable read", "begin|set transaction read only",
		"begin|set local transaction_isolation = 'serializable'", "begin|set transaction_isolation to 'repeatable read'",
		"set transaction isolation level serializable", "set session characteristics as transaction isolation level serializable",
		"set session characteristics as transaction isolation level serializable|begin",
		"set default_transaction_isolation = 'repeatable read'|begin", "set session default_transaction_isolation to serializable",
		"set default_transaction_isolation = 'serializable'|begin isolation level read committed",
		"begin|set default_transaction_isolation = 'serializable'", "begin|set default_transaction_isolation = 'serializable'|commit",
		"begin|set default_transaction_isolation = 'serializable'|rollback",
		"set default_transaction_isolation = 'serializable'|reset default_transaction_isolation",
		"set default_transaction_isolation = 'serializable'|set default_transaction_isolation to default",
		"set default_transaction_isolation = 'serializable'|reset all", "set default_transaction_isolation = 'serializable'|discard all",
		"begin isolation level serializable|commit and chain", "begin isolation level serializable|rollback and chain",
		"begin isolation level serializable|commit", "begin isolation level serializable|rollback|begin",
		"set default_transaction_isolation = 'serializable'|begin|rollback",
		"begin|savepoint a|rollback to a", "rollback", "set default_transaction_isolation = 'serializable'|rollback",
	} {
		for _, options := range [][]string{nil, {"default_transaction_isolation", "serializable"}, {"options", `-c default_transaction_isolation=repeatable\ read`}} {
			for _, version := range []int{15, 18} {
				w := dial(t, version)
				w.startup(196608, append([]string{"user", "postgres", "database", "postgres"}, options...)...)
				w.until('Z')
				w.quiet("create table if not exists isolated (id int)")
				for i, sql := range append(strings.Split(script, "|"), ask) {
					if sql != "" && i%2 == 0 {
						w.send(q(sql))
						w.until('Z')
					} else if sql != "" {
						w.send(p("", sql), b("", ""), e(""), syn)
						w.until('Z')
					}
				}
				w.send(q(ask))
				w.until('Z')
				w.conn.Close()
				want := snapshotted(t, script, options, version)
				for _, m := range w.pl.marks {
					if m.Kind == wire.Request && m.Op.Kind == lock.Read && m.Op.Snapshot != want {
						t.Errorf("%s with %v: snapshot %v, want %v", script, options, m.Op.Snapshot, want)
					}
				}
			}
		}
	}
}

// snapshotted asks a server of its own what holds after a script.
func snapshotted(t *testing.T, script string, options []string, version int) bool {
	t.Helper()
	w := dial(t, version)
	defer w.conn.Close()
	w.startup(196608, append([]string{"user", "postgres", "database", "postgres"}, options...)...)
	w.until('Z')
	for _, sql := range append(strings.Split(script, "|"), "select current_setting('transaction_isolation')") {
		n := len(w.turns)
		w.send(q(sql))
		w.until('Z')
		for _, u := range w.turns[n:] {
			if !u.client && u.bytes[0] == 'D' {
				c := cursor{b: u.bytes[headSize:]}
				c.count()
				level, _ := c.field()
				return snapshots(string(level))
			}
		}
	}
	t.Fatal("no answer")
	return false
}
