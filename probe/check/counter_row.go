package check

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

var (
	filters   = regexp.MustCompile(`(?i)\bwhere\b`)
	chooses   = regexp.MustCompile(`(?i)\b(?:order|limit|offset|fetch)\b`) // among rows, by what is no condition
	condition = regexp.MustCompile(`(?i)^\s*(?:\w+\.|"\w+"\.)*(?:(\w+)|"(\w+)")\s*=\s*(?:(-?\d+)|'(?:[^']|'')*')\s*(?:and\b|;?\s*$)`)
)

// conditions returns the comparisons with integers and texts in a query, if they
// are all that chooses its row. The value of a text is not known: a history keeps it
// as a hash only.
func conditions(query string) (out []lock.Cond, whole bool) {
	at := filters.FindStringIndex(query)
	if at == nil {
		return nil, !chooses.MatchString(query)
	}
	for rest := query[at[1]:]; rest != "" || len(out) == 0; {
		m := condition.FindStringSubmatch(rest)
		if m == nil {
			return nil, false
		}
		c := lock.Cond{Column: cmp.Or(m[2], strings.ToLower(m[1])), Op: "="}
		if m[3] != "" {
			n, err := strconv.ParseInt(m[3], 10, 64)
			if err != nil {
				return nil, false
			}
			c.Value = lock.Value{Int: n, IsInt: true}
		}
		out, rest = append(out, c), rest[len(m[0]):]
	}
	return out, true
}

// writes lists the accepted and the uncertain writes in view that may be of the
// counter, by the order of their effects.
func (t *tally) writes(c *kase) []*write {
	var out []*write
	for _, w := range slices.Concat(c.writes, c.beside) {
		if (w.state == accepted || w.state == uncertain) && w.of(t.inv.Table) && t.concerns(w) && !t.hasRead(w) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b *write) int { return cmp.Compare(a.hi, b.hi) })
	return out
}

// hasRead reports whether the first reading already has what the write did.
func (t *tally) hasRead(w *write) bool {
	return t.inv.HasStart && t.inv.ReadAt != 0 && w.state == accepted && w.hi <= t.inv.ReadAt
}

// straddles reports whether the first reading may have what the write did, or not.
func (t *tally) straddles(w *write) bool {
	return t.inv.HasStart && t.out.Epochs == 0 && w.lo < t.inv.ReadAt && t.inv.ReadAt < w.hi
}

// ofRow leaves out the writes that insert or delete another row than the one that
// is updated, and gives the sum up where that cannot be told. Until a row is
// updated it is not known which that is: then they count, and are looked at again.
func (t *tally) ofRow(c *kase, w *write, all []*write) bool {
	switch {
	case t.several:
		return true
	case w.op.Verb == "UPDATE" && t.row == "":
		t.row = w.row
		t.unbounded = t.unbounded || slices.ContainsFunc(t.before, func(w *write) bool { return t.elsewhere(w) && w.op.Verb == "INSERT" })
		if slices.ContainsFunc(t.before, t.another) {
			t.again(c, all)
		}
		t.before = nil
	case w.op.Verb == "UPDATE":
		t.several = w.row != t.row
	case t.row == "":
		if t.before = append(t.before, w); len(t.before) > mostWaiting {
			t.crowded, t.before = true, nil
		}
	case t.another(w):
		return false
	default:
		t.unbounded = t.unbounded || t.elsewhere(w) && w.op.Verb == "INSERT"
	}
	return true
}

func (t *tally) elsewhere(w *write) bool { return w.row != t.row && !t.another(w) }

// another reports whether a write is certainly of another row than the one that is
// updated.
func (t *tally) another(w *write) bool {
	return w.row != t.row && w.row != unknownRow && !strings.HasSuffix(w.row, "/")
}

// again sums once more what was met before it was known which row is updated.
func (t *tally) again(c *kase, all []*write) {
	t.anew()
	t.hanging = nil
	t.start, t.known, t.out.Epochs = t.inv.Start, t.inv.HasStart, 0
	for _, w := range t.before {
		if !t.another(w) {
			t.addOne(c, w, all)
		}
	}
}

// place gives the sum up if the write may be of another row than the one that the
// query reads: it does not name that by the query's own columns, or the query by
// more than is understood. Of one that the query names by a text it is not certain.
func (t *tally) place(w *write) {
	if len(w.op.SQL.Where) == 0 && !w.op.SQL.Opaque && w.op.Verb != "INSERT" {
		return // it is of every row
	}
	t.unbounded = t.unbounded || !t.whole
	for _, q := range t.conds {
		v, ok := columnIn(w, q.Column)
		switch {
		case !ok || q.Value.IsInt && !v.IsInt:
			t.unbounded = true
		case !q.Value.IsInt:
			t.unnamed = true
		}
	}
}

// columnIn returns the value of a column in the row that a write is of.
func columnIn(w *write, column string) (lock.Value, bool) {
	for _, g := range w.op.SQL.Where {
		if g.Column == column && g.Op == "=" && g.Value.Known() {
			return g.Value, true
		}
	}
	a, ok := w.assigns(column)
	return a.Value, ok && w.op.Verb == "INSERT" && a.Value.Known()
}

// concerns reports whether the write may have changed the counter.
func (t *tally) concerns(w *write) bool {
	for _, q := range t.conds {
		for _, g := range w.op.SQL.Where {
			if g.Column == q.Column && g.Op == "=" && g.Value.IsInt && q.Value.IsInt && g.Value.Int != q.Value.Int {
				return false
			}
		}
		if a, ok := w.assigns(q.Column); ok && w.op.Verb == "INSERT" && a.Value.IsInt && q.Value.IsInt && a.Value.Int != q.Value.Int {
			return false
		}
	}
	_, ok := w.assigns(t.inv.Column)
	return ok || w.op.Verb != "UPDATE"
}

// sets reports whether a write sets the value anew.
func (t *tally) sets(c *kase, w *write) bool {
	a, _ := w.assigns(t.inv.Column)
	if _, guarded := t.guardOf(w); w.op.Verb == "UPDATE" && (a.HasDelta || !a.Value.Known() || guarded || t.baseOf(c, w) != nil) {
		return false
	}
	return w.state == accepted && !w.op.SQL.Upsert
}

// epoch starts the sum again at a write that set the value anew. What may still
// come counts after it, and if it is not certain which writes did the sum is given up.
func (t *tally) epoch(c *kase, e *write, all []*write) {
	hanging := t.hanging
	t.anew()
	t.hanging = nil
	a, ok := e.assigns(t.inv.Column)
	t.out.Epochs++
	t.start, t.known = a.Value.Int, ok && a.Value.IsInt
	for _, w := range slices.Concat(all, hanging) {
		if w != e && w.id != e.id && !w.before(e) && !e.before(w) && (t.several || t.row == "" && w.row == e.row || t.row != "" && !t.another(w)) {
			t.unordered = true
		}
	}
	for _, w := range hanging {
		t.hang(w)
		t.intentOf(c, w)
	}
}
