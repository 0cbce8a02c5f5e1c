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

// word reports whether t is the word s, in any case. Most tokens are told from
// it by their length or first letter.
func (t token) word(s string) bool {
	return t.kind == tokWord && len(t.text) == len(s) && t.text[0]|0x20 == s[0]|0x20 && strings.EqualFold(t.text, s)
}

// A lexer cuts a SQL text into tokens as Postgres does with
// standard_conforming_strings on, as it is unless somebody asks for the syntax
// of before 9.1: where it is off, a backslash before a quote hides the string's
// end from the lexer. Anything is accepted: what is not closed ends with the
// text.
type lexer struct {
	src   string
	pos   int
	signs int // up to here there are only signs, each an operator of its own
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

// quoted passes over a text in quotes; a doubled quote is part of it. A string
// may go on in the quotes on a later line.
func (l *lexer) quoted(q byte, escapes bool) {
	for l.pos++; l.pos < len(l.src); l.pos++ {
		switch c := l.src[l.pos]; {
		case escapes && c == '\\':
			l.pos++
		case c != q:
		case l.at(1) == q:
			l.pos++
		case q == '\'' && l.continued():
		default:
			l.pos++
			return
		}
	}
	l.pos = len(l.src)
}

// continued goes to the quote with which the string that ends here goes on, if
// it does: with a line's end, and at most comments of one line, in between.
func (l *lexer) continued() bool {
	for i, line := l.pos+1, false; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == '\n' || c == '\r':
			line = true
		case c == ' ' || c >= '\t' && c <= '\r':
		case c == '-' && i+1 < len(l.src) && l.src[i+1] == '-':
			n := strings.IndexAny(l.src[i:], "\r\n")
			if n < 0 {
				return false
			}
			i += n - 1
		case c == '\'' && line:
			l.pos = i
			return true
		default:
			return false
		}
	}
	return false
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

// number passes over a number, and over letters stuck to it, which are none of
// Postgres's numbers.
func (l *lexer) number() {
	if l.src[l.pos] != '0' || strings.IndexByte("xob", l.at(1)|0x20) < 0 {
		l.digits()
		if l.at(0) == '.' && l.at(1) != '.' {
			l.pos++
			l.digits()
		}
		sign := l.at(1) == '+' || l.at(1) == '-'
		if l.at(0)|0x20 == 'e' && (isDigit(l.at(1)) || sign && isDigit(l.at(2))) {
			l.pos += 2
		}
	}
	for isDigit(l.at(0)) || isLetter(l.at(0)) {
		l.pos++
	}
}

// digits passes over digits, which may be grouped by underscores.
func (l *lexer) digits() {
	for isDigit(l.at(0)) || l.at(0) == '_' {
		l.pos++
	}
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
	if c == ':' && (l.at(0) == ':' || l.at(0) == '=') || c == '.' && l.at(0) == '.' {
		l.pos++
		return tokOp
	}
	if strings.IndexByte(opChars, c) < 0 || from < l.signs {
		return tokOp
	}
	for l.at(0) != 0 && strings.IndexByte(opChars, l.at(0)) >= 0 && !l.commentHere() {
		l.pos++
	}
	if !strings.ContainsAny(l.src[from:l.pos], opCharsSigns) {
		l.signs = l.pos
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
