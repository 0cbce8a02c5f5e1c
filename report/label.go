package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// Labels name the values of one figure: integers by themselves, where the history has
// them; of those that are kept secret, how far they are from the first of their column; and
// others v1, v2 and so on, the same for what has the same hash.
type labels map[string]*columnLabels

type columnLabels struct {
	base   lock.Value // the first secret integer
	hashes []string
}

func (l labels) of(column string, v lock.Value) string {
	c := l[column]
	if c == nil {
		c = &columnLabels{}
		l[column] = c
	}
	if v.IsInt {
		return fmt.Sprint(v.Int)
	}
	if v.IsRel {
		if !c.base.IsRel {
			c.base = v
		}
		return relative(v.Rel - c.base.Rel)
	}
	at := slices.Index(c.hashes, v.Hash)
	if at < 0 {
		c.hashes, at = append(c.hashes, v.Hash), len(c.hashes)
	}
	return fmt.Sprintf("v%d", at+1)
}

func relative(n int64) string {
	switch {
	case n == 0:
		return "n"
	case n < 0:
		return fmt.Sprintf("n - %d", -n)
	}
	return fmt.Sprintf("n + %d", n)
}

// row is what a read returned of the columns that the figure is about.
func (b *figureBuilder) row(op *lock.Op) string {
	var said []string
	for _, c := range op.Row {
		if slices.Contains(b.columns, c.Column) && c.Value.Known() {
			said = append(said, b.named(c.Column, b.labels.of(c.Column, c.Value)))
		}
	}
	if len(said) == 0 {
		return " " + op.SQL.Table
	}
	return " " + strings.Join(said, ", ")
}

// put is what a write assigns, and the fence or version that it demands.
func (b *figureBuilder) put(op *lock.Op) string {
	var said []string
	for _, a := range op.SQL.Set {
		switch {
		case a.HasDelta:
			said = append(said, fmt.Sprintf("%s %+d", a.Column, a.Delta))
		case a.Value.Known():
			said = append(said, b.named(a.Column, b.labels.of(a.Column, a.Value)))
		}
	}
	if len(said) == 0 {
		said = []string{op.Verb + " " + op.SQL.Table}
	}
	text := " " + few(said, 2)
	for _, g := range op.SQL.Where {
		if slices.Contains(b.columns, g.Column) && g.Value.Known() {
			text += fmt.Sprintf(" if %s %s %s", g.Column, g.Op, b.labels.of(g.Column, g.Value))
		}
	}
	return text
}

// named is a value with its column, where the figure is about several.
func (b *figureBuilder) named(column, label string) string {
	if len(b.columns) == 1 {
		return label
	}
	return column + " = " + label
}
