package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A result is what a run at a gate must come to: no more, and no less.
type result struct {
	owed              string // the verdict that the held op owes: PROVEN, once, and its proof names the op
	beside            string // the harm that is PROVEN beside it
	deficit, rejected int
	says              string // part of why the gate did not open
	exit              int
}

// loss is one update that is lost, by a write that no fence refuses.
func loss() result { return result{owed: "LF104", beside: "LF403", deficit: 1, exit: 10} }

// refusal is one write or claim that its fence refuses.
func refusal() result { return result{owed: "LF201", rejected: 1} }

// overrun is a lease that was outrun, and nothing that came of it.
func overrun() result { return result{owed: "LF101"} }

// renewed is a gate that waits in vain.
func renewed() result { return result{says: "renewed by heartbeat", exit: 11} }

func (w result) String() string {
	return fmt.Sprintf("%s, deficit %d, rejected %d, exit %d", w.words(), w.deficit, w.rejected, w.exit)
}

// words are its codes, or what is said instead.
func (w result) words() string { return cmp.Or(strings.Trim(w.owed+" "+w.beside, " "), w.says) }

// must says what is wrong with an outcome. What is more than is wanted is accepted only where a further
// section has outrun its lease.
func (g gateRow) must(o outcome) string {
	w, others := g.want, o.others(g.want) > 0
	codes, want := o.harmAndDefence(), w.harmAndDefence()
	lacks := func(c string) bool { return !slices.Contains(codes, c) }
	switch {
	case w.says != "" && !o.report.says(w.says):
		return "expected that it says " + w.says
	case w.owed != "" && o.report.owed(w.owed) != 1:
		return fmt.Sprintf("expected one %s that names the held op, got %d", w.owed, o.report.owed(w.owed))
	case slices.ContainsFunc(want, lacks), !others && !slices.Equal(codes, want):
		return fmt.Sprintf("expected %v, got %v", want, codes)
	case !others && w.owed != "" && o.report.count(w.owed) != 1:
		return fmt.Sprintf("expected %s once, got %d", w.owed, o.report.count(w.owed))
	case between(w.deficit, o.report.Counter.NetDeficit, others):
		return fmt.Sprintf("expected a deficit of %d, got %d", w.deficit, o.report.Counter.NetDeficit)
	case between(w.rejected, o.load.Rejected, others):
		return fmt.Sprintf("expected %d to be rejected, got %d", w.rejected, o.load.Rejected)
	case o.report.regressed():
		return "a fence fell"
	case o.exit != w.exit && (!others || o.report.Counter.NetDeficit == w.deficit):
		return fmt.Sprintf("expected exit %d, got %d: %s", w.exit, o.exit, o.report.Why)
	}
	return agrees(o)
}

// between reports whether a figure is not as it must be; one may be higher where others have done the same.
func between(want, got int, others bool) bool { return got < want || got > want && !others }

// harmAndDefence returns the codes of harm and of defences that are wanted, sorted.
func (w result) harmAndDefence() (out []string) {
	for _, c := range []string{w.owed, w.beside} {
		if c != "" && c != "LF101" {
			out = append(out, c)
		}
	}
	return out
}

// harmAndDefence returns what was proven of these.
func (o outcome) harmAndDefence() []string {
	return strings.Fields(replayed{Verdicts: o.report.Verdicts}.codes())
}

// others is how many sections outran their lease beside the one whose op was held.
func (o outcome) others(w result) int {
	late := replayed{Verdicts: o.report.Verdicts}.late()
	if w.owed != "" {
		late--
	}
	return late
}

// says reports whether a gate did not open for a reason.
func (r report) says(why string) bool {
	return slices.ContainsFunc(r.Injections.List, func(i injection) bool { return strings.Contains(i.Reason, why) })
}

// owed is how many proofs of PROVEN verdicts of that code name the op that was held.
func (r report) owed(code string) (n int) {
	for _, v := range r.Verdicts {
		for _, p := range v.Proofs {
			names := func(i injection) bool { return strings.Contains(p, fmt.Sprintf(" op %d (", i.Op)) }
			if v.Code == code && v.Level == "PROVEN" && slices.ContainsFunc(r.Injections.List, names) {
				n++
			}
		}
	}
	return n
}

// count is how often a code was found, at whatever level.
func (r report) count(code string) (n int) {
	for _, v := range r.Verdicts {
		if v.Code == code {
			n += v.Count
		}
	}
	return n
}

// regressed reports whether a lower fence was, or may have been, accepted after a higher one.
func (r report) regressed() bool {
	return r.count("LF105") > 0 || slices.ContainsFunc(r.Fences, func(f fence) bool { return f.Regressions > 0 })
}
