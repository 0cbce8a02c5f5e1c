package fault

import "strings"

// globMatch reports whether pattern matches the whole of s: "*" stands for any
// text, the empty one too, and "\" takes the next byte literally.
func globMatch[T string | []byte](pattern string, s T) bool {
	p, i := 0, 0
	star, from := -1, 0 // where the last * was, and what it has eaten up to
	for i < len(s) {
		width, literal := unit(pattern[p:])
		switch {
		case width > 0 && literal == anything:
			star, from = p, i
			p += width
		case width > 0 && literal == int(s[i]):
			p += width
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

const anything = -1

// unit reads the first element of a pattern: its width in bytes, 0 at the end,
// and the byte that it stands for, or anything.
func unit(pattern string) (width, literal int) {
	switch {
	case pattern == "":
		return 0, 0
	case pattern[0] == '*':
		return 1, anything
	case pattern[0] == '\\' && len(pattern) > 1:
		return 2, int(pattern[1])
	}
	return 1, int(pattern[0])
}

// Escape returns the glob that means the same as g and can stand between the
// parentheses of a rule, whose own parentheses would have to balance.
func Escape(g string) string {
	var b strings.Builder
	for len(g) > 0 {
		width, _ := unit(g)
		if g[0] == '(' || g[0] == ')' || g == `\` {
			b.WriteByte('\\')
		}
		b.WriteString(g[:width])
		g = g[width:]
	}
	return b.String()
}

// Literal returns the glob that matches s and nothing else.
func Literal(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `(`, `\(`, `)`, `\)`).Replace(s)
}
