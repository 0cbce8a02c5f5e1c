package lock

import (
	"testing"
	"time"
)

// granted is a lease of 500 ms that was granted in [100, 110].
func granted() (lease, *Op) {
	op := &Op{Kind: Acquire, A: 99 * ms, F: 100 * ms, R: 110 * ms, Guarded: true}
	return leaseBy(op, 500*time.Millisecond), op
}

// Whole seconds that are cut off may be nearly one each time.
func TestACoarseLeaseMayBeASecondOut(t *testing.T) {
	fine, op := granted()
	op.Coarse = true
	coarse := Lease(op, 500*time.Millisecond)
	if fine.known.Earliest-coarse.Earliest != 1000*ms || coarse.Latest-fine.known.Latest != 1000*ms {
		t.Errorf("%v, and in whole seconds %v", fine.known, coarse)
	}
	l, _ := granted()
	l.suspend(&Op{A: 200 * ms, TTL: 500 * time.Millisecond, Coarse: true})
	if l.held() > 0 {
		t.Errorf("held until %v; expected a renewal in flight to be as coarse", l.held())
	}
}

func notHeld(f, r Instant) *Op {
	return &Op{Kind: Release, Guarded: true, A: f * ms, F: f * ms, R: r * ms, Outcome: NotHeld}
}

func TestAnOwnerThatIsDeniedHoldsNothing(t *testing.T) {
	l, grant := granted()
	earliest := l.held()
	l.denies(notHeld(300, 310))
	if l.gone == nil || l.held() != 300*ms || earliest <= 300*ms {
		t.Errorf("held until %v, once %v; expected until it was asked", l.held(), earliest)
	}
	if end := l.end(grant); end != (Interval{grant.R, 310 * ms}) {
		t.Errorf("the lease ended in %v; expected from the grant's answer until the denial's", end)
	}
	l.denies(notHeld(200, 210))
	if l.gone.F != 300*ms || l.held() != 200*ms {
		t.Errorf("gone by %v, held until %v; expected the first denial to stand, and the earliest of all", l.gone.F, l.held())
	}
}

func TestAnotherLeaseMayHaveBeenDenied(t *testing.T) {
	for name, op := range map[string]*Op{
		"answered before the grant was asked": notHeld(90, 100),
		"not compared with an owner":          {Kind: Release, F: 300 * ms, R: 310 * ms},
		"a guess":                             {Kind: Release, Guarded: true, Guessed: true, F: 300 * ms, R: 310 * ms},
	} {
		l, _ := granted()
		until := l.held()
		if l.denies(op); l.gone != nil || l.held() != until {
			t.Errorf("%s: gone by %v, held until %v, was %v", name, l.gone, l.held(), until)
		}
	}
	for name, op := range map[string]*Op{
		"asked before the grant was answered": notHeld(105, 120),
		"asked just before":                   notHeld(109, 120),
	} {
		l, _ := granted()
		if l.denies(op); l.gone != nil || l.held() != op.F {
			t.Errorf("%s: gone by %v, held until %v; expected it to be open which came first", name, l.gone, l.held())
		}
	}
	l, _ := granted()
	if l.denies(notHeld(110, 120)); l.gone == nil {
		t.Error("asked when the grant had been answered: expected it to be gone")
	}
}

func TestDenialsThatAreKeptAreBounded(t *testing.T) {
	l, _ := granted()
	for i := range Instant(3 * maxDenied) {
		l.denies(notHeld(300+i, 301+i))
	}
	if len(l.denied) != maxDenied || l.held() != 300*ms {
		t.Errorf("%d are kept and it was held until %v; expected the first %d", len(l.denied), l.held(), maxDenied)
	}
}

func TestARenewalEndsWhatWasDeniedBefore(t *testing.T) {
	l, grant := granted()
	l.denies(notHeld(200, 210))
	l.denies(notHeld(220, 260))
	l.set(&Op{Kind: Renew, Guarded: true, F: 210 * ms, R: 250 * ms}, 500*time.Millisecond)
	if l.gone != nil || l.held() != 220*ms {
		t.Errorf("gone by %v, held until %v; expected the denial alone that may have come later", l.gone, l.held())
	}
	if got, want := l.end(grant), l.known; got != want {
		t.Errorf("the lease ends in %v; expected the clock's %v", got, want)
	}
}

func TestARenewalWithoutATokenMayHaveBeenOfAnother(t *testing.T) {
	l, _ := granted()
	sure := l.known.Earliest
	blind := &Op{Kind: Renew, F: 300 * ms, R: 310 * ms}
	again := &Op{Kind: Renew, F: 400 * ms, R: 410 * ms}
	l.set(blind, time.Second)
	l.set(again, time.Second)
	if l.blind != again || l.sure != sure {
		t.Errorf("blind %v, sure until %v; expected the last renewal, and %v as of the grant", l.blind, l.sure, sure)
	}
	token := NewHasher([]byte("k")).Of([]byte("a"))
	l.set(&Op{Kind: Renew, Guarded: true, Token: token, F: 500 * ms, R: 510 * ms}, time.Second)
	if l.blind != nil {
		t.Errorf("blind %v after a renewal that named its token", l.blind)
	}
	known := l.known.Earliest
	l.set(blind, time.Second)
	if l.sure != known {
		t.Errorf("sure until %v; expected %v, as of the renewal that named its token", l.sure, known)
	}
	l.set(&Op{Kind: Acquire, F: 600 * ms, R: 610 * ms}, time.Second)
	if l.blind != nil {
		t.Errorf("blind %v after a grant", l.blind)
	}
}

func TestTheEndIsOpenWhileARenewalIsOut(t *testing.T) {
	l, grant := granted()
	known := l.known
	for _, at := range []Instant{300, 200, 400} {
		l.suspend(&Op{Kind: Renew, A: at * ms, TTL: 50 * time.Millisecond})
	}
	early := Lease(&Op{F: 200 * ms}, 50*time.Millisecond).Earliest
	if got := l.clock(); got != (Interval{early, Never}) {
		t.Errorf("it ends in %v; expected from %v, the earliest of the renewals", got, early)
	}
	l.denies(notHeld(500, 510))
	if got := l.end(grant); got.Latest != Never {
		t.Errorf("it ends in %v; expected a renewal that is out to be able to set it anew", got)
	}
	for l.inflight > 0 {
		l.inflight--
	}
	l.gone = nil
	if l.clock() != known {
		t.Errorf("it ends in %v; expected %v", l.clock(), known)
	}
	l.suspend(&Op{Kind: Renew, A: 350 * ms, TTL: 50 * time.Millisecond})
	if early := Lease(&Op{F: 350 * ms}, 50*time.Millisecond).Earliest; l.clock().Earliest != early {
		t.Errorf("it ends from %v; expected %v: the renewals before are over", l.clock().Earliest, early)
	}
}
