package lock

import "testing"

// toldLate has a release be known once the process has been granted the lock again.
func toldLate(asked, answered Instant, out Outcome) (*tape, *Op) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	op := l.release("A", 1, "ta")
	op.Seq, op.ReplySeq, op.A, op.F, op.R, op.Outcome = 5, 6, asked*ms, asked*ms, answered*ms, out
	l.acquire(30, "A", 1, "tb")
	l.Told(op)
	return l, op
}

// A release that comes to be known late ends its own section, and the next one is of
// the same task after all.
func TestAReleaseThatIsToldLate(t *testing.T) {
	for out, want := range map[Outcome]*struct{ released, lost bool }{Done: {true, false}, NotHeld: {false, true}} {
		l, op := toldLate(20, 21, out)
		a := l.Term(1)
		if a.Release != op || op.Term.ID != 1 || (a.Released == op) != want.released || (a.Lost == op) != want.lost {
			t.Errorf("%s: %+v", out, a)
		}
		if w := l.do(40, l.write("A", 2), Done); w.Term.ID != 2 || !w.Term.Sure() {
			t.Errorf("%s: the next section's write is of %+v", out, w.Term)
		}
		if !l.Term(2).Open() || l.keys[a.Lock].current != l.Term(2) {
			t.Errorf("%s: what was granted since is gone", out)
		}
	}
}

// It shows a second task if the lock was granted again before it was answered.
func TestAReleaseThatIsToldLateOfAnotherTask(t *testing.T) {
	l, _ := toldLate(20, 40, NotHeld)
	if w := l.do(50, l.write("A", 2), Done); w.Term.Sure() {
		t.Errorf("the next section's write is of %+v", w.Term)
	}
}

// What does not tell whose it is, or that it came about, changes nothing.
func TestWhatIsToldLateAndDoesNotTell(t *testing.T) {
	for what, change := range map[string]func(op *Op, l *tape){
		"no token":      func(op *Op, _ *tape) { op.Guarded = false },
		"another token": func(op *Op, l *tape) { op.Token = l.v("tx") },
		"a step":        func(op *Op, _ *tape) { op.Depth = 1 },
		"no release":    func(op *Op, _ *tape) { op.Kind = Renew },
		"a failure":     func(op *Op, _ *tape) { op.Outcome = Failed },
		"another key":   func(op *Op, _ *tape) { op.Key = "lock:d" },
	} {
		l := newTape()
		l.acquire(10, "A", 1, "ta")
		op := l.release("A", 1, "ta")
		op.Outcome = Done
		change(op, l)
		if l.Told(op); !l.Term(1).Open() {
			t.Errorf("%s: the section has ended", what)
		}
	}
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	first := l.do(20, l.release("A", 1, "ta"), Done)
	op := l.release("A", 1, "ta")
	op.Outcome = Done
	if l.Told(op); l.Term(1).Release != first || l.Term(1).Releases != 1 {
		t.Error("what had been asked for already is asked for again")
	}
}

// A lock that was taken once the release was answered does not lie within the other.
func TestALockBehindAReleaseThatIsToldLate(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.take(30, "A", 1, "lock:d")
	op := l.release("A", 1, "ta")
	op.A, op.F, op.R, op.Outcome = 20*ms, 20*ms, 21*ms, Done
	l.Told(op)
	if w := l.do(40, l.write("A", 2), Done); w.Term.ID != 2 || !w.Term.Sure() || len(w.Term.Within) > 0 {
		t.Errorf("its write is of %+v", w.Term)
	}
}

// As long as a release may still be missing, its process may have another task.
func TestALockBesideOneThatWasLeft(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.acquire(30, "A", 1, "tb")
	l.take(40, "A", 1, "lock:d")
	if w := l.do(50, l.write("A", 2), Done); len(w.Term.Within) > 0 || len(w.Term.Also) == 0 {
		t.Errorf("its write is of %+v", w.Term)
	}
}
