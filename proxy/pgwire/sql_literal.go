package pgwire

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxIdentifier is how many bytes of an identifier Postgres heeds.
const maxIdentifier = 63

// name returns the identifier that a word or a quoted token stands for.
func (t token) name() string { return t.nameBy('\\') }

// nameBy is name with the escape character that UESCAPE gives.
func (t token) nameBy(escape byte) string {
	if t.kind != tokQuoted {
		return clipName(lower(t.text))
	}
	from := strings.IndexByte(t.text, '"') + 1
	s := strings.ReplaceAll(strings.TrimSuffix(t.text[from:], `"`), `""`, `"`)
	if from > 1 {
		s = decode(s, escape)
	}
	return clipName(strings.Clone(s))
}

// name returns the table's name, with its qualifiers.
func (m mention) name() string {
	if len(m.text) == len(m.last.text) {
		return m.last.name()
	}
	p := parser{lex: lexer{src: m.text}}
	p.advance()
	return p.table()
}

// is reports whether the table's name is the one given.
func (m mention) is(name string) bool {
	if len(m.text) != len(m.last.text) || m.last.kind != tokWord || len(m.text) > maxIdentifier {
		return m.name() == name
	}
	if len(name) != len(m.text) {
		return false
	}
	for i := range len(name) {
		if c := m.text[i]; c != name[i] && !(c >= 'A' && c <= 'Z' && c|0x20 == name[i]) {
			return false
		}
	}
	return true
}

// lower returns a word of its own in lower case. Only ASCII has any.
func lower(s string) string {
	var buf [maxIdentifier + 1]byte
	b := append(buf[:0], s...)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] |= 0x20
		}
	}
	return string(b)
}

// clipName cuts an identifier where Postgres does, which is never within a
// character.
func clipName(s string) string {
	if len(s) <= maxIdentifier {
		return s
	}
	n := maxIdentifier
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.Clone(s[:n])
}

// decode reads the escapes of U&"": four digits, or six behind a plus.
func decode(s string, escape byte) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != escape {
			b.WriteByte(s[i])
			continue
		}
		from, n := i+1, 4
		if strings.HasPrefix(s[from:], "+") {
			from, n = from+1, 6
		}
		if strings.HasPrefix(s[from:], string(rune(escape))) {
			b.WriteByte(escape)
			i++
		} else if code, err := strconv.ParseUint(s[from:min(from+n, len(s))], 16, 32); err == nil {
			b.WriteRune(rune(code))
			i = from + n - 1
		}
	}
	return b.String()
}

// literal returns the text that a string token stands for, and whether it is
// certain.
func (t token) literal() (string, bool) {
	switch t.text[0] {
	case '\'':
		return unquote(t.text, false), true
	case 'e', 'E':
		return unescape(unquote(t.text[1:], true))
	case 'n', 'N':
		return unquote(t.text[1:], false), true
	case '$':
		n := strings.IndexByte(t.text[1:], '$') + 2
		if len(t.text) < 2*n {
			return "", false
		}
		return t.text[n : len(t.text)-n], true
	}
	return "", false
}

// unquote joins what is in the quotes of a string, of which there may be
// several. A backslash keeps what follows it, if those are escapes.
func unquote(s string, escapes bool) string {
	plain := len(s) >= 2 && strings.IndexByte(s[1:], '\'') == len(s)-2
	if plain && !(escapes && s[len(s)-2] == '\\') {
		return s[1 : len(s)-1]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
		case s[i] != '\'':
			b.WriteByte(s[i])
		case strings.HasPrefix(s[i+1:], "'"):
			b.WriteByte('\'')
			i++
		case i+1 < len(s):
			i = reopened(s, i+1)
		}
	}
	return b.String()
}

// reopened returns where the quote is with which a string goes on, behind
// space and comments.
func reopened(s string, from int) int {
	l := lexer{src: s, pos: from}
	l.space()
	return l.pos
}

// unescape reads the plain backslash escapes; octal, hexadecimal and Unicode
// ones are given up on.
func unescape(s string) (string, bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' {
			i++
			if i == len(s) || isDigit(s[i]) || strings.IndexByte("xuU", s[i]) >= 0 {
				return "", false
			}
			c = s[i]
			if n := strings.IndexByte("bfnrt", c); n >= 0 {
				c = "\b\f\n\r\t"[n]
			}
		}
		out = append(out, c)
	}
	return string(out), true
}

// verbOf returns a word in capitals. Those that matter cost no memory.
func verbOf(word string) string {
	var buf [16]byte
	b := append(buf[:0], word...)
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] &^= 0x20
		}
	}
	switch string(b) {
	case "SELECT", "TABLE":
		return "SELECT"
	case "INSERT":
		return "INSERT"
	case "UPDATE":
		return "UPDATE"
	case "DELETE":
		return "DELETE"
	case "BEGIN":
		return "BEGIN"
	case "COMMIT":
		return "COMMIT"
	case "ROLLBACK":
		return "ROLLBACK"
	case "SET":
		return "SET"
	}
	return clipName(string(b))
}
