package lock

import (
	"testing"
	"time"
)

// Who is told to ask otherwise, or elsewhere, was not refused.
func TestAnAttemptIsNoRefusal(t *testing.T) {
	for word, refused := range map[string]bool{"NOSCRIPT": false, "MOVED": false, "ASK": false, "BUSY": true, "ERR": true, "": true} {
		l := newTape()
		op := &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Acquire, Verb: "EVALSHA", Key: "lock:c", NX: true,
			Token: l.v("ta"), TTL: time.Second, Err: word}
		l.do(10, op, Failed)
		if got := l.Refused("A", IDOf(op)) != nil; got != refused {
			t.Errorf("%q: refused: %v", word, got)
		}
	}
}

// What was refused before stays so.
func TestAnAttemptTakesNoRefusalBack(t *testing.T) {
	l := newTape()
	ask := func(at Instant, out Outcome, word string) *Op {
		return l.do(at, &Op{Session: 1, Actor: "A", Proto: Redis, Kind: Acquire, Verb: "EVALSHA", Key: "lock:c", NX: true,
			Token: l.v("ta"), TTL: time.Second, Err: word}, out)
	}
	first := ask(10, Refused, "")
	ask(20, Failed, "NOSCRIPT")
	if got := l.Refused("A", IDOf(first)); got != first {
		t.Errorf("%+v", got)
	}
}

// Of a quorum's servers it takes a majority that was asked rightly.
func TestAnAttemptIsNoVote(t *testing.T) {
	for word, refused := range map[string]bool{"NOSCRIPT": false, "BUSY": true} {
		l := newTape(Declaration{Key: "lock:c", Quorum: 3})
		l.Servers(3)
		for i, name := range []string{"r1", "r2", "r3"} {
			l.do(Instant(10+i), &Op{Session: uint64(i + 1), Actor: "A", Proto: Redis, Upstream: name, Kind: Acquire, Verb: "EVALSHA",
				Key: "lock:c", NX: true, Token: l.v("ta"), TTL: time.Second, Err: word}, Failed)
		}
		if got := l.Refused("A", LockID{Quorum, 0, "lock:c"}) != nil; got != refused {
			t.Errorf("%q: refused: %v", word, got)
		}
	}
}
