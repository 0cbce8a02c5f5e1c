package sweep

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// An Outcome is what one run of a trial came to, by its report and its history.
type Outcome struct {
	Term     lock.TermID // whose op the fault was at; 0: none
	Exit     int
	Why      string
	Verdicts []Verdict
	Happened string // the outcome of the injection; "" if there was none
	Reason   string // why it came to that, or why there was none
}

// A Verdict is one of the judge's.
type Verdict struct {
	Terms []lock.TermID // concerned
	Code  string
	Level string
	Class string
	Harm  bool
}

// The results of a trial.
const (
	Fails    = "FAILS"        // harm was proven
	Survives = "survives"     // the fault was there, and no harm came of it
	Unclear  = "unclear"      // it was there, and the evidence does not suffice
	Gone     = "gave up"      // the client closed its connection, or the command failed
	Shut     = "never opened" // what its gate waited for did not come about
	Absent   = "no fault"     // its moment did not come, or the process could not be frozen
)

// A Row is a trial with what it came to each time.
type Row struct {
	Trial
	Result  string   `json:"result"`
	Codes   []string `json:"codes"`          // harm and defences that were proven each time; with a question mark: not each time
	Hazards []string `json:"hazards"`        // likewise
	Stable  int      `json:"stable"`         // how often it came to this result and these codes
	Of      int      `json:"of"`             // how often it was run
	Note    string   `json:"note,omitempty"` // why it came to no more
}

// NewRow puts together what the runs of a trial came to. One run that fails is a proof, whatever the
// others came to.
func NewRow(t Trial, runs []Outcome) Row {
	r := Row{Trial: t, Of: len(runs)}
	order := []string{Fails, Unclear, Gone, Shut, Absent, Survives}
	worst := slices.MinFunc(runs, func(a, b Outcome) int { return slices.Index(order, a.result()) - slices.Index(order, b.result()) })
	r.Result, r.Note = worst.result(), worst.note()
	r.Codes, r.Hazards = often(runs, shown), often(runs, hazard)
	for _, o := range runs {
		if o.result() == r.Result && slices.Equal(o.codes(shown), usual(runs, r.Result)) {
			r.Stable++
		}
	}
	return r
}

// usual are the codes to which most of the runs of one result came.
func usual(runs []Outcome, result string) (best []string) {
	counts, most := map[string]int{}, 0
	for _, o := range runs {
		if o.result() != result {
			continue
		}
		codes := o.codes(shown)
		key := strings.Join(codes, " ")
		if counts[key]++; counts[key] > most {
			best, most = codes, counts[key]
		}
	}
	return best
}

// often lists the codes of all runs, with a question mark those that were not found in each.
func often(runs []Outcome, which func(Verdict) bool) []string {
	counts := map[string]int{}
	for _, o := range runs {
		for _, c := range o.codes(which) {
			counts[c]++
		}
	}
	out := []string{}
	for _, c := range sortedKeys(counts) {
		if counts[c] < len(runs) {
			c += "?"
		}
		out = append(out, c)
	}
	return out
}

func (o Outcome) codes(which func(Verdict) bool) []string {
	var out []string
	for _, v := range o.Verdicts {
		if v.Level == "PROVEN" && which(v) && !o.beside(v) {
			out = append(out, v.Code)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func shown(v Verdict) bool  { return v.Harm || v.Class == "good" }
func hazard(v Verdict) bool { return !shown(v) && v.Class != "inconclusive" }

func (o Outcome) result() string {
	switch {
	case o.harm(func(v Verdict) bool { return v.Level == "PROVEN" && !o.beside(v) }):
		return Fails
	case o.Happened == "":
		return Absent
	case o.Happened == "never opened":
		return Shut
	case o.Exit == 12 || o.Happened == "client-gave-up":
		return Gone
	case o.Happened != "landed":
		return Absent
	case o.harm(func(Verdict) bool { return true }):
		return Unclear
	}
	return Survives
}

func (o Outcome) harm(which func(Verdict) bool) bool {
	return slices.ContainsFunc(o.Verdicts, func(v Verdict) bool { return v.Harm && which(v) })
}

// Beside lists the harm that is not owed to the fault: it is of other sections, one of which outran its
// lease by itself, as happens on a machine that is slow for the lease.
func (o Outcome) Beside() []string {
	var out []string
	for _, v := range o.Verdicts {
		if v.Harm && o.beside(v) {
			out = append(out, v.Code)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// beside reports whether a verdict is about other sections, one of which outran its lease. One of no section, a
// counter's, is if all harm with sections is.
func (o Outcome) beside(v Verdict) bool {
	if len(v.Terms) == 0 {
		of := func(v Verdict) bool { return len(v.Terms) > 0 }
		return o.harm(of) && !o.harm(func(v Verdict) bool { return of(v) && !o.beside(v) })
	}
	return !slices.Contains(v.Terms, o.Term) && slices.ContainsFunc(v.Terms, o.outran)
}

// outran reports whether a term outran its lease, and not by the fault.
func (o Outcome) outran(id lock.TermID) bool {
	return id != o.Term && slices.ContainsFunc(o.Verdicts, func(v Verdict) bool { return v.Code == "LF101" && slices.Contains(v.Terms, id) })
}

// note says why a run shows no more than it does.
func (o Outcome) note() string {
	switch o.result() {
	case Fails, Survives:
		return ""
	case Gone:
		if o.Exit == 12 {
			return o.Why
		}
		return o.Reason
	case Unclear:
		if beside := o.Beside(); len(beside) > 0 {
			return strings.Join(beside, " ") + " of sections that outran their lease without the fault: it is short for this machine"
		}
		return o.Why
	case Shut:
		return o.Reason
	}
	return strings.TrimPrefix(o.Happened+": "+o.Reason, ": ")
}

// Exit is the exit status of a whole table: 10 if anything fails, 11 if anything shows nothing.
func Exit(rows []Row) int {
	exit := 0
	for _, r := range rows {
		switch r.Result {
		case Fails:
			return 10
		case Survives:
		default:
			exit = 11
		}
	}
	return exit
}

// Summary says in one line what the table comes to.
func Summary(rows []Row) string {
	counts := map[string]int{}
	shaky := 0
	for _, r := range rows {
		counts[r.Result]++
		if r.Stable < r.Of {
			shaky++
		}
	}
	var parts []string
	for _, result := range []string{Fails, Survives, Unclear, Gone, Shut, Absent} {
		if counts[result] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[result], result))
		}
	}
	s := fmt.Sprintf("%d trials: %s", len(rows), strings.Join(parts, ", "))
	if shaky > 0 {
		s += fmt.Sprintf("; %d not the same each time", shaky)
	}
	return s
}
