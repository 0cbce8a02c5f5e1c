package resp

import "strconv"

// maxSpoken is how many literal answers of a script are told apart.
const maxSpoken = 16

// spoken is one literal that an acquire script returns: a text, a number, or
// nil or false.
type spoken struct {
	text    string // as it is answered, as far as answers are kept
	nothing bool
	granted bool // returned where the lock was taken
	refused bool // returned where it was not
	unclear bool // returned where it cannot be told
}

// spoken collects what is returned literally, and on which side of the
// acquiring command c.
func (r *luaReader) spoken(c luaCall, nx bool) []spoken {
	var all []spoken
	for _, ret := range r.returns {
		s, ok := literalOf(ret.values[0])
		if !ok {
			continue
		}
		at := 0
		for at < len(all) && (all[at].text != s.text || all[at].nothing != s.nothing) {
			at++
		}
		if at == maxSpoken {
			return all
		}
		if at == len(all) {
			all = append(all, s)
		}
		switch r.taken(c, nx, ret) {
		case 1:
			all[at].granted = true
		case -1:
			all[at].refused = true
		default:
			all[at].unclear = true
		}
	}
	return all
}

func literalOf(v ref) (spoken, bool) {
	switch v.kind {
	case textRef:
		return spoken{text: v.text[:min(len(v.text), maxText)]}, true
	case numberRef:
		return spoken{text: strconv.FormatInt(v.n, 10)}, true
	case nothingRef:
		return spoken{nothing: true}, true
	}
	return spoken{}, false
}

// taken tells whether the return is reached only with the lock taken, 1, only
// without, -1, or neither for certain.
func (r *luaReader) taken(c luaCall, nx bool, ret luaReturn) int {
	for _, t := range r.tests {
		if r.mixed[t.chain] {
			continue
		}
		if t.b.kind == callRef {
			t.a, t.b = t.b, t.a
		}
		if nx && t.a.equal(c.ref) {
			if side := t.success() * r.directly(t, ret); side != 0 {
				return side
			}
		}
		if !t.a.part(0).equal(c.part(0)) {
			continue
		}
		switch side := t.missing() * r.directly(t, ret); {
		case side < 0:
			return -1
		case side > 0 && !nx && ret.at > c.at:
			return 1
		}
	}
	return 0
}

// success returns the side of a test of an acquiring command's answer on which
// it succeeded; 0 if it does not tell.
func (t test) success() int {
	if t.a.isCall("SETNX") {
		t.a.text = "EXISTS"
		if len(t.a.parts) > 1 {
			t.a.parts = t.a.parts[:1]
		}
	} else if t.a.isCall("SET") {
		t.a.text = "GET"
	}
	return -t.missing() // these answer 1 for yes, and nil for no
}

// directly is side for a return in the very block that depends on the test, or
// in the one around it: further in, there is more that it depends on.
func (r *luaReader) directly(t test, ret luaReturn) int {
	side := r.side(t, ret.at)
	switch {
	case side > 0 && ret.block != t.then:
		return 0
	case side < 0 && ret.block != r.spans[t.then].parent && !(r.spans[ret.block].isElse && r.spans[ret.block].parent == r.spans[t.then].parent):
		return 0
	}
	return side
}

// A meaning is what a literal answer says.
type meaning uint8

const (
	ordinary meaning = iota // what such an answer usually does
	granting
	refusing
	either
)

// says looks the answer up among what the script's text returns literally.
func (p *program) says(a *answer) meaning {
	var found *spoken
	texts := 0
	for i := range p.spoken {
		s := &p.spoken[i]
		if s.nothing && a.isNull() || !s.nothing && a.isText(s.text) {
			found = s
		}
		if _, isInt := parseInt([]byte(s.text)); !isInt && !s.nothing {
			texts++
		}
	}
	if found == nil {
		return ordinary
	}
	n, isInt := a.integer()
	positive := isInt && n > 0
	no := found.nothing || isInt && n <= 0 // as such an answer is usually read
	switch {
	case found.granted && (found.refused || no):
		return either
	case found.refused && found.unclear && !no:
		return either
	case found.refused && p.vague && isInt:
		return ordinary
	case found.refused:
		return refusing
	case positive || no:
		return ordinary
	case found.granted:
		return granting
	case texts > 1:
		return either
	}
	return ordinary
}

// isText reports whether the answer is a single value that is written so.
func (a *answer) isText(text string) bool {
	switch a.kind {
	case ':', '$', '+':
		return !a.null && string(a.text()) == text
	}
	return false
}
