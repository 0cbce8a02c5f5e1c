package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Write writes a schedule as JSON, one step or rule a block. Equal schedules give equal bytes.
func (s *Schedule) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("write schedule: %w", err)
	}
	return nil
}

// Read reads a schedule. It is strict: what it does not know, or does not find, is an error that
// names the line, the field, and what was expected.
func Read(text []byte) (*Schedule, error) {
	f := &file{text: text, in: json.NewDecoder(bytes.NewReader(text))}
	s, err := f.schedule()
	if err != nil {
		return nil, fmt.Errorf("read schedule: %w", err)
	}
	return s, nil
}

// A file is a schedule being read.
type file struct {
	text []byte
	in   *json.Decoder
}

// fail names the line of a place in the text.
func (f *file) fail(at int64, format string, args ...any) error {
	at = min(max(at, 0), int64(len(f.text)))
	return fmt.Errorf("line %d: %w", 1+bytes.Count(f.text[:at], []byte("\n")), fmt.Errorf(format, args...))
}

func (f *file) schedule() (*Schedule, error) {
	s := &Schedule{}
	fields := map[string]func(json.RawMessage, int64) error{
		"schema":     func(b json.RawMessage, at int64) error { return f.version(s, b, at) },
		"max_frozen": func(b json.RawMessage, at int64) error { return f.value("max_frozen", b, at, &s.MaxFrozen) },
		"max_freeze": func(b json.RawMessage, at int64) error { return f.value("max_freeze", b, at, &s.MaxFreeze) },
		"rules":      func(b json.RawMessage, at int64) error { return each(f, "rules", b, at, &s.Rules, f.rule) },
		"cut":        func(b json.RawMessage, at int64) error { return f.whole(s, b, at) },
		"steps":      func(b json.RawMessage, at int64) error { return each(f, "steps", b, at, &s.Steps, f.step(s)) },
	}
	if err := f.object(fields); err != nil {
		return nil, err
	}
	for _, name := range []string{"schema", "max_frozen", "rules", "steps"} {
		if fields[name] != nil {
			return nil, f.fail(f.in.InputOffset(), "%s is missing; expected a schedule.json that lockfaultd run has written", name)
		}
	}
	return s, f.end()
}

// object reads the fields of the outermost object; each is taken off the list when it has come.
func (f *file) object(fields map[string]func(json.RawMessage, int64) error) error {
	if t, err := f.in.Token(); err != nil || t != json.Delim('{') {
		return f.syntax(err, "expected an object { ... }")
	}
	for f.in.More() {
		name, err := f.in.Token()
		if err != nil {
			return f.syntax(err, "expected a field")
		}
		at := f.in.InputOffset()
		var b json.RawMessage
		if err := f.in.Decode(&b); err != nil {
			return f.syntax(err, "expected a value")
		}
		take := fields[fmt.Sprint(name)]
		if take == nil {
			return f.fail(at, "%v is unknown, or there twice; expected schema, max_frozen, max_freeze, rules and steps, once each", name)
		}
		delete(fields, fmt.Sprint(name))
		if err := take(b, f.in.InputOffset()-int64(len(b))); err != nil {
			return err
		}
	}
	if _, err := f.in.Token(); err != nil {
		return f.syntax(err, "expected }")
	}
	return nil
}

func (f *file) end() error {
	if _, err := f.in.Token(); !errors.Is(err, io.EOF) {
		return f.fail(f.in.InputOffset(), "expected the end of the file behind the schedule")
	}
	return nil
}

// syntax says where JSON is broken.
func (f *file) syntax(err error, expected string) error {
	at := f.in.InputOffset()
	var s *json.SyntaxError
	switch {
	case errors.As(err, &s):
		return f.fail(s.Offset, "%v; %s", err, expected)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return f.fail(int64(len(f.text)), "the file ends too early; %s", expected)
	}
	return f.fail(at, "%s", expected)
}

func (f *file) version(s *Schedule, b json.RawMessage, at int64) error {
	if err := f.value("schema", b, at, &s.Schema); err != nil {
		return err
	}
	major, _, _ := strings.Cut(s.Schema, ".")
	own, _, _ := strings.Cut(Schema, ".")
	if major != own {
		return f.fail(at, "schema %q; expected %s, or another %s.x", s.Schema, Schema, own)
	}
	return nil
}

// whole refuses a schedule of which a part is missing.
func (f *file) whole(s *Schedule, b json.RawMessage, at int64) error {
	if err := f.value("cut", b, at, &s.Cut); err != nil {
		return err
	}
	return f.fail(at, "cut: %d decisions of the run are not in the file; expected a whole schedule, since only that can be repeated", s.Cut)
}

// value decodes one value strictly; b begins at the given place of the text.
func (f *file) value(name string, b json.RawMessage, at int64, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	var t *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &t):
		return f.fail(at+t.Offset, "%s: expected %s, found a JSON %s", dotted(name, t.Field), t.Type, t.Value)
	}
	return f.fail(at, "%s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
}

// dotted names a field of something; what lies between them is of this package and not of the file.
func dotted(name, field string) string {
	if field == "" {
		return name
	}
	return name + "." + field[strings.LastIndexByte(field, '.')+1:]
}

// each reads a list, and checks every item of it.
func each[T any](f *file, name string, b json.RawMessage, at int64, into *[]T, check func(*T, int) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return f.fail(at, "%s: expected a list [ ... ]", name)
	}
	*into = []T{}
	for d.More() {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return f.fail(at+d.InputOffset(), "%s: %v", name, err)
		}
		n, begins := len(*into), at+d.InputOffset()-int64(len(raw))
		item, called := *new(T), fmt.Sprintf("%s[%d]", name, n+1)
		if err := f.value(called, raw, begins, &item); err != nil {
			return err
		}
		if err := check(&item, n+1); err != nil {
			return f.fail(begins, "%s: %w", called, err)
		}
		*into = append(*into, item)
	}
	return nil
}

func (f *file) rule(r *Rule, _ int) error {
	if r.Flag == "" || r.Rule == "" {
		return errors.New("expected a flag such as freeze-before, and a rule")
	}
	return nil
}

// step checks one that stands behind the rules.
func (f *file) step(s *Schedule) func(*Step, int) error {
	seen := map[Key]int{}
	return func(t *Step, n int) error {
		switch {
		case t.Step != n:
			return fmt.Errorf("step %d; expected step %d, since they are numbered", t.Step, n)
		case t.Actor == "" || t.Event == "" || t.Do == "" || t.Outcome == "":
			return errors.New("actor, event, fault or outcome is missing; expected all of them")
		case t.At != Before && t.At != After && t.At != Clock:
			return fmt.Errorf("at %q; expected %s, %s or %s", t.At, Before, After, Clock)
		case t.Ordinal < 1:
			return fmt.Errorf("ordinal %d; expected 1 or more", t.Ordinal)
		case t.Rule < 1 || t.Rule > len(s.Rules):
			return fmt.Errorf("rule %d; expected one of the %d rules that stand before the steps", t.Rule, len(s.Rules))
		case seen[t.Key] > 0:
			return fmt.Errorf("the same moment as step %d; expected another", seen[t.Key])
		}
		seen[t.Key] = n
		return nil
	}
}
