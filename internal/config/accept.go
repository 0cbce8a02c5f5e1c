package config

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// An Accepted is a finding that is known, and is not to fail a run until a date.
type Accepted struct {
	Code   string    // as the caller's function returned it
	Lock   string    // glob of the lock's key; "" for any
	Table  string    // glob of the table; "" for any
	Reason string    // why it is accepted; never ""
	Until  time.Time // 0:00 UTC after the last day on which it is
	Line   int       // of its entry in the file
}

// LoadAccepted reads the file at path: version 1, and a list of accepted
// findings under accept, each with its code, a glob of its lock, its table or
// both, the reason, and the last day (UTC). codeOf returns what a code or a name
// stands for, or what is wrong with it. An error of the contents is an *[Error].
func LoadAccepted(path string, codeOf func(string) (string, error)) ([]Accepted, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the path
	}
	return ParseAccepted(filepath.Clean(path), b, codeOf)
}

// ParseAccepted reads the text of such a file; name is what errors call it. An
// error is an *[Error].
func ParseAccepted(name string, text []byte, codeOf func(string) (string, error)) ([]Accepted, error) {
	r := &reader{name: name, text: string(text)}
	all := []Accepted{}
	if root := r.root(); r.err == nil {
		m := r.mapping(root, "version", "accept")
		r.version(m)
		for _, n := range r.items(r.need(m, "accept")) {
			a := r.accepted(n, codeOf)
			for _, b := range all {
				if a.Code == b.Code && a.Lock == b.Lock && a.Table == b.Table {
					r.fail(n, "this accepts the same as line %d, expected one entry for it", b.Line)
				}
			}
			all = append(all, a)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return all, nil
}

func (r *reader) accepted(n ast.Node, codeOf func(string) (string, error)) Accepted {
	m := r.mapping(n, "code", "lock", "table", "reason", "until")
	a := Accepted{Code: r.code(r.need(m, "code"), codeOf), Lock: r.pattern(m, "lock"), Table: r.pattern(m, "table")}
	if m.get("lock") == nil && m.get("table") == nil {
		r.fail(n, "neither lock nor table is given, expected a glob for one of them")
	}
	reason := r.need(m, "reason")
	if a.Reason = strings.TrimSpace(r.scalar(reason)); a.Reason == "" {
		r.fail(reason, "the reason is empty, expected why this is accepted")
	}
	a.Until = r.day(r.need(m, "until"))
	if t := start(n); t != nil && t.Position != nil {
		a.Line = t.Position.Line
	}
	return a
}

func (r *reader) code(n ast.Node, codeOf func(string) (string, error)) string {
	if n == nil {
		return ""
	}
	code, err := codeOf(r.scalar(n))
	if err != nil {
		r.fail(n, "%s", err)
	}
	return code
}

// pattern reads a glob, which is not empty where it is given.
func (r *reader) pattern(m mapping, field string) string {
	n := m.get(field)
	s := r.scalar(n)
	if n != nil && s == "" {
		r.fail(n, "%s is empty, expected a glob or no such field", field)
	}
	return s
}

// day reads a date, and returns the first instant after it.
func (r *reader) day(n ast.Node) time.Time {
	if n == nil {
		return time.Time{}
	}
	t, err := time.Parse(time.DateOnly, r.scalar(n))
	if err != nil {
		r.fail(n, "expected a date such as 2027-01-31, found %s", show(r.scalar(n)))
		return time.Time{}
	}
	return t.AddDate(0, 0, 1)
}
