package resp

import (
	"bytes"
	"slices"
)

// Limits of what is read of a script.
const (
	maxTokens = 16 << 10
	maxNested = 48
	maxListed = 256 // calls, tests and returns, each
)

type tokenKind uint8

const (
	endOfText tokenKind = iota
	word
	literal // a string
	numeral
	symbol
)

type token struct {
	kind tokenKind
	text string
}

// tokenize splits Lua text. It understands comments, both kinds of string and
// whatever else can hide a quote; it reports false for text that it cannot read.
func tokenize(text []byte) ([]token, bool) {
	var toks []token
	for i := 0; ; {
		i = skipBlank(text, i)
		if i < 0 || len(toks) > maxTokens {
			return nil, false
		}
		if i >= len(text) {
			return toks, true
		}
		t, n := scanToken(text[i:])
		if n == 0 {
			return nil, false
		}
		toks = append(toks, t)
		i += n
	}
}

// skipBlank returns where the next token begins; -1 for an endless comment.
func skipBlank(b []byte, i int) int {
	for i < len(b) {
		switch {
		case isSpace(b[i]):
			i++
		case bytes.HasPrefix(b[i:], []byte("--")):
			n := commentLen(b[i:])
			if n < 0 {
				return -1
			}
			i += n
		default:
			return i
		}
	}
	return i
}

func commentLen(b []byte) int {
	if level := longLevel(b[2:]); level >= 0 {
		_, n := longString(b[2:], level)
		if n == 0 {
			return -1
		}
		return n + 2
	}
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		return n
	}
	return len(b)
}

func scanToken(b []byte) (token, int) {
	c := b[0]
	switch {
	case isLetter(c):
		n := span(b, func(c byte) bool { return isLetter(c) || isDigit(c) })
		return token{word, string(b[:n])}, n
	case isDigit(c):
		n := span(b, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' })
		return token{numeral, string(b[:n])}, n
	case c == '"' || c == '\'':
		return quotedString(b)
	}
	if level := longLevel(b); level >= 0 {
		s, n := longString(b, level)
		return token{literal, s}, n
	}
	for _, s := range []string{"...", "..", "==", "~=", "<=", ">="} {
		if bytes.HasPrefix(b, []byte(s)) {
			return token{symbol, s}, len(s)
		}
	}
	return token{symbol, string(b[:1])}, 1
}

func span(b []byte, in func(byte) bool) int {
	if n := slices.IndexFunc(b, func(c byte) bool { return !in(c) }); n >= 0 {
		return n
	}
	return len(b)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// longLevel returns the number of = in an opening long bracket at the front of
// b, or -1.
func longLevel(b []byte) int {
	if len(b) < 2 || b[0] != '[' {
		return -1
	}
	n := span(b[1:], func(c byte) bool { return c == '=' })
	if n+1 < len(b) && b[n+1] == '[' {
		return n
	}
	return -1
}

func longString(b []byte, level int) (string, int) {
	closing := append(append([]byte{']'}, bytes.Repeat([]byte{'='}, level)...), ']')
	body := b[level+2:]
	end := bytes.Index(body, closing)
	if end < 0 {
		return "", 0
	}
	return string(bytes.TrimPrefix(body[:end], []byte{'\n'})), level + 2 + end + len(closing)
}

func quotedString(b []byte) (token, int) {
	var s []byte
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == b[0]:
			return token{literal, string(s)}, i + 1
		case c == '\n':
			return token{}, 0
		case c == '\\' && i+1 < len(b):
			i++
			s = append(s, luaEscape(b[i]))
		default:
			s = append(s, c)
		}
	}
	return token{}, 0
}

// luaEscape covers the escapes of one character; a number's digits stay as
// they are, since no command or key part that matters is spelled that way.
func luaEscape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	}
	return c
}
