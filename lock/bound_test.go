package lock

import (
	"strconv"
	"testing"
	"time"
)

// churn opens and closes so many terms of other locks.
func churn(l *tape, at Instant, n int) {
	for i := range n {
		key := "churn:" + strconv.Itoa(i)
		op := l.release("Z", 77, key)
		op.Kind, op.NX, op.Key, op.TTL = Acquire, true, key, time.Second
		l.do(at, op, Granted)
		op = l.release("Z", 77, key)
		op.Key = key
		l.do(at, op, Done)
	}
}

func TestALongSectionDoesNotKeepTheOthers(t *testing.T) {
	l := newTape()
	leader := l.release("L", 5, "tl")
	leader.Kind, leader.NX, leader.Key, leader.TTL = Acquire, true, "leader", 0
	l.do(1, leader, Granted)
	churn(l, 10, 3*maxTerms)
	if len(l.terms) > maxTerms+2 || len(l.keys) > maxTerms+maxKeys || len(l.tokens) > maxTerms+2 || len(l.retired) > maxTerms+2 {
		t.Errorf("%d terms, %d keys, %d tokens, %d waiting", len(l.terms), len(l.keys), len(l.tokens), len(l.retired))
	}
	if got := l.Term(1); got == nil || !got.Open() {
		t.Error("what is open is remembered")
	}
}

func TestATermIsRememberedWhileSomethingOfItHasNoAnswer(t *testing.T) {
	for name, play := range map[string]func(l *tape) (done func()){
		"a statement": func(l *tape) func() {
			w := l.ask(12, l.write("A", 2))
			return func() { l.answer(20, w, Done) }
		},
		"a release": func(l *tape) func() {
			op := l.ask(13, l.release("A", 1, "ta"))
			return func() { l.answer(20, op, Done) }
		},
		"a renewal": func(l *tape) func() {
			op := l.release("A", 1, "ta")
			op.Kind, op.TTL = Renew, time.Second
			l.ask(12, op)
			return func() { l.answer(20, op, Done) }
		},
		"a transaction": func(l *tape) func() {
			w := l.write("A", 2)
			w.Implicit, w.Tx = false, 4
			l.do(12, w, Done)
			return func() { l.do(30, pg(Commit, "A", 2, 4), Done) }
		},
		"a session that then ends": func(l *tape) func() {
			l.ask(12, l.write("A", 2))
			return func() { l.Closed(2, 30*ms) }
		},
	} {
		l := newTape()
		l.acquire(10, "A", 1, "ta")
		done := play(l)
		if name != "a release" {
			l.do(15, l.release("A", 1, "ta"), Done)
		}
		churn(l, 20, 2*maxTerms)
		if l.Term(1) == nil {
			t.Errorf("%s: forgotten", name)
			continue
		}
		done()
		churn(l, 40, 2*maxTerms)
		if l.Term(1) != nil {
			t.Errorf("%s: never forgotten", name)
		}
	}
}

func TestOpenSectionsAreBounded(t *testing.T) {
	l := newTape()
	marker := l.release("M", 9, "tm")
	marker.Kind, marker.NX, marker.Key, marker.TTL = Acquire, true, "remembered", 48*time.Hour
	l.acquire(5, "A", 1, "ta")
	l.do(6, marker, Granted)
	for i := range maxOpen {
		op := l.release("B"+strconv.Itoa(i%1000), uint64(10+i%1000), "t")
		op.Kind, op.NX, op.Key = Acquire, true, "held:"+strconv.Itoa(i)
		l.do(10, op, Granted)
	}
	if len(l.open) > maxOpen {
		t.Errorf("%d are open", len(l.open))
	}
	if got := l.Term(2); got != nil && got.Open() {
		t.Error("what guards nothing goes first")
	}
}

func TestStaleSectionsAreFoundBehindALeader(t *testing.T) {
	l := newTape()
	leader := l.release("L", 5, "tl")
	leader.Kind, leader.NX, leader.Key, leader.TTL = Acquire, true, "leader", 0
	l.do(1, leader, Granted)
	l.acquire(10, "A", 1, "ta")
	churn(l, Instant((20 * time.Minute).Milliseconds()), 10)
	if got := l.Term(2); got.EndBy != Abandoned || !l.Term(1).Open() {
		t.Errorf("nothing was heard of it for twenty minutes: %+v", got)
	}
}

func TestTermsDoNotKeepThoseThatAreForgotten(t *testing.T) {
	l := newTape()
	for i := range Instant(3 * maxTerms) {
		l.acquire(600*i, "A", 1, "stable")
		l.do(600*i+100, l.release("A", 1, "stable"), Done)
	}
	depth := 0
	for at := l.Terms()[len(l.Terms())-1]; at != nil; at = at.Again {
		depth++
	}
	if depth < 2 || depth > len(l.Terms())+1 {
		t.Errorf("%d terms in a row, of %d that are remembered", depth, len(l.Terms()))
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	l := newTape()
	for i := range 3 * mostRefusals {
		op := l.release("A", 1, "t")
		op.Kind, op.Key = Acquire, "message:"+strconv.Itoa(i)
		l.do(10, op, Refused)
	}
	if n := len(l.Refusals("A")); n > mostRefusals {
		t.Errorf("%d", n)
	}
}
