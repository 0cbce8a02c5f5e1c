package lock

import (
	"testing"
	"time"
)

// tries has another process ask for the lock.
func (t *tape) tries(at Instant, out Outcome) *Op {
	return t.do(at, &Op{Session: 9, Actor: "Z", Proto: Redis, Kind: Acquire, Verb: "SET", Key: "lock:c", NX: true, Token: t.v("tz"), TTL: 500 * time.Millisecond}, out)
}

// A lock that is refused while nobody who was seen can have it is a stranger's.
func TestStranger(t *testing.T) {
	for name, tt := range map[string]struct {
		act  func(l *tape)
		out  Outcome
		want bool
	}{
		"nobody was seen":        {func(*tape) {}, Refused, true},
		"it only failed":         {func(*tape) {}, Failed, false},
		"somebody has it":        {func(l *tape) { l.acquire(10, "A", 1, "ta") }, Refused, false},
		"it was given back":      {func(l *tape) { l.acquire(10, "A", 1, "ta"); l.do(20, l.release("A", 1, "ta"), Done) }, Refused, true},
		"it is being given back": {func(l *tape) { l.acquire(10, "A", 1, "ta"); l.ask(20, l.release("A", 1, "ta")) }, Refused, false},
		"its holder has gone":    {func(l *tape) { l.acquire(10, "A", 1, "ta"); l.Closed(1, 20*ms) }, Refused, false},
		"its key marks what was done": {func(l *tape) {
			for i := range Instant(6) {
				l.acquire(-60000+10000*i, "A", 1, string(rune('a'+i)))
			}
		}, Refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTape()
			tt.act(l)
			if got := l.Stranger(l.tries(30, tt.out)); got != tt.want {
				t.Errorf("%t", got)
			}
		})
	}
}

// Its lease is over at last, too.
func TestStrangerBehindALease(t *testing.T) {
	l := newTape()
	l.acquire(10, "A", 1, "ta")
	l.Closed(1, 20*ms)
	if l.Stranger(l.tries(512, Refused)) || !l.Stranger(l.tries(600, Refused)) {
		t.Error("the clock decides")
	}
}

// Who asks for a place among members is refused his own.
func TestNoStrangerAmongMembers(t *testing.T) {
	l := newTape()
	l.joins(1, "permits", "u")
	l.parts(2, "permits", "u")
	op := l.do(10, &Op{Session: 9, Actor: "Z", Proto: Redis, Kind: Acquire, Verb: "SADD", Key: "permits", NX: true, Member: true, Token: l.v("u")}, Refused)
	if l.Stranger(op) {
		t.Error("nobody has the whole")
	}
}
