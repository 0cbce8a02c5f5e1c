package main

import (
	"fmt"
	"io"
	"strings"
)

// The targets of docs/performance.md, for lockfaultd with 100 rules and the
// history. A ratio of rates below 1 by less than sameRate is no worse.
const (
	toxiBudget = 0.85
	ruleBudget = 1.05
	sameRate   = 0.97
)

func rate(s sample) float64 { return s.Rate }
func cost(s sample) float64 { return s.cost() }

// table prints what each way did with a workload.
func (b *bench) table(out io.Writer, w workload) {
	unit, scale := "CPU s/M", 1e6
	rateUnit, rateScale := "requests/s", 1.0
	if w.bytes > 0 {
		unit, scale = "CPU s/GB", 1e9/float64(w.bytes)
		rateUnit, rateScale = "MB/s", float64(w.bytes)/1e6
	}
	fmt.Fprintf(out, "### %s\n\n", w.name)
	row(out, "way", rateUnit, "x direct", "p50 ms", "p99 ms", unit, "CPU / copy", "CPU / toxiproxy")
	fmt.Fprintln(out, "|"+strings.Repeat("---|", 8))
	for _, to := range b.ways {
		s := of(b.samples, w.name, to.name)
		against := func(way string, f func(sample) float64) spread { return ratios(s, of(b.samples, w.name, way), f) }
		row(out, to.name, fmt.Sprintf("%.0f", rateScale*each(s, rate).mid), number(against(direct, rate).mid),
			millis(each(s, func(s sample) float64 { return s.P50 })), millis(each(s, func(s sample) float64 { return s.P99 })),
			number(scale*each(s, cost).mid), against(copying, cost).String(), against(toxiproxy, cost).String())
	}
	fmt.Fprintln(out)
}

func row(out io.Writer, cells ...any) {
	fmt.Fprintf(out, "| %-13s | %10s | %8s | %6s | %6s | %8s | %17s | %17s |\n", cells...)
}

func number(f float64) string {
	if f == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", f)
}

func millis(s spread) string {
	if s.mid == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", s.mid)
}

func (s spread) String() string {
	if s.mid == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", s.mid, s.min, s.max)
}

// targets prints what was to be reached, and whether it was.
func (b *bench) targets(out io.Writer, done []workload) {
	fmt.Fprintf(out, "### Targets: %s\n\n", recording)
	fmt.Fprintf(out, "CPU of copy at most %.2f (%.2f where many requests come in one read), of toxiproxy at most %.2f; rates of\n"+
		"both at least %.2f; CPU of %s at most %.2f of %s. HAProxy has no target.\n\n",
		usual, batched, toxiBudget, sameRate, armed, ruleBudget, bare)
	targetRow(out, "workload", "CPU/copy", "CPU/toxi", "rate/copy", "rate/toxi", "rules/none", "CPU/haproxy")
	fmt.Fprintln(out, "|"+strings.Repeat("---|", 7))
	for _, w := range done {
		against := func(a, b2 string, f func(sample) float64) float64 {
			return ratios(of(b.samples, w.name, a), of(b.samples, w.name, b2), f).mid
		}
		targetRow(out, w.name,
			atMost(against(recording, copying, cost), w.budget), atMost(against(recording, toxiproxy, cost), toxiBudget),
			atLeast(against(recording, copying, rate), sameRate), atLeast(against(recording, toxiproxy, rate), sameRate),
			atMost(against(armed, bare, cost), ruleBudget), number(against(recording, haproxy, cost)))
	}
}

func targetRow(out io.Writer, cells ...any) {
	fmt.Fprintf(out, "| %-19s | %11s | %11s | %11s | %11s | %11s | %11s |\n", cells...)
}

func atMost(f, limit float64) string { return verdict(f, f <= limit) }

func atLeast(f, limit float64) string { return verdict(f, f >= limit) }

// verdict says whether a figure keeps to its target. To be read at a glance,
// what is missed stands in capitals.
func verdict(f float64, met bool) string {
	switch {
	case f == 0:
		return ""
	case met:
		return fmt.Sprintf("%.2f met", f)
	}
	return fmt.Sprintf("%.2f MISSED", f)
}
