package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The page: a column of labels, then text, no line longer than width.
const (
	width  = 100
	margin = 12
)

// A page writes labelled, wrapped lines. Its first error sticks, and silences
// the rest.
type page struct {
	w   io.Writer
	err error
}

// put writes text under a label, wrapped, each further line indented by
// margin and by hang. An empty label leaves its column blank.
func (p *page) put(label string, hang int, text string) {
	first := pad(label, margin)
	rest := strings.Repeat(" ", margin+hang)
	for _, line := range wrap(plain(text), width-margin-hang) {
		p.raw(first + line)
		first = rest
	}
}

// sub writes a line that belongs to the one above it, indented by depth; what
// does not fit on it goes on two further in.
func (p *page) sub(depth int, text string) {
	indent := strings.Repeat(" ", depth)
	for _, line := range wrap(plain(text), width-depth-2) {
		p.raw(indent + line)
		indent = strings.Repeat(" ", depth+2)
	}
}

// item is sub with a dash in front, so that long neighbours stay apart.
func (p *page) item(depth int, text string) {
	lead := strings.Repeat(" ", depth) + "- "
	for _, line := range wrap(plain(text), width-depth-2) {
		p.raw(lead + line)
		lead = strings.Repeat(" ", depth+2)
	}
}

// list is put for a list: the label stands before the first entry.
func (p *page) list(label string, entries []string) {
	for i, e := range entries {
		if i > 0 {
			label = ""
		}
		p.put(label, 2, e)
	}
}

// shell writes a command that can be copied: broken between words only, with a
// backslash, and never inside one.
func (p *page) shell(label, command string) {
	lines := breakCommand(plain(command), width-margin-4)
	for i, line := range lines {
		lead, tail := strings.Repeat(" ", margin+2), ""
		if i == 0 {
			lead = pad(label, margin)
		}
		if i < len(lines)-1 {
			tail = ` \`
		}
		p.raw(lead + line + tail)
	}
}

func (p *page) raw(line string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(line, " "))
	}
}

func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(1, n-utf8.RuneCountInString(s)))
}

// plain makes text safe for a terminal: keys and names come from the wire and
// may hold anything, escape sequences included. A newline becomes a space.
func plain(s string) string {
	var b strings.Builder
	for _, c := range s {
		switch {
		case c == '\n' || c == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(c) && c != utf8.RuneError:
			b.WriteRune(c)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(c), "'"))
		}
	}
	return b.String()
}

// wrap breaks text at spaces into lines of at most n letters; a word that is
// longer is cut.
func wrap(text string, n int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(text) {
		for _, part := range cut(word, n) {
			size := utf8.RuneCountInString(part)
			if used > 0 && used+1+size > n {
				lines = append(lines, line)
				line, used = "", 0
			}
			if used > 0 {
				line, used = line+" ", used+1
			}
			line, used = line+part, used+size
		}
	}
	return append(lines, line)
}

func cut(word string, n int) []string {
	var parts []string
	for runes := []rune(word); ; runes = runes[n:] {
		if len(runes) <= n {
			return append(parts, string(runes))
		}
		parts = append(parts, string(runes[:n]))
	}
}

// breakCommand is wrap for a shell command: its words keep their quotes and
// are never cut.
func breakCommand(command string, n int) []string {
	var lines []string
	line := ""
	for _, word := range withValues(shellWords(command), n) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > n {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// withValues puts a flag and its value together where a line can hold both,
// and likewise the wrapped command, which read better so.
func withValues(words []string, n int) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" {
			return append(out, wholeOr(words[i:], n)...)
		}
		if i+1 < len(words) && takesValue(word) && !strings.HasPrefix(words[i+1], "-") &&
			utf8.RuneCountInString(word)+1+utf8.RuneCountInString(words[i+1]) <= n {
			i++
			word += " " + words[i]
		}
		out = append(out, word)
	}
	return out
}

func wholeOr(words []string, n int) []string {
	if whole := strings.Join(words, " "); utf8.RuneCountInString(whole) <= n {
		return []string{whole}
	}
	return words
}

func takesValue(word string) bool {
	return strings.HasPrefix(word, "-") && !strings.Contains(word, "=")
}

// shellWords splits at spaces outside quotes.
func shellWords(command string) []string {
	var words []string
	var word strings.Builder
	quoted, escaped := rune(0), false
	for _, c := range command {
		if c == ' ' && quoted == 0 && !escaped {
			if word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			continue
		}
		word.WriteRune(c)
		quoted, escaped = nextQuote(quoted, escaped, c)
	}
	if word.Len() > 0 {
		words = append(words, word.String())
	}
	return words
}

// nextQuote follows a POSIX shell's quoting over one letter.
func nextQuote(quoted rune, escaped bool, c rune) (rune, bool) {
	switch {
	case escaped:
		return quoted, false
	case c == '\\' && quoted != '\'':
		return quoted, true
	case quoted == 0 && (c == '\'' || c == '"'):
		return c, false
	case c == quoted:
		return 0, false
	}
	return quoted, false
}
