package proxy

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
)

// pair is a tracker that finds two ops in each chunk of the client, the second of
// which a rule about UPDATE holds.
type pair struct{ first, second *lock.Op }

func (p *pair) Client(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	end := int64(len(chunk))
	return append(marks, wire.Mark{Kind: wire.Request, Op: p.first, End: end}, wire.Mark{Kind: wire.Request, Op: p.second, End: end}), end
}

func (p *pair) Upstream(chunk []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	return marks, int64(len(chunk))
}

func pairOf(t *testing.T) (*Session, *pair) {
	e := engine(t, "stall-before", "UPDATE=1s")
	p := &pair{
		&lock.Op{Proto: lock.Postgres, Kind: lock.Acquire, Verb: "UPDATE", Key: "lease:jobs:1"},
		&lock.Op{Proto: lock.Postgres, Kind: lock.Write, Verb: "UPDATE", SQL: &lock.Statement{Table: "jobs"}},
	}
	return NewSession(e, e.Open(1, owner("a")), p, func(string) {}), p
}

// Of two ops of one message the first goes on when the second does.
func TestOpsOfOneMessageGoOnTogether(t *testing.T) {
	s, p := pairOf(t)
	step := s.Feed(ToUpstream, make([]byte, 10), 5)
	if step.Gate == nil || step.Forward != 0 {
		t.Fatalf("the second does not wait: %+v", step)
	}
	step.Gate.Open()
	if step = s.Next(ToUpstream, 900); step.Forward != 10 {
		t.Fatalf("forwarded %d bytes, want all: %+v", step.Forward, step)
	}
	if p.first.F != 900 || p.second.F != 900 {
		t.Errorf("the first was forwarded at %d, the second at %d, want 900", p.first.F, p.second.F)
	}
}

// Neither was sent if the client goes away meanwhile.
func TestOpsOfOneMessageAreNotSentTogether(t *testing.T) {
	s, p := pairOf(t)
	s.Feed(ToUpstream, make([]byte, 10), 5)
	if ops := s.Close(20); len(ops) != 2 || ops[0] != p.first || ops[1] != p.second {
		t.Fatalf("recorded %v", ops)
	}
	for _, op := range []*lock.Op{p.first, p.second} {
		if op.Outcome != lock.Failed || op.Err != NotSent || op.F != 0 {
			t.Errorf("%s: %s %s, forwarded at %d", op.Kind, op.Outcome, op.Err, op.F)
		}
	}
}
