package probe

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// A query is what ParseInvariant understands of an invariant's SQL.
type query struct {
	text          string // without the trailing semicolon
	table, column string // empty unless one plain column of one plain table
}

// parseQuery refuses what cannot give one value. What it cannot follow, it
// leaves to the server.
func parseQuery(sql string) (query, error) {
	q := query{text: strings.TrimRight(strings.TrimSpace(sql), "; \t\r\n")}
	switch first := firstWord(q.text); {
	case q.text == "":
		return query{}, errors.New("empty")
	case first != "select" && first != "with":
		return query{}, fmt.Errorf("begins with %s", strings.ToUpper(first))
	case first == "with" || strings.ContainsAny(q.text, `$\`) || strings.Contains(q.text, "--") || strings.Contains(q.text, "/*"):
		return q, nil
	}
	words, err := scan(q.text)
	if err != nil {
		return query{}, err
	}
	if err := checkWords(words); err != nil {
		return query{}, err
	}
	q.table, q.column = plainColumn(words[1:])
	return q, nil
}

func firstWord(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(text)
	}
	if end == 0 && text != "" {
		end = 1
	}
	return strings.ToLower(text[:end])
}

// checkWords looks for what the server would refuse later, or answer with more than
// one value.
func checkWords(words []word) error {
	depth := 0
	for _, w := range words {
		if depth += w.nesting(); depth < 0 {
			break
		}
		if w.is(";") {
			return errors.New("more than one statement")
		}
	}
	switch {
	case depth != 0:
		return errors.New("parentheses do not match")
	case len(words) == 1:
		return errors.New("selects nothing")
	case listLength(words[1:]) != 1:
		return errors.New("more than one column")
	}
	return nil
}

// listLength counts the columns of a select list, which ends at FROM.
func listLength(words []word) int {
	n, depth := 1, 0
	for _, w := range words {
		depth += w.nesting()
		if depth == 0 && w.is("from") {
			break
		}
		if depth == 0 && w.is(",") {
			n++
		}
	}
	return n
}

// plainColumn reads `col FROM t [[AS] alias] [WHERE ...]`, with col and t
// possibly qualified. It gives nothing for anything else.
func plainColumn(words []word) (table, column string) {
	col, rest := qualified(words)
	if len(col) == 0 || len(rest) == 0 || !rest[0].is("from") {
		return "", ""
	}
	name, rest := qualified(rest[1:])
	if len(name) == 0 || len(name) > 2 {
		return "", ""
	}
	alias := name[len(name)-1]
	if len(rest) > 0 && rest[0].is("as") {
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0].name() && !rest[0].ends() {
		alias, rest = rest[0].text, rest[1:]
	}
	if len(rest) > 0 && !rest[0].ends() || severalTables(rest) {
		return "", ""
	}
	if len(col) > 2 || len(col) == 2 && col[0] != alias {
		return "", ""
	}
	return strings.Join(name, "."), col[len(col)-1]
}

// qualified reads name[.name...] and returns its parts and what follows.
func qualified(words []word) (parts []string, rest []word) {
	for len(words) > 0 && words[0].name() {
		parts, words = append(parts, words[0].text), words[1:]
		if len(words) == 0 || !words[0].is(".") {
			return parts, words
		}
		words = words[1:]
	}
	return nil, words
}

// severalTables reports whether what follows the table makes the value more
// than a row's own column.
func severalTables(words []word) bool {
	depth := 0
	for _, w := range words {
		depth += w.nesting()
		if depth == 0 && (w.is("union") || w.is("intersect") || w.is("except") || w.is("group") || w.is("having") || w.is("window")) {
			return true
		}
	}
	return false
}

// A word is a token of SQL: a name (in lower case unless quoted), a literal
// ('...'), or one character of anything else.
type word struct {
	text   string
	quoted bool
}

func (w word) is(keyword string) bool { return !w.quoted && w.text == keyword }

// name reports whether the word can be a table's or a column's name.
func (w word) name() bool {
	if w.quoted {
		return true
	}
	r := []rune(w.text)[0]
	switch w.text {
	case "from", "where", "distinct", "all", "select", "case", "null", "true", "false", "only", "lateral", "join":
		return false
	}
	return unicode.IsLetter(r) || r == '_'
}

// ends reports whether the word opens a clause that may follow a plain table.
func (w word) ends() bool {
	return w.is("where") || w.is("order") || w.is("limit") || w.is("offset") || w.is("fetch") || w.is("for") ||
		w.is("group") || w.is("having") || w.is("window") || w.is("union") || w.is("intersect") || w.is("except")
}

func (w word) nesting() int {
	switch {
	case w.is("("):
		return 1
	case w.is(")"):
		return -1
	}
	return 0
}

// scan cuts SQL without comments, dollar quotes and escapes into words.
func scan(sql string) ([]word, error) {
	var words []word
	r := []rune(sql)
	for i := 0; i < len(r); {
		switch c := r[i]; {
		case unicode.IsSpace(c):
			i++
		case c == '"' || c == '\'':
			text, next, ok := quotedText(r, i)
			if !ok {
				return nil, errors.New("a quote is not closed")
			}
			words, i = append(words, literal(c, text)), next
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_':
			j := i
			for j < len(r) && (unicode.IsLetter(r[j]) || unicode.IsDigit(r[j]) || r[j] == '_') {
				j++
			}
			words, i = append(words, word{text: strings.ToLower(string(r[i:j]))}), j
		default:
			words, i = append(words, word{text: string(c)}), i+1
		}
	}
	return words, nil
}

// literal makes the word of a quoted text; a string is no name, so it keeps a
// quote in front.
func literal(quote rune, text string) word {
	if quote == '"' {
		return word{text: text, quoted: true}
	}
	return word{text: "'" + text}
}

// quotedText reads from an opening quote at i to its end; a doubled quote
// stands for itself.
func quotedText(r []rune, i int) (text string, next int, ok bool) {
	quote := r[i]
	var b strings.Builder
	for i++; i < len(r); i++ {
		if r[i] != quote {
			b.WriteRune(r[i])
			continue
		}
		if i+1 >= len(r) || r[i+1] != quote {
			return b.String(), i + 1, true
		}
		b.WriteRune(quote)
		i++
	}
	return "", i, false
}
