package pgwire

import (
	"strings"
)

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // keyword or name
	tokQuoted           // "name"
	tokString           // 'text' in any of its forms
	tokNumber           //
	tokParam            // $1
	tokOp               // operator or punctuation
)

// A token is one word of a SQL text, as written.
type token struct {
	kind tokenKind
	text string
}

func (t token) op(s string) bool { return t.kind == tokOp && t.text == s }

func (t token) word(s string) bool { return t.kind == tokWord && strings.EqualFold(t.text, s) }

// A lexer cuts a SQL text into tokens as Postgres does with
// standard_conforming_strings on. Anything is accepted: what is not closed
// ends with the text.
type lexer struct {
	src string
	pos int
}

func (l *lexer) next() token {
	l.space()
	if l.pos >= len(l.src) {
		return token{}
	}
	from := l.pos
	kind := l.scan(l.src[l.pos])
	return token{kind: kind, text: l.src[from:l.pos]}
}

func (l *lexer) scan(c byte) tokenKind {
	switch {
	case c == '\'':
		l.quoted('\'', false)
		return tokString
	case c == '"':
		l.quoted('"', false)
		return tokQuoted
	case c == '$':
		return l.dollar()
	case isDigit(c) || c == '.' && isDigit(l.at(1)):
		l.number()
		return tokNumber
	case isLetter(c):
		return l.wordOrString()
	}
	return l.operator(c)
}

// at returns the byte n places ahead, 0 behind the end.
func (l *lexer) at(n int) byte {
	if l.pos+n < len(l.src) {
		return l.src[l.pos+n]
	}
	return 0
}

func (l *lexer) space() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == ' ' || c >= '\t' && c <= '\r':
			l.pos++
		case c == '-' && l.at(1) == '-':
			l.line()
		case c == '/' && l.at(1) == '*':
			l.comment()
		default:
			return
		}
	}
}

func (l *lexer) line() {
	if n := strings.IndexAny(l.src[l.pos:], "\r\n"); n >= 0 {
		l.pos += n
		return
	}
	l.pos = len(l.src)
}

// comment passes over a comment, which may hold others.
func (l *lexer) comment() {
	for depth := 0; l.pos < len(l.src); {
		switch {
		case l.src[l.pos] == '/' && l.at(1) == '*':
			depth++
			l.pos += 2
		case l.src[l.pos] == '*' && l.at(1) == '/':
			depth--
			l.pos += 2
		default:
			l.pos++
		}
		if depth == 0 {
			return
		}
	}
}

// quoted passes over a text in quotes; a doubled quote is part of it.
func (l *lexer) quoted(q byte, escapes bool) {
	for l.pos++; l.pos < len(l.src); l.pos++ {
		switch c := l.src[l.pos]; {
		case escapes && c == '\\':
			l.pos++
		case c == q && l.at(1) == q:
			l.pos++
		case c == q:
			l.pos++
			return
		}
	}
	l.pos = len(l.src)
}

// dollar passes over a parameter, or a string in dollar quotes.
func (l *lexer) dollar() tokenKind {
	l.pos++
	if isDigit(l.at(0)) {
		for isDigit(l.at(0)) {
			l.pos++
		}
		return tokParam
	}
	n := 0
	for isLetter(l.at(n)) || n > 0 && isDigit(l.at(n)) {
		n++
	}
	if l.at(n) != '$' {
		return tokOp
	}
	tag := l.src[l.pos-1 : l.pos+n+1]
	l.pos += n + 1
	if end := strings.Index(l.src[l.pos:], tag); end >= 0 {
		l.pos += end + len(tag)
		return tokString
	}
	l.pos = len(l.src)
	return tokString
}

func (l *lexer) number() {
	for {
		c := l.at(0)
		exponent := (c == '+' || c == '-') && (l.src[l.pos-1]|0x20 == 'e') && isDigit(l.at(1)) && l.decimal()
		if !isDigit(c) && !isLetter(c) && c != '.' && !exponent {
			return
		}
		l.pos++
	}
}

// decimal reports whether the number before the position is not 0x and kin,
// in which an e is a digit.
func (l *lexer) decimal() bool {
	from := l.pos - 1
	for from > 0 && (isDigit(l.src[from-1]) || isLetter(l.src[from-1])) {
		from--
	}
	return l.src[from] != '0' || from+1 >= l.pos || isDigit(l.src[from+1]) || l.src[from+1]|0x20 == 'e'
}

// wordOrString passes over a word, or over a string that begins like one: E”,
// B”, X”, N”, U&” and U&"".
func (l *lexer) wordOrString() tokenKind {
	switch c := l.src[l.pos] | 0x20; {
	case strings.IndexByte("ebxn", c) >= 0 && l.at(1) == '\'':
		l.pos++
		l.quoted('\'', c == 'e')
		return tokString
	case c == 'u' && l.at(1) == '&' && l.at(2) == '\'':
		l.pos += 2
		l.quoted('\'', false)
		return tokString
	case c == 'u' && l.at(1) == '&' && l.at(2) == '"':
		l.pos += 2
		l.quoted('"', false)
		return tokQuoted
	}
	for isLetter(l.at(0)) || isDigit(l.at(0)) || l.at(0) == '$' {
		l.pos++
	}
	return tokWord
}

const (
	opChars      = "+-*/<>=~!@#%^&|`?"
	opCharsSigns = "~!@#%^&|`?" // with one of these an operator may end in + or -
)

func (l *lexer) operator(c byte) tokenKind {
	from := l.pos
	l.pos++
	if c == ':' && l.at(0) == ':' {
		l.pos++
		return tokOp
	}
	if strings.IndexByte(opChars, c) < 0 {
		return tokOp
	}
	for l.at(0) != 0 && strings.IndexByte(opChars, l.at(0)) >= 0 && !l.commentHere() {
		l.pos++
	}
	if !strings.ContainsAny(l.src[from:l.pos], opCharsSigns) {
		for l.pos-from > 1 && (l.src[l.pos-1] == '+' || l.src[l.pos-1] == '-') {
			l.pos--
		}
	}
	return tokOp
}

func (l *lexer) commentHere() bool {
	return l.at(0) == '-' && l.at(1) == '-' || l.at(0) == '/' && l.at(1) == '*'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80 }

// name returns the identifier that a word or a quoted token stands for.
func (t token) name() string {
	if t.kind != tokQuoted {
		return strings.Clone(strings.ToLower(t.text))
	}
	s := t.text[strings.IndexByte(t.text, '"')+1:]
	s = strings.TrimSuffix(s, `"`)
	return strings.Clone(strings.ReplaceAll(s, `""`, `"`))
}

// literal returns the text that a string token stands for, and whether it is
// certain.
func (t token) literal() (string, bool) {
	switch t.text[0] {
	case '\'':
		return unquote(t.text), true
	case 'e', 'E':
		return unescape(unquote(t.text[1:]))
	case 'n', 'N':
		return unquote(t.text[1:]), true
	case '$':
		n := strings.IndexByte(t.text[1:], '$') + 2
		if len(t.text) < 2*n {
			return "", false
		}
		return t.text[n : len(t.text)-n], true
	}
	return "", false
}

func unquote(s string) string {
	s = strings.TrimSuffix(s[1:], "'")
	return strings.ReplaceAll(s, "''", "'")
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
