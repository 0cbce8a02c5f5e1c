package lock

import "testing"

// A connection that does nothing but statements is not made to remember the sections that it did them for.
func TestConnectionForgetsSectionsThatEnded(t *testing.T) {
	l := NewLedger([]Declaration{{Key: "lock:c", Table: "c", Declared: true}})
	at := Instant(1)
	do := func(op *Op) {
		op.Actor, op.A, op.F, op.R, op.D = "A1", at, at, at+1, at+1
		l.Request(op)
		l.Reply(op)
		at += 10
	}
	for n := range 100 {
		token := Value{Hash: string(rune('a' + n))}
		do(&Op{Session: 1, Proto: Redis, Kind: Acquire, Verb: "SET", Key: "lock:c", NX: true, Token: token, TTL: 1e9, Outcome: Granted})
		do(&Op{Session: 2, Proto: Postgres, Kind: Write, Verb: "UPDATE", Implicit: true, Rows: 1, Outcome: Done, SQL: &Statement{Table: "c", Set: []Assign{{Column: "v"}}}})
		do(&Op{Session: 1, Proto: Redis, Kind: Release, Verb: "DEL", Key: "lock:c", Guarded: true, Token: token, Outcome: Done})
	}
	if n := len(l.conns[2].used); n > 1 {
		t.Errorf("it remembers %d", n)
	}
}
