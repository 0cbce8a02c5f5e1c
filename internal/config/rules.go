package config

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lockfaultd/lockfaultd/fault"
)

// A flagText is the text of a rule flag, and which node each part came from.
type flagText struct {
	text  strings.Builder
	parts []part
}

type part struct {
	from int // offset in the text
	node ast.Node
}

func (t *flagText) add(n ast.Node, s string) {
	t.parts = append(t.parts, part{t.text.Len(), n})
	t.text.WriteString(s)
}

// join adds what separates two parts; what is wrong there is wrong with the one
// before.
func (t *flagText) join(s string) { t.text.WriteString(s) }

// node returns where the text at an offset came from.
func (t *flagText) node(offset int) ast.Node {
	n := t.parts[0].node
	for _, p := range t.parts {
		// The end of the text belongs to the last part.
		if p.from <= offset && p.from < t.text.Len() {
			n = p.node
		}
	}
	return n
}

// ParseRule compiles one rule from an object with the fields of one, as YAML or JSON. It may name the locks of the
// config.
func (c *Config) ParseRule(text []byte) (fault.Rule, error) {
	r := &reader{name: "rule", text: string(text)}
	var rule fault.Rule
	if root := r.root(); r.err == nil {
		rule = r.rule(root, c.known, map[string]bool{})
	}
	return rule, r.err
}

// rule compiles one entry of rules by way of the flag that says the same.
func (r *reader) rule(n ast.Node, known locks, names map[string]bool) fault.Rule {
	m := r.mapping(n, "name", "on", "at", "do", "for", "until", "scope", "per", "max", "cooldown", "timeout", "mode")
	on := r.mapping(r.need(m, "on"), "event", "lock", "key", "table", "every", "nth", "from", "to", "probability")
	do, flag := r.flag(m, on)
	t := &flagText{}
	r.anchor(t, on, known)
	r.effect(t, m, flag)
	for _, key := range []string{"scope", "per", "max", "cooldown", "timeout", "mode", "name"} {
		if v := m.get(key); v != nil {
			t.join(",")
			t.add(v, key+"="+r.plain(v))
		}
	}
	if r.err != nil {
		return fault.Rule{}
	}
	rule, err := fault.Parse(flag, t.text.String())
	if err != nil {
		r.refused(err, t, do)
	} else if rule.Name != "" && names[rule.Name] {
		r.fail(m.get("name"), "another rule is named %s, expected a name of its own", rule.Name)
	}
	names[rule.Name] = true
	return rule
}

// refused points a compile error at the field that it is about.
func (r *reader) refused(err error, t *flagText, do ast.Node) {
	var e *fault.Error
	switch {
	case !errors.As(err, &e):
		r.fail(do, "%s", err)
	case e.Offset < 0:
		r.fail(do, "%s", e.Reason)
	default:
		r.fail(t.node(e.Offset), "%s (as a flag: --%s %s)", e.Reason, e.Flag, show(e.Text))
	}
}

// flag names the rule flag of do and at, and the node to blame for it.
func (r *reader) flag(m, on mapping) (ast.Node, string) {
	do := r.need(m, "do")
	flag := r.oneOf(do, "stall", "freeze", "hold", "hold-reply", "drop-reply", "reset", "lose-key", "kill-backend")
	at := m.get("at")
	switch flag {
	case "stall", "freeze", "reset":
		if at == nil && !strings.HasPrefix(r.scalar(on.get("event")), "tick") {
			r.fail(m.node, "the field at is missing, expected at: before or at: after")
		}
		phase := "after" // a tick has no sides
		if at != nil {
			phase = r.oneOf(at, "before", "after")
		}
		return do, flag + "-" + phase
	}
	if at != nil {
		r.fail(at, "at is superfluous: %s says on which side of the event it is, expected the rule without it", flag)
	}
	return do, flag
}

func (r *reader) anchor(t *flagText, on mapping, known locks) {
	event := r.need(on, "event")
	name := r.scalar(event)
	inner, isTick := strings.CutPrefix(name, "tick(")
	if strings.ContainsAny(name, "#@=,") || !isTick && strings.ContainsAny(name, "()") || strings.ContainsAny(inner, "(") && isTick {
		r.fail(event, "expected an event alone, such as write, SETNX or tick(1.5s), found %s", show(name))
	}
	t.add(event, name)
	if n, glob := r.glob(on, name, known); n != nil {
		t.add(n, "("+glob+")")
	}
	r.selector(t, on)
	if p := on.get("probability"); p != nil {
		if !strings.HasSuffix(r.scalar(p), "%") {
			r.fail(p, "expected a percentage such as 5%%, found %s", show(r.scalar(p)))
		}
		t.add(p, "@"+r.plain(p))
	}
}

// glob reads which key or table the rule is about.
func (r *reader) glob(on mapping, event string, known locks) (ast.Node, string) {
	n, field := r.only(on, "lock", "key", "table")
	table := fault.NamesTable(event)
	switch {
	case n == nil:
		return nil, ""
	case field == "key" && table:
		r.fail(n, "the event %s is about a table, expected table or lock rather than key", show(event))
	case field == "table" && !table:
		r.fail(n, "the event %s is about a key, expected key or lock rather than table", show(event))
	case field == "lock":
		return n, r.lockGlob(n, known, table)
	}
	return n, fault.Escape(r.scalar(n))
}

// lockGlob is the lock's key, or the one table that it protects.
func (r *reader) lockGlob(n ast.Node, known locks, table bool) string {
	l := known.named(r, n)
	switch {
	case !table:
		// In a declaration only * is special.
		return strings.ReplaceAll(fault.Literal(l.key), `\*`, "*")
	case len(l.tables) == 1:
		return fault.Literal(l.tables[0])
	case len(l.tables) == 0:
		r.fail(n, "the lock %s protects no table, expected the field table, or protects in the lock", r.scalar(n))
	default:
		r.fail(n, "the lock %s protects %d tables (%s), expected the field table and one of them",
			r.scalar(n), len(l.tables), strings.Join(l.tables, ", "))
	}
	return ""
}

func (r *reader) selector(t *flagText, on mapping) {
	n, field := r.only(on, "every", "nth", "from")
	to := on.get("to")
	switch {
	case field == "from" && to == nil:
		r.fail(n, "the field to is missing, expected from and to")
	case field == "every":
		t.add(n, "#*/"+r.count(n))
	case n != nil:
		t.add(n, "#"+r.count(n))
	}
	if to == nil {
		return
	}
	if field != "from" {
		r.fail(to, "to is superfluous, expected it with from")
	}
	t.add(to, "-"+r.count(to))
}

func (r *reader) count(n ast.Node) string {
	s := r.scalar(n)
	if strings.Trim(s, "0123456789") != "" || s == "" {
		r.fail(n, "expected a whole number from 1, found %s", show(s))
	}
	return s
}

// only reads one field of several that exclude each other.
func (r *reader) only(m mapping, fields ...string) (n ast.Node, field string) {
	for _, f := range fields {
		v := m.get(f)
		if v != nil && n != nil {
			r.fail(v, "%s and %s exclude each other, expected one of them", field, f)
		}
		if v != nil {
			n, field = v, f
		}
	}
	return n, field
}

// effect reads for, or until and its list of conditions.
func (r *reader) effect(t *flagText, m mapping, flag string) {
	n, field := r.only(m, "for", "until")
	waits := strings.HasPrefix(flag, "stall") || strings.HasPrefix(flag, "freeze") || strings.HasPrefix(flag, "hold")
	switch {
	case n == nil && waits:
		r.fail(m.node, "the field for is missing, expected a duration such as for: 800ms")
	case field == "for":
		t.join("=")
		t.add(n, r.plain(n))
	case field == "until":
		var conditions []string
		for _, c := range r.items(n) {
			conditions = append(conditions, r.plain(c))
		}
		t.join("=")
		t.add(n, "until:"+strings.Join(conditions, "+"))
	}
}

// plain reads a value that stands between the commas of a flag.
func (r *reader) plain(n ast.Node) string {
	s := r.scalar(n)
	if strings.ContainsAny(s, ",=") {
		r.fail(n, "expected a value without commas and equals signs, found %s", show(s))
	}
	return s
}
