package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockfaultd/lockfaultd/docs"
)

// Explain writes what a verdict means, what proves it, what it is not and what
// to do about it: the section of docs/verdicts.md, laid out for a terminal. It
// takes a code or a name, in either case. An error without a write names the
// nearest known one.
func Explain(w io.Writer, name string) error {
	c, ok := lookup(name)
	if !ok {
		return &UnknownCode{name, closest(name, nil)}
	}
	p := &page{w: w}
	p.raw(fmt.Sprintf("%s %s (%s): %s", c.Code, c.Name, c.Class, c.Short))
	for _, part := range partsOf(sectionOf(docs.Verdicts(), c)) {
		p.raw("")
		p.put(part.label, 0, part.text)
	}
	return p.err
}

// An UnknownCode is a word that is neither a verdict's code nor its name.
type UnknownCode struct{ Word, Nearest string }

func (e *UnknownCode) Error() string {
	return fmt.Sprintf("unknown verdict %q: the nearest is %s; expected a code or a name, as LF104 or lost-update", e.Word, e.Nearest)
}

// List writes every code in a line of its own.
func List(w io.Writer) error {
	p := &page{w: w}
	for _, c := range Codes() {
		p.raw(fmt.Sprintf("%s  %-23s %-13s %s", c.Code, c.Name, c.Class, c.Short))
	}
	return p.err
}

// sectionOf returns the text below a code's heading.
func sectionOf(page string, c Code) string {
	_, rest, _ := strings.Cut(page, "\n## "+c.Code+" "+c.Name+"\n")
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

type part struct{ label, text string }

// partsOf splits a section into its paragraphs. Each begins with what it is, in
// italics; the first with the class.
func partsOf(section string) []part {
	labels := map[string]string{"Proof": "proof", "Not": "is not", "Do": "do"}
	var out []part
	for _, paragraph := range strings.Split(strings.TrimSpace(section), "\n\n") {
		head, text, ok := strings.Cut(strings.TrimPrefix(paragraph, "*"), ".* ")
		if !ok {
			continue
		}
		label, ok := labels[head]
		if !ok {
			label = "means"
		}
		out = append(out, part{label, text})
	}
	return out
}

// Advice is what docs/verdicts.md says that a code means, and what to do about it.
func Advice(c Code) (means, do string) {
	for _, p := range partsOf(sectionOf(docs.Verdicts(), c)) {
		switch p.label {
		case "means":
			means = oneLine(p.text)
		case "do":
			do = oneLine(p.text)
		}
	}
	return means, do
}

// oneLine undoes the breaks of a page's paragraph.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
