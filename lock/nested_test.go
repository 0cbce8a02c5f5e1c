package lock

import (
	"slices"
	"testing"
	"time"
)

func (t *tape) take(at Instant, actor string, session uint64, key string) *Op {
	return t.do(at, &Op{Session: session, Actor: actor, Proto: Redis, Kind: Acquire, Verb: "SET", Key: key, NX: true,
		Token: t.v("token of " + key), TTL: 500 * time.Millisecond}, Granted)
}

func (t *tape) give(at Instant, actor string, session uint64, key string) *Op {
	op := t.release(actor, session, "token of "+key)
	op.Key = key
	return t.do(at, op, Done)
}

// surely reports whether an op is certainly of the terms, of the first as the innermost.
func surely(op *Op, ids ...TermID) bool {
	return op.Term.Sure() && op.Term.ID == ids[0] && slices.Equal(op.Term.Within, ids[1:])
}

func TestNestedLocksOwnWhatTheirSectionWrites(t *testing.T) {
	l := newTape()
	l.take(10, "A", 1, "outer")
	if op := l.do(15, l.write("A", 2), Done); !surely(op, 1) {
		t.Errorf("before the inner one: %+v", op.Term)
	}
	l.take(20, "A", 1, "inner")
	l.take(22, "A", 1, "third")
	if op := l.do(25, l.write("A", 2), Done); !surely(op, 3, 2, 1) || op.Term.Confidence != 0.90 {
		t.Errorf("within: %+v", op.Term)
	}
	l.give(30, "A", 1, "third")
	l.give(31, "A", 1, "inner")
	if op := l.do(35, l.write("A", 2), Done); !surely(op, 1) {
		t.Errorf("after the inner ones: %+v", op.Term)
	}
}

func TestTheTokenOfANestedLockTellsOfThoseAround(t *testing.T) {
	l := newTape(Declaration{Key: "inner", Table: "counter"})
	l.take(10, "A", 1, "outer")
	l.take(20, "A", 1, "inner")
	by := Assign{Column: "by", Value: l.v("token of inner")}
	if op := l.do(25, l.write("A", 2, by), Done); !surely(op, 2, 1) {
		t.Errorf("by its token: %+v", op.Term)
	}
	if op := l.do(26, l.write("A", 2), Done); !surely(op, 2, 1) {
		t.Errorf("by its declaration: %+v", op.Term)
	}
}

func TestTheOrderOfReleasesMayBeThatOfTheGrants(t *testing.T) {
	l := newTape()
	for at := Instant(0); at < 300; at += 100 {
		l.take(at+10, "A", 1, "outer")
		l.take(at+20, "A", 1, "inner")
		n := TermID(at/50) + 1
		if op := l.do(at+25, l.write("A", 2), Done); !surely(op, n+1, n) {
			t.Fatalf("%+v", op.Term)
		}
		l.give(at+30, "A", 1, "outer")
		l.give(at+31, "A", 1, "inner")
	}
}

func TestSeveralTasks(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(l *tape)
	}{
		{"it goes on in the inner section", func(l *tape) {
			l.take(10, "A", 1, "a")
			l.take(20, "A", 1, "b")
			l.give(30, "A", 1, "a")
			l.do(35, l.write("A", 2), Done)
			l.give(40, "A", 1, "b")
		}},
		{"it takes another lock in the inner section", func(l *tape) {
			l.take(10, "A", 1, "a")
			l.take(20, "A", 1, "b")
			l.give(30, "A", 1, "a")
			l.take(35, "A", 1, "a")
			l.give(40, "A", 1, "b")
			l.give(41, "A", 1, "a")
		}},
		{"a section has two within it", func(l *tape) {
			l.take(10, "A", 1, "a")
			l.take(20, "A", 1, "b")
			l.give(30, "A", 1, "b")
			l.take(40, "A", 1, "b")
			l.give(50, "A", 1, "b")
			l.give(60, "A", 1, "a")
		}},
		{"two connections took them", func(l *tape) {
			l.take(10, "A", 1, "a")
			l.take(20, "A", 3, "b")
			l.give(30, "A", 3, "b")
			l.give(40, "A", 1, "a")
		}},
		{"one lock twice", func(l *tape) {
			l.take(10, "A", 1, "a")
			op := l.release("A", 3, "x")
			op.Kind, op.NX, op.TTL, op.Key = Acquire, true, time.Second, "a"
			l.do(20, op, Granted)
			l.give(40, "A", 1, "a")
			op = l.release("A", 3, "x")
			op.Key = "a"
			l.do(50, op, Done)
		}},
	} {
		l := newTape()
		l.do(1, l.write("A", 9), Done) // so that the process goes on
		tt.play(l)
		if l.HasOpen("A") {
			t.Fatalf("%s: something is open", tt.name)
		}
		op := l.take(100, "A", 1, "a")
		want(t, l.do(110, l.write("A", 2), Done), op.Term.ID, 0.75)
		l.take(120, "A", 1, "b")
		w := l.do(130, l.write("A", 2), Done)
		if w.Term.Confidence != 0.60 || w.Term.ID != op.Term.ID+1 || !slices.Equal(w.Term.Also, []TermID{op.Term.ID}) {
			t.Errorf("%s: it may be of either: %+v", tt.name, w.Term)
		}
	}
}

func TestWritesOnTwoConnectionsAtOnceAreOfSeveralTasks(t *testing.T) {
	l := newTape()
	l.take(10, "A", 1, "a")
	one, two := l.ask(12, l.write("A", 2)), l.ask(13, l.write("A", 3))
	l.answer(15, one, Done)
	l.answer(16, two, Done)
	l.take(20, "A", 1, "b")
	if op := l.do(30, l.write("A", 2), Done); op.Term.Sure() && len(op.Term.Within) > 0 {
		t.Errorf("nothing shows that the locks are of one task: %+v", op.Term)
	}
}

func TestWritesOnTwoConnectionsInTurnMayBeOfOneTask(t *testing.T) {
	l := newTape()
	l.take(10, "A", 1, "a")
	l.do(12, l.write("A", 2), Done)
	l.do(15, l.write("A", 3), Done)
	l.take(20, "A", 1, "b")
	if op := l.do(30, l.write("A", 2), Done); !surely(op, 2, 1) {
		t.Errorf("%+v", op.Term)
	}
}

func TestALockOfASessionWithinASection(t *testing.T) {
	l := newTape()
	l.take(10, "A", 1, "a")
	l.do(15, l.write("A", 2, Assign{Column: "by", Value: l.v("token of a")}), Done)
	op := advisory("A", 2, "7")
	l.do(20, op, Granted)
	if w := l.do(25, l.write("A", 2), Done); !surely(w, 2, 1) {
		t.Errorf("taken on a connection of the section: %+v", w.Term)
	}
}

func TestATraceTells(t *testing.T) {
	traced := func(l *tape, actor string, session uint64, trace string, set ...Assign) *Op {
		op := l.write(actor, session, set...)
		op.SQL.Trace = trace
		return op
	}
	l := newTape()
	l.take(10, "A", 1, "a")
	l.take(11, "A", 3, "b")
	want(t, l.do(20, traced(l, "A", 2, "t1", Assign{Column: "by", Value: l.v("token of a")}), Done), 1, 1)
	want(t, l.do(30, traced(l, "A", 7, "t1"), Done), 1, 0.95)
	want(t, l.do(31, traced(l, "A", 7, "t2"), Done), 2, 0.60)
	if op := l.do(32, traced(l, "B", 8, "t1"), Done); op.Term.ID != 0 {
		t.Errorf("a trace goes from process to process: %+v", op.Term)
	}
	l.give(40, "A", 1, "a")
	if op := l.do(50, traced(l, "A", 7, "t1"), Done); op.Term.ID == 1 {
		t.Errorf("its release was asked for: %+v", op.Term)
	}
}

func TestAnAddressHasNoTasks(t *testing.T) {
	l := newTape()
	l.take(10, "@10.0.0.1", 1, "a")
	l.take(20, "@10.0.0.1", 1, "b")
	if op := l.do(30, l.write("@10.0.0.1", 2), Done); op.Term.ID != 0 {
		t.Errorf("%+v", op.Term)
	}
	l.give(40, "@10.0.0.1", 1, "b")
	want(t, l.do(50, l.write("@10.0.0.1", 2), Done), 1, 0.40)
}

func TestTheEndOfATransactionIsOfAllThatItWrote(t *testing.T) {
	explicit := func(l *tape) *Op {
		w := l.write("A", 2)
		w.Implicit, w.Tx = false, 4
		return w
	}
	l := newTape()
	l.take(10, "A", 1, "outer")
	l.do(15, explicit(l), Done)
	l.take(20, "A", 1, "inner")
	l.do(25, explicit(l), Done)
	if op := l.do(40, pg(Commit, "A", 2, 4), Done); !surely(op, 2, 1) {
		t.Errorf("both: %+v", op.Term)
	}
	l = newTape()
	l.take(10, "A", 1, "a")
	l.do(15, explicit(l), Done)
	l.give(16, "A", 1, "a")
	l.take(20, "A", 1, "b")
	l.do(25, explicit(l), Done)
	if op := l.do(40, pg(Commit, "A", 2, 4), Done); op.Term.Sure() || op.Term.ID != 1 || !slices.Equal(op.Term.Also, []TermID{2}) {
		t.Errorf("of two sections: %+v", op.Term)
	}
}

func TestASurveyFindsSeveralTasks(t *testing.T) {
	play := func(l *tape, s *Survey, order string) {
		l.do(1, l.write("A", 9), Done)
		at := Instant(10)
		for _, c := range order {
			key := string(c)
			var op *Op
			switch {
			case c == '.':
				op = l.do(at, l.write("A", 2), Done)
			case c >= 'A' && c <= 'Z':
				op = l.take(at, "A", 1, key)
			default:
				op = l.give(at, "A", 1, string(c-'a'+'A'))
			}
			s.Add(op)
			at += 10
		}
	}
	for order, several := range map[string]bool{
		"AB.ba": false, "ABab": false, "ABa.b": true, "ABbBba": true, "A.aB.b": false, "ABCcba": false, "AB.baAB.ba": false, "ABbCca": true,
	} {
		s := NewSurvey(nil)
		play(newTape(), s, order)
		l := newTape()
		l.Learn(s)
		l.take(10, "A", 1, "X")
		l.take(20, "A", 1, "Y")
		if op := l.do(30, l.write("A", 2), Done); op.Term.Sure() == several {
			t.Errorf("%s: %+v", order, op.Term)
		}
	}
}

// A process whose connections were all closed is the same when it is back: what showed
// that it has several tasks shows it still.
func TestSeveralTasksOutlastTheConnections(t *testing.T) {
	l := newTape()
	l.takes(10, "A", 1, "lock:a", "ta", 1, false)
	l.takes(11, "A", 2, "lock:b", "tb", 1, false)
	l.Closed(1, 20*ms)
	l.Closed(2, 20*ms)
	l.takes(30, "A", 3, "lock:a", "tc", 2, false)
	want(t, l.do(40, l.write("A", 3), Done), 3, 0.75)
}

func TestWritesAtOnceOutlastTheConnections(t *testing.T) {
	l := newTape()
	first, second := l.ask(1, l.write("A", 1)), l.ask(1, l.write("A", 2))
	l.answer(2, first, Done)
	l.answer(2, second, Done)
	l.Closed(1, 3*ms)
	l.Closed(2, 3*ms)
	l.takes(10, "A", 3, "lock:a", "ta", 1, false)
	l.takes(20, "A", 3, "lock:b", "tb", 1, false)
	if op := l.do(30, l.write("A", 3), Done); op.Term.Sure() {
		t.Errorf("which of its tasks wrote is not known: %+v", op.Term)
	}
}
