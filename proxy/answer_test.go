package proxy

import (
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// A tracker that changes what it says of a stream once.
type answering struct{ mark wire.Mark }

func (a *answering) Client(_ []byte, marks []wire.Mark) ([]wire.Mark, int64) { return marks, 0 }

func (a *answering) Upstream(_ []byte, marks []wire.Mark) ([]wire.Mark, int64) {
	return append(marks, a.mark), 10
}

// An Answer in upstream's stream takes the place of the bytes that it is about.
func TestAnswerInsteadOfUpstreamsBytes(t *testing.T) {
	s := NewSession(nil, &conn{}, &answering{wire.Mark{Kind: wire.Answer, Start: 2, End: 6, Bytes: []byte("new")}}, nil)
	step := s.Feed(ToClient, []byte("0123456789"), 1)
	if step.Forward != 2 || step.Drop != 4 || string(step.Answer) != "new" || !step.More {
		t.Fatalf("step %+v", step)
	}
	if step = s.Next(ToClient, 1); step.Forward != 4 || step.Drop != 0 || step.Answer != nil || step.More {
		t.Fatalf("then %+v", step)
	}
}
