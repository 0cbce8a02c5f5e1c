package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// counts are of one service, or of a history.
type counts struct {
	Granted, Refused, Renewed, Unrenewed, Released, Unreleased, Lost, Wrote int
}

func (c counts) plus(d counts) counts {
	a, b := c.fields(), d.fields()
	for i := range a {
		*a[i].n += *b[i].n
	}
	return c
}

type field struct {
	name string
	n    *int
}

func (c *counts) fields() []field {
	return []field{
		{"granted", &c.Granted}, {"refused", &c.Refused}, {"renewed", &c.Renewed}, {"unrenewed", &c.Unrenewed},
		{"released", &c.Released}, {"unreleased", &c.Unreleased}, {"lost", &c.Lost}, {"wrote", &c.Wrote},
	}
}

// String names what is not zero.
func (c counts) String() string {
	var parts []string
	for _, f := range c.fields() {
		if *f.n != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", f.name, *f.n))
		}
	}
	return strings.Join(parts, ", ")
}

// tally counts the ops of the library's lock, and says how they are known.
func tally(lib subject, ops []*lock.Op) (c counts, evidence string) {
	how := map[string]int{}
	promoted := stored(ops)
	for _, op := range ops {
		if ok, _ := path.Match(lib.keys, op.Key); !ok {
			continue
		}
		if n := c.of(op, promoted); n != nil {
			*n++
			how[string(op.Evidence)]++
		}
	}
	for _, e := range slices.Sorted(maps.Keys(how)) {
		name := e
		if e == "" {
			name = "wire"
		}
		evidence += fmt.Sprintf(" %s %d", name, how[e])
	}
	return c, strings.TrimSpace(evidence)
}

// stored finds the tokens that were stored without NX and are a lock's all the
// same, since somebody compared them.
func stored(ops []*lock.Op) map[string]bool {
	compared := map[string]bool{}
	for _, op := range ops {
		if op.Guarded && op.Key != "" {
			compared[op.Key+" "+op.Token.Hash] = true
		}
	}
	return compared
}

func (c *counts) of(op *lock.Op, promoted map[string]bool) *int {
	switch {
	case op.Kind == lock.Acquire && op.Outcome == lock.Granted,
		op.Kind == lock.Store && op.Outcome == lock.Done && promoted[op.Key+" "+op.Token.Hash]:
		return &c.Granted
	case op.Kind == lock.Acquire && op.Outcome == lock.Refused:
		return &c.Refused
	case op.Kind == lock.Renew && op.Outcome == lock.Done:
		return &c.Renewed
	case op.Kind == lock.Renew && op.Outcome == lock.NotHeld:
		return &c.Unrenewed
	case op.Kind == lock.Release && op.Outcome == lock.Done && op.Depth == 0:
		return &c.Released
	case op.Kind == lock.Release && op.Outcome == lock.NotHeld:
		return &c.Unreleased
	}
	return nil
}

// A report is what is read of report.json.
type report struct {
	Counters []struct {
		NetDeficit *int64 `json:"net_deficit"`
	}
	Verdicts []struct{ Code, Level string }
	Facts    struct {
		Locks []lockFact
	}
}

type lockFact struct {
	Lock   string
	Marker bool // the report itself says that it is no lock
}

// judged takes the verdicts over, and finds what is no lock of the library.
func (o *outcome) judged(r report) {
	var codes []string
	for _, v := range r.Verdicts {
		code := v.Code
		if v.Level != "PROVEN" {
			code += " " + v.Level
		}
		codes = append(codes, code)
	}
	slices.Sort(codes)
	o.verdicts = strings.Join(slices.Compact(codes), ", ")
	if len(r.Counters) == 1 && r.Counters[0].NetDeficit != nil {
		o.deficit = *r.Counters[0].NetDeficit
	}
	for _, l := range r.Facts.Locks {
		name := strings.Fields(l.Lock)[0]
		own, _ := path.Match(o.keys, name)
		if also, _ := path.Match(o.also, name); !own && !also && !l.Marker && !o.tolerates(name) {
			o.wrong = append(o.wrong, fmt.Sprintf("%s is taken for a lock", l.Lock))
		}
	}
}

// compare finds what is not as it is written down.
func (o *outcome) compare() {
	want := o.rows[o.row]
	if o.row == soak {
		want.verdicts = "LF401"
	}
	if verdicts := o.certain(o.verdicts); !slices.Contains(want.or, orNone(verdicts)) {
		o.equal("verdicts", verdicts, want.verdicts)
	}
	if o.row == clean || o.row == soak {
		o.sums()
		return
	}
	o.equal("A reports", o.a.String(), want.says)
	b := o.b
	b.Refused = 0 // however often it came in vain
	o.equal("B reports", b.String(), want.other())
	seen := o.seen
	if o.cleansUp {
		seen.Unreleased -= seen.Refused
	}
	seen.Refused = 0
	if o.retries { // what it does between is as often as it has time for
		seen.Renewed, seen.Unrenewed, seen.Unreleased = 0, 0, 0
	}
	if o.retries && o.alone {
		seen.Released = 0 // it clears what is stale, too
	}
	if o.row == lose {
		seen.Unrenewed = 0 // as many as it has time for
	}
	if o.each == 0 { // of several keys it may have any
		o.equal("the history has", seen.String(), want.ops)
	}
}

func (o *outcome) equal(what, got, want string) {
	if got != want {
		o.wrong = append(o.wrong, fmt.Sprintf("%s: %s; expected: %s", what, orNone(got), orNone(want)))
	}
}

// sums compares the history of a row without harm with what the services counted.
func (o *outcome) sums() {
	want := o.a.plus(o.b)
	want.Wrote, want.Lost = 0, 0
	if o.tx {
		want.Released = 0
	}
	if o.each > 0 {
		o.majorities(want)
		return
	}
	if o.cleansUp {
		want.Unreleased += want.Refused
	}
	seen := o.seen
	if o.alone {
		seen.Renewed = 0
	}
	if o.effects != "" {
		seen = o.excuse(seen, want)
	}
	if o.retries {
		seen.Refused, want.Refused, seen.Unreleased = 0, 0, 0
	}
	o.equal("the history has", seen.String(), want.String())
}

// majorities compares a lock of several keys, of which most have to be granted. The
// others may be late, and are then let go again.
func (o *outcome) majorities(said counts) {
	seen, most, slack := o.seen, o.each/2+1, o.slack()
	if seen.Granted+slack < most*said.Granted || seen.Granted > o.each*(said.Granted+said.Refused) {
		o.wrong = append(o.wrong, fmt.Sprintf("%d keys were granted, of %d each for %d locks", seen.Granted, o.each, said.Granted))
	}
	if o.effects != "" && seen.Unrenewed > said.Unrenewed {
		o.wrong = append(o.wrong, fmt.Sprintf("%d renewals were refused, and %d by the library", seen.Unrenewed, said.Unrenewed))
	}
	if seen.Released+seen.Unreleased+slack < seen.Granted {
		o.wrong = append(o.wrong, fmt.Sprintf("%d keys were granted, and %d released", seen.Granted, seen.Released+seen.Unreleased))
	}
}

func orNone(s string) string {
	if s == "" {
		return nothing
	}
	return s
}
