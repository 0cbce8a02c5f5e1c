package check

import "github.com/lockfaultd/lockfaultd/history"

// From returns the input that a history is: its ops and what else was
// observed, and none of its injections.
func From(h *history.History) Input {
	in := Input{Ops: h.Ops, Declarations: h.Header.Declarations}
	for _, e := range h.Ends {
		in.Ends = append(in.Ends, End(e))
	}
	for _, g := range h.Gaps {
		in.Gaps = append(in.Gaps, Gap(g))
	}
	for _, i := range h.Header.Invariants {
		in.Invariants = append(in.Invariants, Invariant(i))
	}
	return in
}
