package main

import (
	"fmt"
	"io"
	"strings"
)

const layout = "%-20s %-7s %5s  %-62s %-70s %s\n"

func header(w io.Writer) {
	fmt.Fprintf(w, layout, "library", "row", "time", "reports", "history", "verdicts")
}

// print writes one row, and what is wrong with it.
func (o outcome) print(w io.Writer) {
	says := o.a.String()
	if o.row == clean || o.row == soak {
		says = o.a.plus(o.b).String()
	}
	seen := o.seen.String()
	if o.evidence != "" {
		seen += " (" + o.evidence + ")"
	}
	fmt.Fprintf(w, layout, o.name, o.label(), fmt.Sprintf("%.1fs", o.took.Seconds()), says, seen, orNone(o.verdicts))
	for _, s := range o.wrong {
		fmt.Fprintln(w, "  DEVIATES:", strings.ReplaceAll(s, "\n", "\n    "))
	}
}

// writeMarkdown writes the table of docs/matrix.md.
func writeMarkdown(w io.Writer) {
	fmt.Fprintln(w, "| library | versions | late | freeze | renew |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, l := range subjects() {
		fmt.Fprintf(w, "| %s | %s |", l.name, l.versions)
		for _, r := range []string{late, freeze, renew} {
			fmt.Fprintf(w, " %s |", l.cell(r))
		}
		fmt.Fprintln(w)
	}
}

// cell says what A reports, and the verdicts.
func (l subject) cell(row string) string {
	want, has := l.rows[row]
	if !has {
		return "-"
	}
	cell := want.says + ": " + orNone(want.verdicts)
	for _, other := range want.or {
		cell += ", or " + other
	}
	return cell
}
