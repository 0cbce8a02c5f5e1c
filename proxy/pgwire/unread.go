package pgwire

import "bytes"

// unread reports whether a text is a plain SELECT from a table that does not
// matter now. It finds that out without reading the text any further, since
// the texts of a client that puts values into them are never the same.
func (t *Tracker) unread(text []byte, cut bool) bool {
	if t.opt.Reads == nil || cut {
		return false
	}
	table := selected(text)
	return len(table) > 0 && !t.opt.Reads(t.tableName(table))
}

// selected returns the table of a text that is nothing but one SELECT of plain
// columns, nil if it is not sure.
func selected(text []byte) []byte {
	s := words{text: text}
	if !fold(s.word(), "SELECT") {
		return nil
	}
	for before := []byte(nil); ; {
		dot := s.list()
		w := s.word()
		switch {
		case len(w) == 0 || foldAny(w, "INTO", "UNION", "INTERSECT", "EXCEPT", "TABLE", "FOR"):
			return nil
		case !fold(w, "FROM"):
			before = w
		case dot || foldAny(before, "AS", "DISTINCT"):
			return nil // a.from, AS from, IS DISTINCT FROM
		default:
			return s.table()
		}
	}
}

// words is a text that is looked at word by word.
type words struct {
	text []byte
	pos  int
}

func (s *words) at() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *words) space() {
	for c := s.at(); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = s.at() {
		s.pos++
	}
}

// word takes a word; it is empty if there is none.
func (s *words) word() []byte {
	s.space()
	from := s.pos
	for c := s.at(); isLetter(c) || isDigit(c); c = s.at() {
		s.pos++
	}
	return s.text[from:s.pos]
}

// list passes over what may stand between the words of a select list, and
// reports whether the last of it was a dot.
func (s *words) list() (dot bool) {
	for {
		s.space()
		c := s.at()
		if c != ',' && c != '.' && c != '*' {
			return dot
		}
		dot = c == '.'
		s.pos++
	}
}

// table takes a table's name, if nothing but the rest of the same statement can
// follow it.
func (s *words) table() []byte {
	s.space()
	from := s.pos
	for c := s.at(); isDigit(c) || c == '_' || c == '.' || c >= 'a' && c <= 'z'; c = s.at() {
		s.pos++
	}
	name := s.text[from:s.pos]
	if !plainName(name) || foldAny(name, "ONLY", "LATERAL", "ROWS", "TABLE") || !s.endsHere() || mayLock(s.text[s.pos:]) {
		return nil
	}
	return name
}

// mayLock reports whether what stands behind a table may ask for a lock: with
// FOR UPDATE and kin, or by a function whose name begins with pg_.
func mayLock(text []byte) bool {
	for i, c := range text {
		switch {
		case i < 2:
		case c == '_' && text[i-1]|0x20 == 'g' && text[i-2]|0x20 == 'p',
			c|0x20 == 'r' && text[i-1]|0x20 == 'o' && text[i-2]|0x20 == 'f':
			return true
		}
	}
	return false
}

// endsHere reports whether a name has ended, and whether the text has no other
// statement behind it.
func (s *words) endsHere() bool {
	if c := s.at(); c != 0 && c != ' ' && c != '\n' && c != ';' {
		return false
	}
	s.space()
	if c := s.at(); c != 0 && c != ';' && (!isLetter(c) || c >= 0x80) {
		return false
	}
	n := bytes.IndexByte(s.text[s.pos:], ';')
	return n < 0 || len(bytes.Trim(s.text[s.pos+n:], "; \n")) == 0
}

// plainName reports whether each part of a name begins as one must, and is kept
// whole.
func plainName(name []byte) bool {
	size := 0
	for _, c := range name {
		switch {
		case c == '.' && size == 0, c != '.' && size == 0 && !isLetter(c), size == maxIdentifier && c != '.':
			return false
		case c == '.':
			size = 0
		default:
			size++
		}
	}
	return size > 0
}

// fold reports whether w is a keyword, given in capitals.
func fold(w []byte, keyword string) bool {
	if len(w) != len(keyword) {
		return false
	}
	for i, c := range w {
		if c&^0x20 != keyword[i] {
			return false
		}
	}
	return true
}

func foldAny(w []byte, keywords ...string) bool {
	for _, k := range keywords {
		if fold(w, k) {
			return true
		}
	}
	return false
}

// tableName returns a name as [lock.TableName] does. Those used last are kept,
// so that this costs nothing.
func (t *Tracker) tableName(name []byte) string {
	name = bytes.TrimPrefix(name, []byte("public."))
	for i := range t.tables {
		if t.tables[i] == string(name) {
			return t.tables[i]
		}
	}
	if len(name) > maxName {
		return string(name)
	}
	copy(t.tables[1:], t.tables[:])
	t.tables[0] = string(name)
	return t.tables[0]
}
