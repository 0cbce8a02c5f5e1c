package report

import (
	"fmt"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
)

// orderOf says what the gates of a rule kept waiting when they had opened, "" if nothing.
func (r Run) orderOf(u RuleUse) string {
	n, cut, longest := 0, []string{}, time.Duration(0)
	for _, t := range r.turnsOf(u) {
		n++
		longest = max(longest, t.Ended.Sub(t.At))
		if t.Cut != "" {
			cut = append(cut, t.Cut)
		}
	}
	if n == 0 {
		return ""
	}
	said := fmt.Sprintf("the order behind its gates: %s of others waited for the answer, %s at most", many(n, "request"), span(longest))
	if len(cut) > 0 {
		said += fmt.Sprintf("; %d of them went on before it: %s", len(cut), few(once(cut), 3))
	}
	return said
}

// turnsOf lists what waited behind the injections of a rule.
func (r Run) turnsOf(u RuleUse) (out []history.Turn) {
	owned := map[uint64]bool{}
	for _, i := range r.Injections {
		owned[i.ID] = u.owns(i)
	}
	for _, t := range r.Turns {
		if owned[t.Injection] {
			out = append(out, t)
		}
	}
	return out
}

func once(list []string) (out []string) {
	for _, s := range list {
		out = addOnce(out, s)
	}
	return out
}

type jsonTurn struct {
	Injection uint64 `json:"injection"`
	Op        uint64 `json:"op"`
	Session   uint64 `json:"session"`
	Actor     string `json:"actor,omitempty"`
	AtNs      int64  `json:"at_ns"`
	EndedNs   int64  `json:"ended_ns"`
	Cut       string `json:"cut,omitempty"`
}

func toJSONTurn(t history.Turn) jsonTurn {
	return jsonTurn{t.Injection, t.Op, t.Session, t.Actor, int64(t.At), int64(t.Ended), t.Cut}
}
