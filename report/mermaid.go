package report

import (
	"fmt"
	"regexp"
	"strings"
)

// mermaid writes a figure as a sequence diagram, which GitHub and others draw of a page in
// Markdown.
func (m *markdown) mermaid(f *Figure) {
	m.line("")
	m.line("```mermaid")
	m.line("sequenceDiagram")
	order := make([]string, 0, len(f.Lanes)+1)
	for i, l := range f.Lanes {
		name := l.Who
		if l.Letter != "" {
			name = l.Letter + " (" + l.Who + ")"
		}
		order = append(order, fmt.Sprintf("    participant L%d as %s", i, mermaidText(name)))
		if i == 0 && f.Data != "" { // between the first two
			order = append(order, fmt.Sprintf("    participant D as %s", mermaidText(f.Data)))
		}
	}
	for _, line := range order {
		m.line("%s", line)
	}
	for _, s := range f.Steps {
		m.line("    %s: %s", mermaidArrow(f, s), mermaidText(mermaidWords(s)))
	}
	m.line("```")
}

// mermaidArrow is who does a step, and to whom.
func mermaidArrow(f *Figure, s Step) string {
	lane := fmt.Sprintf("L%d", s.Lane)
	switch {
	case f.Data == "":
	case s.Kind == StepRead:
		return "D-->>" + lane
	case (s.Kind == StepWrite || s.Kind == StepEnd) && s.Void:
		return lane + "-xD"
	case s.Kind == StepWrite || s.Kind == StepEnd:
		return lane + "->>D"
	}
	return "Note over " + lane
}

func mermaidWords(s Step) string {
	words := At(s.At) + " ms, " + s.Words()
	if s.Op != 0 {
		words += fmt.Sprintf(" (op %d)", s.Op)
	}
	return words
}

// longestLabel is how much of a text a diagram has room for, in letters.
const longestLabel = 100

// mermaidText keeps a text from being read as anything but text: what is neither a letter,
// a digit nor harmless is written by its number, as mermaid has it. An end by itself would
// end a block.
func mermaidText(text string) string {
	var b strings.Builder
	n := 0
	for _, c := range plain(text) {
		if n++; n > longestLabel {
			b.WriteString("...")
			break
		}
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(" .,()_", c):
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, "#%d;", c)
		}
	}
	return endWord.ReplaceAllStringFunc(b.String(), func(w string) string { return fmt.Sprintf("#%d;%s", w[0], w[1:]) })
}

var endWord = regexp.MustCompile(`(?i)\bend\b`)
