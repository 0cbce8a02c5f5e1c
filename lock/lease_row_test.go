package lock

import "testing"

// The row that a lease lives in is no table that the lease protects, though its
// token is among the values, nor is its write a section's.
func TestALeaseProtectsNotItsOwnRow(t *testing.T) {
	for _, lease := range []bool{false, true} {
		l := newTape()
		l.do(10, &Op{Session: 1, Actor: "A", Proto: Postgres, Kind: Acquire, Verb: "UPDATE", Key: "lease:jobs:1", NX: true, Token: l.v("ta"), TTL: 500 * 1e6}, Granted)
		op := l.write("A", 1, Assign{Column: "owner", Value: l.v("ta")})
		op.SQL.Table, op.SQL.Lease = "jobs", lease
		l.do(20, op, Done)
		if got := op.Term.ID == 0; got != lease {
			t.Errorf("lease %v: it belongs to %+v", lease, op.Term)
		}
		if got := !l.Protected("jobs"); got != lease {
			t.Errorf("lease %v: the table is protected: %v", lease, !got)
		}
		want(t, l.do(30, l.write("A", 1), Done), 1, 0.90)
	}
}
