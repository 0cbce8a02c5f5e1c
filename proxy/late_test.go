package proxy

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/wire"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// A tardy is a witness whose looks after calls are given by the test.
type tardy struct {
	sighted
	lasting bool
	looks   []*Look
	calls   []*letter
}

func (w *tardy) After(c wire.Call) *Look {
	l := NewLook()
	if w.lasting {
		l.Lasting()
	}
	w.looks, w.calls = append(w.looks, l), append(w.calls, c.(*letter))
	return l
}

func (w *tardy) tell(i int, key string) {
	w.looks[i].Give(func() { w.calls[i].told = key })
	synctest.Wait()
}

// afterwards has a call be answered whose witness says nothing in time.
func afterwards(t *testing.T, eye *tardy) *witnessed {
	w := watched(t, engine(t), eye)
	w.write(t, w.client, "c")
	said(w.server)
	w.write(t, w.server, "C")
	said(w.client)
	if len(eye.looks) != 1 || eye.looks[0].given() {
		t.Fatal("the reply came before its witness was late")
	}
	return w
}

// What is told late goes into the record at its place, with the instants that it
// had.
func TestLateWitnessIsHeard(t *testing.T) {
	for key, want := range map[string][]string{"seen": {"seen", "direct"}, "more": {"text", "more", "direct"}} {
		synctest.Test(t, func(t *testing.T) {
			eye := &tardy{lasting: true}
			w := afterwards(t, eye)
			w.write(t, w.client, "r")
			said(w.server)
			time.Sleep(time.Second)
			eye.tell(0, key)
			w.write(t, w.server, "R")
			said(w.client)
			w.close()
			slices.SortStableFunc(w.ops, func(a, b *lock.Op) int { return int(a.Seq) - int(b.Seq) })
			if !slices.Equal(w.keys(), want) {
				t.Fatalf("ops %v, want %v", w.keys(), want)
			}
			for _, op := range w.ops[:len(want)-1] {
				if op.A != 1 || op.F != 1 || op.R != 1 || op.D != lock.Instant(Patience)+1 || op.ReplySeq <= op.Seq || op.ReplySeq >= w.ops[len(want)-1].Seq {
					t.Errorf("%s: a=%d f=%d r=%d d=%d, places %d and %d", op.Key, op.A, op.F, op.R, op.D, op.Seq, op.ReplySeq)
				}
			}
		})
	}
}

// A look that does not last is heard until the client sends more.
func TestLateLookThatDoesNotLast(t *testing.T) {
	for _, tt := range []struct {
		lasting, more bool
		want          string
	}{{false, false, "seen"}, {false, true, "text"}, {true, true, "seen"}} {
		synctest.Test(t, func(t *testing.T) {
			eye := &tardy{lasting: tt.lasting}
			w := afterwards(t, eye)
			if tt.more {
				w.write(t, w.client, "r")
				said(w.server)
			}
			eye.tell(0, "seen")
			w.close()
			if !slices.Contains(w.keys(), tt.want) {
				t.Errorf("%+v: ops %v", tt, w.keys())
			}
		})
	}
}

// Nothing is lost, and nothing is there twice, however many witnesses are late.
func TestManyLateWitnesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eye := &tardy{lasting: true}
		w := watched(t, engine(t), eye)
		const n = mostOwed + 5
		for range n {
			w.write(t, w.client, "c")
			said(w.server)
			w.write(t, w.server, "C")
			said(w.client)
		}
		for i := range n {
			eye.tell(i, "seen")
		}
		w.close()
		slices.Sort(w.keys())
		told := len(slices.DeleteFunc(w.keys(), func(k string) bool { return k != "seen" }))
		if len(w.ops) != n || told != mostOwed {
			t.Errorf("%d ops, %d told late; want %d and %d", len(w.ops), told, n, mostOwed)
		}
	})
}

// The end of a session waits for what its witness is about to tell.
func TestSessionEndListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eye := &tardy{lasting: true}
		w := afterwards(t, eye)
		d := &driver{session: w.session}
		time.AfterFunc(300*time.Millisecond, func() { eye.tell(0, "seen") })
		begun := time.Now()
		d.listen()
		if waited := time.Since(begun); waited != 300*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
		w.close()
		if !slices.Equal(w.keys(), []string{"seen"}) {
			t.Errorf("ops %v", w.keys())
		}
	})
}

func TestSessionEndDoesNotListenForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := afterwards(t, &tardy{lasting: true})
		begun := time.Now()
		(&driver{session: w.session}).listen()
		if waited := time.Since(begun); waited != listening {
			t.Errorf("waited %v", waited)
		}
		w.close()
		if !slices.Equal(w.keys(), []string{"text"}) {
			t.Errorf("ops %v", w.keys())
		}
	})
}

// never is a call of which nothing comes to be known.
type never struct{}

func (never) Ops() []*lock.Op             { return nil }
func (never) Known() bool                 { return false }
func (never) Amend([]*lock.Op) []*lock.Op { return nil }

// What nobody cares about takes no memory, also while a call waits for what tells
// of it.
func TestWaitingForWhatTellsTakesNoMemory(t *testing.T) {
	e := engine(t)
	s := NewSession(e, e.Open(1, owner("a")), resp.NewTracker(resp.Options{}), func(string) {})
	for range 3 {
		s.owes = append(s.owes, &owed{later: never{}})
	}
	ping, pong := []byte("*1\r\n$4\r\nPING\r\n"), []byte("+PONG\r\n")
	if n := testing.AllocsPerRun(100, func() {
		s.Feed(ToUpstream, ping, 1)
		s.Feed(ToClient, pong, 1)
	}); n != 0 || len(s.owes) != 3 {
		t.Errorf("%v allocations for a command, %d calls wait", n, len(s.owes))
	}
}

// A release that a witness tells of late ends its section.
func TestAReleaseThatIsToldLateEndsItsSection(t *testing.T) {
	e := engine(t)
	c := e.Open(1, owner("a"))
	taken := grant(1, "k")
	e.Request(c, taken, false, 1)
	e.Reply(c, taken, false, 1)
	op := &lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Release, Key: "k", Guarded: true, Token: taken.Token, Outcome: lock.Done, A: 2, F: 2, R: 3}
	if op.Seq, op.Actor = e.Reserve(c, 1); !e.ledger.HasOpen(c.actor.Label) {
		t.Fatal("there is no section")
	}
	if e.Amended(op); e.ledger.HasOpen(c.actor.Label) {
		t.Error("the section goes on")
	}
}
