package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

const (
	shownAnnotations = 10      // GitHub drops the others of a step without a word
	longestMessage   = 1500    // of an annotation, in bytes: one is read beside others
	StepSummaryLimit = 1 << 20 // of one step, in bytes: GitHub drops the whole of what is longer
)

// An Annotation is one thing that a CI shows beside the code. There is one for
// each root cause: what follows from another verdict has none of its own.
type Annotation struct {
	Warning bool // else it is an error
	Title   string
	Message string

	cause  string // what it is the same by, from run to run
	runs   int    // that it was in
	times  int    // as its verdicts are counted
	count  int    // of what they count, and of that what follows from others
	train  int
	table  string
	lost   bool // by it acknowledged writes were lost
	follow bool // it tells what lost writes leave behind
}

// Annotations lists what failed the run, or left it open, the errors first.
func (r Run) Annotations() []Annotation {
	o := r.Outcome()
	out := slices.Concat(r.ownFailures(o), r.causes())
	if o.Exit == exitInconclusive {
		out = append(out, Annotation{Warning: true, Title: "lockfaultd: inconclusive", Message: strings.Join(append([]string{o.Why}, o.Reasons...), "\n"), cause: "inconclusive"})
	}
	for _, line := range r.AcceptedInVain() {
		out = append(out, Annotation{Warning: true, Title: "lockfaultd --accept", Message: line, cause: line})
	}
	for i := range out {
		out[i].runs = 1
	}
	return errorsFirst(out)
}

func errorsFirst(list []Annotation) []Annotation {
	slices.SortStableFunc(list, func(a, b Annotation) int { return cmp.Compare(one(a.Warning), one(b.Warning)) })
	return list
}

// ownFailures is what failed the run and is no verdict.
func (r Run) ownFailures(o Outcome) (out []Annotation) {
	for _, f := range []struct{ title, why string }{
		{"lockfaultd failed", r.whyInternal()}, {"an upstream was not reached", r.whyUnreachable()},
		{"expected and not found", r.whyMissing(o)}, {"the command failed", r.whyCommand()},
	} {
		if f.why != "" {
			out = append(out, Annotation{Title: "lockfaultd: " + f.title, Message: f.why, cause: f.title})
		}
	}
	if o.Exit == exitHarm && r.unexercised() && r.fails(notExercised(r)) {
		out = append(out, Annotation{Title: "LF401 not-exercised", Message: strings.Join(notExercised(r).Proofs, "\n"), cause: "LF401"})
	}
	if why := r.whyInterrupted(); why != "" {
		out = append(out, Annotation{Warning: true, Title: "lockfaultd: interrupted", Message: why, cause: "interrupted"})
	}
	return out
}

// causes makes one of all verdicts with the same code about the same lock and table,
// and leaves out what follows from others.
func (r Run) causes() []Annotation {
	var out []Annotation
	soiled := r.whySoiled() != ""
	for _, v := range slices.Concat(r.Result.Verdicts, r.blindSpots()) {
		g := group{Code: v.Code, Name: nameOf(v), Class: string(v.Class), Level: string(v.Level), Harm: v.Harm, accepted: r.acceptedBy(v)}
		fails := r.fails(g) && !soiled
		if !fails && (!g.doubtful() || r.excused(g) || r.expects(g.Code)) {
			continue
		}
		a := r.cause(v, g, !fails)
		i := slices.IndexFunc(out, func(b Annotation) bool { return a.cause == b.cause && a.Warning == b.Warning })
		if i < 0 {
			out, i = append(out, a), len(out)
		}
		times, _ := Counts(v)
		out[i].times += times
		out[i].count += max(1, v.Count)
		out[i].train += v.Train
	}
	for i, a := range out {
		out[i].Message = fmt.Sprintf("x%d, %s", a.times, a.Message)
	}
	return r.rootsOf(out)
}

func (r Run) cause(v check.Verdict, g group, warning bool) Annotation {
	key := r.patternOf(v.Lock)
	where := group{Locks: addOnce(nil, key), Tables: addOnce(nil, v.Table)}.where()
	a := Annotation{Warning: warning, Title: v.Code + " " + g.Name, cause: strings.Join([]string{v.Code, key, v.Table}, "\x00"), table: v.Table}
	a.lost = v.Code == "LF104" || v.Code == "LF106"
	a.follow = v.Code == "LF403"
	a.Message = fmt.Sprintf("%s %s", g.Level, g.meaning())
	if where != "" {
		a.Message += " on " + where
	}
	if v.Proof != "" {
		a.Message += ". " + v.Proof
	}
	return a
}

// patternOf is the lock as the map of locks names it, where locks whose keys differ
// only in an identifier are one.
func (r Run) patternOf(key string) string {
	for _, e := range r.Result.Map {
		if lock.Glob(e.Lock, key) {
			return e.Lock
		}
	}
	return key
}

// rootsOf drops what only follows from others: the rest of a train, and a counter
// that fell short where the lost updates are told.
func (r Run) rootsOf(all []Annotation) []Annotation {
	roots := slices.DeleteFunc(slices.Clone(all), func(a Annotation) bool { return a.train >= a.count || a.follow && r.explained(a, all) })
	if len(roots) == 0 {
		return all
	}
	return roots
}

// explained reports whether lost updates of the counter's table are told, and it
// did fall short.
func (r Run) explained(counter Annotation, all []Annotation) bool {
	for _, c := range r.Result.Counters {
		if c.Table == counter.table && c.Known && c.NetDeficit < 0 {
			return false
		}
	}
	return slices.ContainsFunc(all, func(a Annotation) bool { return a.lost && a.table == counter.table && a.Warning == counter.Warning })
}

// Merged lays together the annotations of several runs: what has the same cause is one.
func Merged(lists ...[]Annotation) []Annotation {
	var out []Annotation
	for _, a := range slices.Concat(lists...) {
		i := slices.IndexFunc(out, func(b Annotation) bool { return a.cause == b.cause && a.Warning == b.Warning })
		if i < 0 {
			out = append(out, a)
			continue
		}
		out[i].runs += a.runs
	}
	return errorsFirst(out)
}

// GitHub writes annotations as workflow commands, at most ten; of what there is
// beyond the last one says how much it is. With more than one run it is told in how
// many each was. It returns the writer's first error.
func GitHub(w io.Writer, list []Annotation, runs int) error {
	shown := list
	if len(list) > shownAnnotations {
		rest := list[shownAnnotations-1:]
		more := Annotation{Warning: rest[0].Warning, Title: "lockfaultd", Message: fmt.Sprintf("and %d more: the whole is in the summary", len(rest))}
		shown = append(slices.Clone(list[:shownAnnotations-1]), more)
	}
	for _, a := range shown {
		if _, err := fmt.Fprintln(w, a.command(runs)); err != nil {
			return fmt.Errorf("write annotation: %w", err)
		}
	}
	return nil
}

func (a Annotation) command(runs int) string {
	kind, message := "error", a.Message
	if a.Warning {
		kind = "warning"
	}
	if runs > 1 && a.runs > 0 {
		message = fmt.Sprintf("in %d of %d runs: %s", a.runs, runs, message)
	}
	return fmt.Sprintf("::%s title=%s::%s", kind, property(a.Title), data(shorten(message, longestMessage)))
}

// data keeps a message on the one line of its command. Line ends are the only
// control characters that are meant.
func data(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.NewReplacer("%", "%25", "\r", "%0D").Replace(plain(lines[i]))
	}
	return strings.Join(lines, "%0A")
}

// property is the same for a command's properties, which commas and colons end.
func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s))
}

// shorten cuts a text to n bytes at most, and says so by its end.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = " ..."
	return strings.ToValidUTF8(s[:n-len(more)], "") + more
}

// StepSummary writes a page that was written as Markdown, in no more than room
// bytes: what does not fit is left out from its end, by whole lines, and a last line
// says so and names where the whole is. It returns the writer's first error.
func StepSummary(w io.Writer, page []byte, room int, whole string) error {
	if len(page) > room {
		page = cutPage(page, room, whole)
	}
	if _, err := w.Write(page); err != nil {
		return fmt.Errorf("write step summary: %w", err)
	}
	return nil
}

func cutPage(page []byte, room int, whole string) []byte {
	lines := bytes.Count(page, []byte("\n"))
	note := func(kept int) string {
		return fmt.Sprintf("\n**Truncated**: %d of %d lines are shown, as GitHub takes %d KiB of a step at most. The whole is in %s.\n", kept, lines, StepSummaryLimit>>10, cellText(whole))
	}
	fits := page[:max(0, room-len(note(lines)))]
	fits = fits[:bytes.LastIndexByte(fits, '\n')+1]
	if fence := []byte("\n```"); bytes.Count(fits, fence)%2 == 1 { // in the middle of a diagram
		fits = fits[:bytes.LastIndex(fits, fence)+1]
	}
	said := note(bytes.Count(fits, []byte("\n")))
	if len(fits)+len(said) > room {
		return nil
	}
	return append(bytes.Clone(fits), said...)
}
