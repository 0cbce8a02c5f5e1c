package history

import (
	"bufio"
	"bytes"
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
	in := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		b, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("read history: line %d: %w", n, err)
		}
		whole := err == nil
		if len(bytes.TrimSpace(b)) > 0 {
			if err := h.add(b, n); err != nil {
				if whole || n == 1 {
					return nil, fmt.Errorf("read history: line %d: %w", n, err)
				}
				h.Gaps = append(h.Gaps, Gap{At: h.last(), Lost: 1, Why: "the last line is cut off"})
			}
		} else if n == 1 {
			return nil, errors.New("read history: line 1: it is empty; expected a header")
		}
		if !whole {
			return h, nil
		}
	}
}

func (h *History) add(b []byte, n int) error {
	var kind struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(b, &kind); err != nil {
		return err
	}
	if n == 1 && kind.Type != "header" {
		return fmt.Errorf("type %q: expected a header", kind.Type)
	}
	switch kind.Type {
	case "header":
		return h.header(b)
	case "op":
		var l opLine
		if err := json.Unmarshal(b, &l); err != nil {
			return err
		}
		h.Ops = append(h.Ops, l.op())
		return nil
	case "actor":
		return decode(b, &h.Actors)
	case "injection":
		return decode(b, &h.Injections)
	case "end":
		return decode(b, &h.Ends)
	case "gap":
		return decode(b, &h.Gaps)
	case "clock":
		return decode(b, &h.Clocks)
	case "tally":
		return decode(b, &h.Tallies)
	case "bypass":
		return h.bypass(b)
	case "invariants":
		h.Header.Invariants = nil
		return json.Unmarshal(b, &struct {
			Invariants *[]Invariant `json:"invariants"`
		}{&h.Header.Invariants})
	}
	return nil
}

func decode[T any](b []byte, into *[]T) error {
	var v T
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*into = append(*into, v)
	return nil
}

func (h *History) bypass(b []byte) error {
	if err := decode(b, &h.Bypasses); err != nil {
		return err
	}
	p := &h.Bypasses[len(h.Bypasses)-1]
	if key, err := hex.DecodeString(p.KeyHex); err == nil && p.KeyHex != "" {
		p.Key, p.KeyHex = string(key), ""
	}
	return nil
}

func (h *History) header(b []byte) error {
	if err := json.Unmarshal(b, &h.Header); err != nil {
		return err
	}
	major, _, _ := strings.Cut(h.Header.Schema, ".")
	own, _, _ := strings.Cut(Schema, ".")
	got, err := strconv.Atoi(major)
	if err != nil {
		return fmt.Errorf("schema %q: expected a version such as %s", h.Header.Schema, Schema)
	}
	if want, _ := strconv.Atoi(own); got > want {
		return fmt.Errorf("schema %s: %w than %s", h.Header.Schema, ErrNewer, Schema)
	}
	return nil
}

// last returns the latest instant of the ops read so far.
func (h *History) last() (at lock.Instant) {
	for _, op := range h.Ops {
		at = max(at, op.A, op.R, op.D, op.Z)
	}
	return at
}
