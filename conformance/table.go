package main

import (
	"fmt"
	"io"
	"time"
)

const layout = "%-15s %-9s %7s %7s %7s %6s %7s %10s %10s  %s\n"

func header(w io.Writer) {
	fmt.Fprintf(w, layout, "suite", "way", "passed", "failed", "skipped", "time", "conns", "to server", "to client", "bytes of both sides")
}

// row prints one run, and what was seen in it that is not as it should be.
func row(out io.Writer, v *verdict, w way, took time.Duration) {
	r, t := v.runs[w], v.trace[w]
	conns, up, down, bytes := "", "", "", ""
	if w.proxied() {
		conns, up, down, bytes = fmt.Sprint(t.report.Conns), size(t.report.Up), size(t.report.Down), identity(t)
	}
	wrong, seen := v.suite.judge(t.complaints)
	if len(wrong) > 0 {
		bytes += fmt.Sprintf("; %d COMPLAINTS", len(wrong))
	}
	fmt.Fprintf(out, layout, v.suite.name, w, fmt.Sprint(r.count(passed)), fmt.Sprint(r.count(failed)), fmt.Sprint(r.count(skipped)),
		fmt.Sprintf("%.0fs", took.Seconds()), conns, up, down, bytes)
	show(out, w, "different", t.report.Different)
	show(out, w, "complaint", wrong)
	for i, n := range seen {
		if !w.proxied() {
			break
		}
		fmt.Fprintf(out, "  %s: expected: %d times %s\n", w, n, v.suite.expects[i])
	}
	show(out, w, "warning", t.warnings)
}

func size(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%.1f KB", float64(n)/1024)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}

func identity(t trace) string {
	s := fmt.Sprintf("%d equal", t.report.Equal)
	if t.report.Cut > 0 {
		s += fmt.Sprintf(", %d equal until they broke", t.report.Cut)
	}
	if t.report.Silent > 0 {
		s += fmt.Sprintf(", %d without a word", t.report.Silent)
	}
	if t.report.Racy > 0 {
		s += fmt.Sprintf(", %d whose ends timing decides", t.report.Racy)
	}
	if n := len(t.report.Different); n > 0 {
		s += fmt.Sprintf(", %d DIFFERENT", n)
	}
	if t.open {
		s += ", some STAYED OPEN"
	}
	if len(t.warnings) > 0 {
		s += fmt.Sprintf("; %d warnings", len(t.warnings))
	}
	if t.ops > 0 {
		s += fmt.Sprintf("; %d ops, %d injections", t.ops, t.injections)
	}
	return s
}

// explain prints which tests end differently, and why they may.
func (v verdict) explain(out io.Writer) {
	for i, name := range v.changed() {
		if i == 3*most {
			fmt.Fprintf(out, "  and %d more\n", len(v.changed())-i)
			break
		}
		fmt.Fprintf(out, "  %s:", name)
		for _, w := range []way{direct, plain, armed, bare} {
			if v.runs[w] != nil {
				fmt.Fprintf(out, " %s %s", w, v.runs[w].of(name))
			}
		}
		if why := v.excuse(name); why != "" {
			fmt.Fprintf(out, " (%s)", why)
		}
		fmt.Fprintln(out)
	}
}

// most is how much of a list is printed.
const most = 10

// show prints the first of a list.
func show(out io.Writer, w way, what string, all []string) {
	for i, s := range all {
		if i == most {
			fmt.Fprintf(out, "  %s: and %d more\n", w, len(all)-most)
			return
		}
		fmt.Fprintf(out, "  %s: %s: %s\n", w, what, s)
	}
}
