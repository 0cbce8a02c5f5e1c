package pgwire

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// traffic is one transaction as pgbench sends it, with its replies.
func traffic(b *testing.B, steps ...any) (client, server [][]byte) {
	for _, u := range encode(b, steps) {
		if u.client {
			client = append(client, u.bytes)
		} else {
			server = append(server, u.bytes)
		}
	}
	return client, server
}

func run1(bm *testing.B, setup []any, steps ...any) {
	measure(bm, newTracker(), setup, steps...)
}

// unread is a tracker of a daemon that no SELECT matters to.
func unread() *Tracker {
	tr := newTracker()
	tr.opt.Reads = func(table string) bool { return table == "counter" }
	return tr
}

func measure(bm *testing.B, tr *Tracker, setup []any, steps ...any) {
	pl := newPlayer(bm, tr).play(encode(bm, append(started[:2:2], setup...)), 0)
	client, server := traffic(bm, steps...)
	size := 0
	for i := range client {
		size += len(client[i]) + len(server[i])
	}
	var marks []wire.Mark
	bm.SetBytes(int64(size))
	bm.ReportAllocs()
	for bm.Loop() {
		for i := range client {
			marks, _ = pl.tracker.Client(client[i], marks[:0])
			marks, _ = pl.tracker.Upstream(server[i], marks[:0])
		}
	}
}

func BenchmarkSimpleSelectOnly(bm *testing.B) {
	run1(bm, nil, fe{q("SELECT abalance FROM pgbench_accounts WHERE aid = 7;")}, be{rowd("abalance", 23), data("-5"), c("SELECT 1"), z('I')})
}

const sqlAccount = "SELECT abalance FROM pgbench_accounts WHERE aid = $1;"

func BenchmarkUnreadSimple(bm *testing.B) {
	measure(bm, unread(), nil, fe{q("SELECT abalance FROM pgbench_accounts WHERE aid = 78901;")}, be{rowd("abalance", 23), data("-5"), c("SELECT 1"), z('I')})
}

func BenchmarkUnreadPrepared(bm *testing.B) {
	measure(bm, unread(), []any{fe{p("P_0", sqlAccount), syn}, be{parsed, z('I')}},
		fe{b("", "P_0", "7"), dp(""), e(""), syn}, be{boundOK, rowd("abalance", 23), data("-5"), c("SELECT 1"), z('I')})
}

func BenchmarkPreparedSelect(bm *testing.B) {
	run1(bm, []any{fe{p("P_0", sqlAccount), syn}, be{parsed, z('I')}},
		fe{b("", "P_0", "7"), dp(""), e(""), syn}, be{boundOK, rowd("abalance", 23), data("-5"), c("SELECT 1"), z('I')})
}

func BenchmarkExtendedUpdate(bm *testing.B) {
	run1(bm, nil, fe{p("", "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2;"), b("", "", "5", "7"), dp(""), e(""), syn},
		be{parsed, boundOK, noData, c("UPDATE 1"), z('I')})
}

func BenchmarkPreparedUpdate(bm *testing.B) {
	run1(bm, []any{fe{p("P_0", "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2;"), syn}, be{parsed, z('I')}},
		fe{b("", "P_0", "5", "7"), dp(""), e(""), syn}, be{boundOK, noData, c("UPDATE 1"), z('I')})
}

func BenchmarkNoOp(bm *testing.B) {
	run1(bm, nil, fe{p("", "SELECT $1"), b("", "", "5"), dp(""), e(""), syn}, be{parsed, boundOK, rowd("x", 23), data("5"), c("SELECT 1"), z('I')})
}

func BenchmarkThousandRows(bm *testing.B) {
	rows := be{rowd("x", 23)}
	for range 1000 {
		rows = append(rows, data("some value of a row", "another"))
	}
	run1(bm, nil, fe{q("select * from generate_series(1, 1000)")}, append(rows, c("SELECT 1000"), z('I')))
}
