package lock

import (
	"slices"
	"strconv"
	"testing"
)

func surveyOf(decls []Declaration, ops ...*Op) *Survey {
	s := NewSurvey(decls)
	for _, op := range ops {
		s.Add(op)
	}
	return s
}

// taken plays a SET NX of a key to a ledger that learned from a survey.
func markerAfterLearning(s *Survey, key string) bool {
	l := newTape()
	l.Learn(s)
	op := l.do(10, &Op{Session: 1, Actor: "A", Kind: Acquire, Key: key, NX: true, Token: l.v("x")}, Granted)
	return l.Term(op.Term.ID).Marker
}

func TestASurveyDoesNotMindTheOrderOfLines(t *testing.T) {
	l := newTape()
	ops := []*Op{store(l, 1, "A", "ta"), {Session: 2, Actor: "A", Kind: Release, Key: "lock:c", Guarded: true, Token: l.v("ta")}}
	for range 2 {
		s := surveyOf(nil, ops...)
		if !s.locks[LockID{Key: "lock:c"}] {
			t.Error("what was stored is compared and deleted: it is a lock")
		}
		slices.Reverse(ops)
	}
}

func TestASurveyFindsMarkers(t *testing.T) {
	take := func(key, token string) *Op {
		return &Op{Session: 1, Actor: "A", Kind: Acquire, Key: key, NX: true, Token: Value{Hash: token}, Outcome: Granted}
	}
	drop := func(kind Kind, key, token string) *Op {
		return &Op{Session: 1, Actor: "A", Kind: kind, Key: key, Guarded: token != "", Token: Value{Hash: token}}
	}
	taken := []*Op{take("m:1", "a"), take("m:2", "b"), take("m:3", "c")}
	for _, tt := range []struct {
		name string
		more []*Op
		want bool
	}{
		{"nobody gives them up", nil, true},
		{"one is released", []*Op{drop(Release, "m:2", "b")}, false},
		{"one is renewed", []*Op{drop(Renew, "m:2", "b")}, false},
		{"one is deleted by its taker", []*Op{drop(Release, "m:2", "")}, false},
		{"a release names another token", []*Op{drop(Release, "m:2", "x")}, true},
		{"another key is deleted", []*Op{drop(Release, "n:2", "")}, true},
	} {
		if got := markerAfterLearning(surveyOf(nil, append(tt.more, taken...)...), "m:9"); got != tt.want {
			t.Errorf("%s: marker %v", tt.name, got)
		}
		if got := markerAfterLearning(surveyOf(nil, append(slices.Clone(taken), tt.more...)...), "m:9"); got != tt.want {
			t.Errorf("%s, and later: marker %v", tt.name, got)
		}
	}
	if markerAfterLearning(surveyOf(nil, taken[:2]...), "m:9") {
		t.Error("two are too few")
	}
	if markerAfterLearning(surveyOf(nil, taken[0], taken[0], taken[0]), "m:9") {
		t.Error("one grant that is told thrice is one")
	}
	if markerAfterLearning(surveyOf([]Declaration{{Key: "m:*"}}, taken...), "m:9") {
		t.Error("a declared lock is no marker")
	}
}

// Scripts note a setting in a field that nobody had set, and look at others of that key later.
func TestASettingIsNoLock(t *testing.T) {
	field := func(l *tape, kind Kind, token string, out Outcome) *Op {
		op := member(l, kind, "A", 1, token)
		if op.TTL = 0; token == "" {
			op.Token = Value{}
		}
		op.Outcome = out
		return op
	}
	for _, tt := range []struct {
		name string
		kind Kind
		out  Outcome
		want bool
	}{
		{"what looks at it later found another token", Release, NotHeld, true},
		{"nothing was stored", Store, NotHeld, true},
		{"a holder gave it up", Release, Done, false},
		{"a holder extended it", Renew, Done, false},
	} {
		l := newTape()
		token := map[bool]string{true: "", false: "default"}[tt.out == NotHeld && tt.kind == Release]
		ops := []*Op{field(l, Acquire, "default", Granted), field(l, Acquire, "", Refused), field(l, tt.kind, token, tt.out)}
		if tt.kind == Store {
			ops[2].Token = l.v("worker")
			ops = append(ops, field(l, Release, "worker", NotHeld))
		}
		l.Learn(surveyOf(nil, ops...))
		op := l.do(10, field(l, Acquire, "default", Granted), Granted)
		if got := l.Term(op.Term.ID).Marker; got != tt.want {
			t.Errorf("%s: marker %v", tt.name, got)
		}
	}
}

func TestASurveyIsBounded(t *testing.T) {
	s := NewSurvey(nil)
	letters := func(i int) string { // so that each is of a shape of its own
		b := []byte(strconv.Itoa(i))
		for j := range b {
			b[j] += 'a' - '0'
		}
		return string(b)
	}
	for i := range 3 * maxSurveyed {
		token := Value{Hash: strconv.Itoa(i)}
		s.Add(&Op{Kind: Store, Key: "c:" + letters(i), Token: token})
		s.Add(&Op{Kind: Store, Key: "hot", Token: token})
		s.Add(&Op{Kind: Store, Key: "lock:" + letters(i), Token: token})
		s.Add(&Op{Kind: Release, Key: "lock:" + letters(i), Token: token, Guarded: true})
	}
	hot := s.keys.all[LockID{Key: "hot"}]
	if len(s.keys.all) > maxSurveyed || len(s.keys.line) > maxSurveyed || len(s.groups.all) > maxSurveyed || len(s.locks) > maxPromoted {
		t.Errorf("%d keys, %d in line, %d shapes, %d locks", len(s.keys.all), len(s.keys.line), len(s.groups.all), len(s.locks))
	}
	if hot != nil && len(hot.taken) > maxRecent {
		t.Errorf("%d tokens of one key", len(hot.taken))
	}
}
