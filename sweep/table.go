package sweep

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Schema is the version of the JSON form. It rises when a field changes its meaning or goes.
const Schema = 1

// A Table is what a sweep came to.
type Table struct {
	Section Section
	Command []string
	Rows    []Row
	Pruned  []Trial
	Verbose bool // the text says what was left out, and why
}

// Text writes the table for people.
func (t Table) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "section   %s\n\n%s", t.Section, t.columns())
	if err == nil {
		err = t.Omitted(w)
	}
	if err == nil {
		_, err = fmt.Fprintf(w, "\n%s\n", Summary(t.Rows))
	}
	return err
}

// columns are the rows, each anchor named once.
func (t Table) columns() string {
	var b strings.Builder
	c := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(c, "anchor\tfault\tresult\tverdicts\tstable\t")
	last := ""
	for _, r := range t.Rows {
		anchor := r.Anchor
		if anchor == last {
			anchor = ""
		}
		last = r.Anchor
		fmt.Fprintf(c, "%s\t%s\t%s\t%s\t%d of %d\t%s\n", anchor, r.Fault, r.Result, strings.Join(r.Codes, " "), r.Stable, r.Of, r.Note)
	}
	_ = c.Flush() // into memory
	lines := strings.Split(b.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// Omitted says what was left out.
func (t Table) Omitted(w io.Writer) error {
	var b strings.Builder
	switch {
	case len(t.Pruned) == 0:
	case !t.Verbose:
		fmt.Fprintf(&b, "\n%d more were left out, as they could show nothing new (--verbose says why)\n", len(t.Pruned))
	default:
		b.WriteString("\nleft out\n")
		for _, p := range t.Pruned {
			fmt.Fprintf(&b, "  %s, %s: %s\n", p.Anchor, p.Fault, p.Pruned)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String says what the section is, in one line.
func (s Section) String() string {
	var steps []string
	for _, t := range s.Steps {
		steps = append(steps, t.String())
	}
	lease := "no lease"
	if s.Lease > 0 {
		lease = "lease " + s.Lease.String()
	}
	key := s.Lock
	if s.Many {
		key += " and others of its kind"
	}
	return fmt.Sprintf("%s (%s): %s; %d of %d went this way, by %d processes", key, lease, strings.Join(steps, ", "), s.Alike, s.Count, s.Actors)
}

func (t Step) String() string {
	switch {
	case t.Claim:
		return "claim " + t.Name
	case t.keyed() || t.Name == "":
		return t.Event
	}
	return t.Event + " " + t.Name
}

// Markdown writes the table for a page.
func (t Table) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Section: %s\n\n| anchor | fault | result | verdicts | stable | |\n|---|---|---|---|---|---|\n", plain(t.Section.String()))
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %d of %d | %s |\n", r.Anchor, r.Fault, r.Result, strings.Join(r.Codes, " "), r.Stable, r.Of, plain(r.Note))
	}
	for _, p := range t.Pruned {
		fmt.Fprintf(&b, "| %s | `%s` | left out | | | %s |\n", p.Anchor, p.Fault, p.Pruned)
	}
	fmt.Fprintf(&b, "\n%s\n", Summary(t.Rows))
	_, err := io.WriteString(w, b.String())
	return err
}

// plain keeps a text in its cell.
func plain(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) }

type jsonTable struct {
	Schema  int         `json:"schema"`
	Exit    int         `json:"exit"`
	Command []string    `json:"command"`
	Section jsonSection `json:"section"`
	Rows    []Row       `json:"rows"`
	Pruned  []Trial     `json:"pruned"`
}

type jsonSection struct {
	Lock    string   `json:"lock"`
	LeaseNs int64    `json:"lease_ns"`
	Steps   []string `json:"steps"`
	Seen    int      `json:"seen"`
	Alike   int      `json:"alike"`
	Actors  int      `json:"actors"`
}

// JSON writes all of it.
func (t Table) JSON(w io.Writer) error {
	s := jsonSection{Lock: t.Section.Lock, LeaseNs: int64(t.Section.Lease), Seen: t.Section.Count, Alike: t.Section.Alike, Actors: t.Section.Actors, Steps: []string{}}
	for _, step := range t.Section.Steps {
		s.Steps = append(s.Steps, step.String())
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(jsonTable{Schema, Exit(t.Rows), t.Command, s, append([]Row{}, t.Rows...), append([]Trial{}, t.Pruned...)})
}

// Estimate is how long trials take that are run k times each, by how long the run without faults took.
func Estimate(trials []Trial, s Section, k int, baseline time.Duration) (total time.Duration) {
	for _, t := range trials {
		total += time.Duration(k) * (baseline + t.waits(s.Lease))
	}
	return total
}

// waits is how much longer a fault makes a run, about.
func (t Trial) waits(lease time.Duration) time.Duration {
	switch t.Fault {
	case DropReply:
		return 0
	case Short:
		return lease / 2
	}
	return lease
}
