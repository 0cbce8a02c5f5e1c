package main

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

func TestWhereInjectionsLand(t *testing.T) {
	const a, b = lock.TermID(1), lock.TermID(2)
	ops := []*lock.Op{
		{Seq: 1, Kind: lock.Acquire, Outcome: lock.Granted, Actor: "A1", TTL: 100, F: 10, R: 12, D: 13, Term: lock.Attribution{ID: a}},
		{Seq: 3, Kind: lock.Write, Outcome: lock.Done, Actor: "A1", F: 20, R: 22, Term: lock.Attribution{ID: a}},
		{Seq: 5, Kind: lock.Release, Outcome: lock.Done, Actor: "A1", A: 28, F: 30, R: 31, Term: lock.Attribution{ID: a}},
		{Seq: 7, Kind: lock.Acquire, Outcome: lock.Granted, Actor: "A2", TTL: 100, F: 40, R: 42, D: 43, Term: lock.Attribution{ID: b}},
		{Seq: 9, Kind: lock.Write, Outcome: lock.Done, Actor: "A2", F: 200, R: 201, Term: lock.Attribution{ID: b}},
		{Seq: 11, Kind: lock.Write, Outcome: lock.Done, Actor: "A1", F: 50, R: 51},
	}
	of := func(op uint64, actor string, at, ended lock.Instant) history.Injection {
		return history.Injection{Actor: actor, Op: op, At: at, Ended: ended, Outcome: "landed", Section: true}
	}
	outside := of(3, "A1", 15, 20)
	outside.Section = false
	gone := of(3, "A1", 15, 20)
	gone.Outcome = "client-gave-up"
	for _, tt := range []struct {
		name string
		what history.Injection
		why  string
	}{
		{"in the midst of it", of(3, "A1", 15, 20), ""},
		{"from the grant", of(1, "A1", 12, 20), ""},
		{"to the release", of(5, "A1", 28, 30), ""},
		{"no time", of(3, "A1", 22, 0), ""},
		{"for longer than the lease", of(9, "A2", 100, 200), ""},
		{"before the grant", of(1, "A1", 11, 20), "the lock was had from 12ns, and its lease ran until 110ns"},
		{"past the release", of(5, "A1", 28, 31), "the lock was given back at 30ns"},
		{"when the lease was over", of(9, "A2", 140, 200), "the lock was had from 42ns, and its lease ran until 140ns"},
		{"at another", of(3, "A2", 15, 20), "it is A2's, the term A1's"},
		{"at an op of no term", of(11, "A1", 15, 20), "its op belongs to no term"},
		{"at no op", of(12, "A1", 15, 20), "its op is not in the history"},
		{"in none, as the history has it", outside, "the history says that its target was in a section: false"},
		{"not at all", gone, "client-gave-up "},
	} {
		got := landings(&history.History{Ops: ops, Injections: []history.Injection{tt.what}}, false)
		why := strings.Join(got.astray, "")
		if got.armed != 1 || got.landed+len(got.astray) != 1 || (tt.why == "") != (got.landed == 1) || !strings.HasSuffix(why, tt.why) {
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
	// A section is over when its release is asked for.
	end := of(5, "A1", 28, 30)
	for _, tt := range []struct {
		what   history.Injection
		landed int
	}{{end, 0}, {outside, 0}, {history.Injection{Actor: "A1", Op: 5, At: 28, Ended: 30, Outcome: "landed"}, 1}} {
		if got := landings(&history.History{Ops: ops, Injections: []history.Injection{tt.what}}, true); got.landed != tt.landed {
			t.Errorf("at the end: %+v: got %+v", tt.what, got)
		}
	}
}
