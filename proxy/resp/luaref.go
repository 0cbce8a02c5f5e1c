package resp

import (
	"strconv"
	"strings"
)

type refKind uint8

const (
	unclear    refKind = iota
	keyRef             // KEYS[n]; n 0: each key in turn
	argRef             // ARGV[n]
	textRef            // a literal
	numberRef          // a number written down
	joinRef            // parts joined by ..
	callRef            // the result of redis.call
	tableRef           // a table written down
	nothingRef         // nil or false
	truthRef           // true
	callerRef          // redis.call or redis.pcall itself
	eachIndex          // the index of a loop over KEYS
)

// A ref is what an expression of a script stands for.
type ref struct {
	kind  refKind
	n     int64
	text  string // literal, or the name of the command called, in capitals
	parts []ref  // of a join, a table, or a call: its arguments
	nodes int    // of the tree below it, if it has parts
}

// maxNodes bounds a ref as a tree. Names share what they stand for, so that
// a few lines of text can spell a tree that is never walked to its end.
const maxNodes = 64

// compound makes a ref of parts; an unclear one if it would be too large.
func compound(kind refKind, text string, parts []ref) ref {
	v := ref{kind: kind, text: text, parts: parts, nodes: 1}
	for _, p := range parts {
		if v.nodes += max(p.nodes, 1); v.nodes > maxNodes {
			return ref{}
		}
	}
	return v
}

func (r ref) equal(s ref) bool {
	if r.kind != s.kind || r.n != s.n || r.nodes != s.nodes || r.text != s.text || len(r.parts) != len(s.parts) {
		return false
	}
	for i := range r.parts {
		if !r.parts[i].equal(s.parts[i]) {
			return false
		}
	}
	return r.kind != unclear
}

// isText reports whether it can be worked out from the request alone.
func (r ref) isText() bool {
	switch r.kind {
	case keyRef, argRef, textRef, numberRef:
		return true
	case joinRef:
		for _, p := range r.parts {
			if !p.isText() {
				return false
			}
		}
		return true
	}
	return false
}

// isCall reports whether it is the result of a command of that name.
func (r ref) isCall(names ...string) bool {
	if r.kind != callRef {
		return false
	}
	for _, n := range names {
		if r.text == n {
			return true
		}
	}
	return false
}

func (r ref) part(i int) ref {
	if i < len(r.parts) {
		return r.parts[i]
	}
	return ref{}
}

// says reports whether one of a call's arguments is that word, and where.
func (r ref) says(option string) (int, bool) {
	for i, p := range r.parts {
		if i >= 2 && p.kind == textRef && strings.EqualFold(p.text, option) {
			return i, true
		}
	}
	return 0, false
}

// each reports whether it depends on the key of a loop.
func (r ref) each() bool {
	if r.kind == keyRef && r.n == 0 {
		return true
	}
	for _, p := range r.parts {
		if p.each() {
			return true
		}
	}
	return false
}

// resolve appends what the ref is in one call of the script. at is the key
// that a loop is at, from 1. What is longer than an argument that is kept is
// not worked out.
func (r ref) resolve(dst []byte, keys, args [][]byte, at int) ([]byte, bool) {
	switch r.kind {
	case keyRef:
		n := int(r.n)
		if n == 0 {
			n = at
		}
		return pick(dst, keys, n)
	case argRef:
		return pick(dst, args, int(r.n))
	case textRef:
		return append(dst, r.text...), true
	case numberRef:
		return strconv.AppendInt(dst, r.n, 10), true
	case joinRef:
		ok := true
		for _, p := range r.parts {
			if dst, ok = p.resolve(dst, keys, args, at); !ok || len(dst) > maxArg {
				return dst, false
			}
		}
		return dst, true
	}
	return dst, false
}

// pick appends element n, from 1; an element that was too long to keep is nil.
func pick(dst []byte, from [][]byte, n int) ([]byte, bool) {
	if n < 1 || n > len(from) || from[n-1] == nil {
		return dst, false
	}
	return append(dst, from[n-1]...), true
}

func (r ref) cost() int {
	n := len(r.text)
	for _, p := range r.parts {
		n += 64 + p.cost()
	}
	return n
}
