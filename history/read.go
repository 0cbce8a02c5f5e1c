package history

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// ErrNewer is matched by the error for a history whose major version is newer
// than this reader.
var ErrNewer = errors.New("newer schema")

// Read reads a history to its end. A last line that was cut off in the middle
// becomes a gap, since a daemon may die while it writes. Errors name the line.
func Read(r io.Reader) (*History, error) {
	h := &History{}
	if err := Scan(r, func(e Entry) error { h.add(e); return nil }); err != nil {
		return nil, err
	}
	return h, nil
}

// An Entry is one line of a history: one of these is set, and none where the type
// of line is not known.
type Entry struct {
	Header     *Header
	Actor      *Actor
	Op         *lock.Op // the reader's from then on
	Injection  *Injection
	Turn       *Turn
	Vain       *Vain
	End        *End
	Gap        *Gap
	Clock      *Clock
	Tally      *Tally
	Bypass     *Bypass
	Invariants *[]Invariant // instead of the header's
}

func (s *scanner) entry(b []byte, n int) (e Entry, err error) {
	if op, ok := quickOp(b, s.same); ok && n > 1 {
		return Entry{Op: op}, nil
	}
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &kind); err != nil && n == 1 {
		return e, fmt.Errorf("%w; expected a header, the first line of a history.jsonl", err)
	} else if err != nil {
		return e, err
	}
	if n == 1 && kind.Type != "header" {
		return e, fmt.Errorf("type %q: expected a header, the first line of a history.jsonl", kind.Type)
	}
	switch kind.Type {
	case "header":
		e.Header, err = header(b)
	case "op":
		var l *opLine
		if l, err = decode[opLine](b); err == nil {
			e.Op = l.op()
		}
	case "actor":
		e.Actor, err = decode[Actor](b)
	case "injection":
		e.Injection, err = decode[Injection](b)
	case "turn":
		e.Turn, err = decode[Turn](b)
	case "vain":
		e.Vain, err = decode[Vain](b)
	case "end":
		e.End, err = decode[End](b)
	case "gap":
		e.Gap, err = decode[Gap](b)
	case "clock":
		e.Clock, err = decode[Clock](b)
	case "tally":
		e.Tally, err = decode[Tally](b)
	case "bypass":
		e.Bypass, err = bypass(b)
	case "invariants":
		var list *struct{ Invariants []Invariant }
		if list, err = decode[struct{ Invariants []Invariant }](b); err == nil {
			e.Invariants = &list.Invariants
		}
	}
	return e, err
}

// add appends a line to what was read.
func (h *History) add(e Entry) {
	switch {
	case e.Header != nil:
		h.Header = *e.Header
	case e.Op != nil:
		h.Ops = append(h.Ops, e.Op)
	case e.Actor != nil:
		h.Actors = append(h.Actors, *e.Actor)
	case e.Injection != nil:
		h.Injections = append(h.Injections, *e.Injection)
	case e.Turn != nil:
		h.Turns = append(h.Turns, *e.Turn)
	case e.Vain != nil:
		h.Vains = append(h.Vains, *e.Vain)
	case e.End != nil:
		h.Ends = append(h.Ends, *e.End)
	case e.Gap != nil:
		h.Gaps = append(h.Gaps, *e.Gap)
	case e.Clock != nil:
		h.Clocks = append(h.Clocks, *e.Clock)
	case e.Tally != nil:
		h.Tallies = append(h.Tallies, *e.Tally)
	case e.Bypass != nil:
		h.Bypasses = append(h.Bypasses, *e.Bypass)
	case e.Invariants != nil:
		h.Header.Invariants = *e.Invariants
	}
}

func decode[T any](b []byte) (*T, error) {
	v := new(T)
	err := json.Unmarshal(b, v)
	return v, err
}

func bypass(b []byte) (*Bypass, error) {
	p, err := decode[Bypass](b)
	if err != nil {
		return nil, err
	}
	if key, err := hex.DecodeString(p.KeyHex); err == nil && p.KeyHex != "" {
		p.Key, p.KeyHex = string(key), ""
	}
	return p, nil
}

func header(b []byte) (*Header, error) {
	h, err := decode[Header](b)
	if err != nil {
		return nil, err
	}
	major, _, _ := strings.Cut(h.Schema, ".")
	own, _, _ := strings.Cut(Schema, ".")
	got, err := strconv.Atoi(major)
	if err != nil {
		return nil, fmt.Errorf("schema %q: expected a version such as %s", h.Schema, Schema)
	}
	if want, _ := strconv.Atoi(own); got > want {
		return nil, fmt.Errorf("schema %s: %w than %s", h.Schema, ErrNewer, Schema)
	}
	return h, nil
}
