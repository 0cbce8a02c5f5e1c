package config

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Probe is what a file for probe serve says, each list in the file's order.
type Probe struct {
	Admin      string // URL of the admin API of the daemon that is followed; "" where none is
	History    string // folder of the histories that are followed instead
	Locks      []lock.Declaration
	Names      Names // of the locks
	Invariants []Watched
}

// A Watched is something that must hold of the data, and is looked at while services work.
type Watched struct {
	Name     string
	Kind     string // one of WatchedKinds
	Every    time.Duration
	Postgres Server // of Query
	Redis    Server
	Query    string
	Equals   string        // of a sum: the query that has to agree
	EqualsAt Server        // where that is asked
	Key      string        // of a fence: the key from which fences are given out
	Pattern  string        // of a lock: of its keys
	Except   []string      // of those, patterns of keys that are not meant
	Held     time.Duration // how long it may be held; 0: for ever
	Lasting  bool          // of a lock: it may have no lifetime
	Unique   bool          // of a lock: each grant has a token of its own
	Lock     string        // key of the lock that guards it; "" where none was named

	at, equalsAt *Error // the places of its queries
}

// A Server is one that an invariant asks. The URL may have a password, which must reach neither logs nor answers.
type Server struct{ Name, URL string }

// WatchedKinds lists the kinds of what is watched.
func WatchedKinds() []string { return []string{"acked", "sum", "zero", "monotone", "fence", "lock"} }

// Mistake is the error of the query that is no good, at its place in the file.
func (w Watched) Mistake(equals bool, reason error) error {
	e := *w.at
	if equals {
		e = *w.equalsAt
	}
	e.Reason = "query of " + w.Name + ": " + reason.Error()
	return &e
}

// LoadProbe reads the file at path. An error of its contents is an *[Error].
func LoadProbe(path string) (*Probe, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the path
	}
	return ParseProbe(filepath.Clean(path), b, os.Getenv)
}

// ParseProbe reads the text of such a file; name is what errors call it, and env gives variables. An error is an *[Error].
func ParseProbe(name string, text []byte, env func(string) string) (*Probe, error) {
	r := &probeReader{reader: &reader{name: name, text: string(text)}, env: env}
	p := &Probe{}
	if root := r.root(); r.err == nil {
		r.probe(p, root)
	}
	if r.err != nil {
		return nil, r.err
	}
	return p, nil
}

// A probeReader knows what was named so far.
type probeReader struct {
	*reader
	env      func(string) string
	postgres []Server
	redis    []Server
	locks    locks
	every    time.Duration
}

func (r *probeReader) probe(p *Probe, root ast.Node) {
	m := r.mapping(root, "version", "source", "postgres", "redis", "locks", "every", "invariants")
	r.version(m)
	r.source(p, m)
	r.postgres = r.servers(m.get("postgres"), "postgres", "postgresql")
	r.redis = r.servers(m.get("redis"), "redis", "rediss")
	r.locks = locks{}
	for _, n := range r.items(m.get("locks")) {
		all, name := r.locks.add(r.reader, n)
		p.Locks, p.Names = append(p.Locks, all...), append(p.Names, name)
	}
	if r.every = time.Second; m.get("every") != nil {
		r.every = r.span(m.get("every"), 50*time.Millisecond)
	}
	for _, n := range r.items(m.get("invariants")) {
		p.Invariants = append(p.Invariants, r.watched(n, p))
	}
	if p.Admin == "" && p.History == "" && len(p.Invariants) == 0 {
		r.fail(root, "neither source nor invariants is given: there is nothing to watch")
	}
}

func (r *probeReader) source(p *Probe, m mapping) {
	n := m.get("source")
	if n == nil {
		return
	}
	s := r.mapping(n, "admin", "history")
	admin, folder := s.get("admin"), s.get("history")
	switch {
	case (admin == nil) == (folder == nil):
		r.fail(n, "expected one of admin, the URL of a daemon's admin API, and history, the folder of its histories")
	case admin != nil:
		p.Admin = r.adminURL(admin)
	default:
		if p.History = r.scalar(folder); p.History == "" {
			r.fail(folder, "history is empty, expected a folder")
		}
	}
}

func (r *probeReader) adminURL(n ast.Node) string {
	text := strings.TrimSuffix(r.scalar(n), "/")
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		r.fail(n, "expected http://HOST:PORT, found %s", showAddress(text))
		r.hide(text)
	}
	return text
}

// servers reads URLs by name. The form env:NAME stands for what the variable has.
func (r *probeReader) servers(n ast.Node, schemes ...string) (all []Server) {
	for _, e := range r.entries(n) {
		text := r.scalar(e.value)
		if name, ok := strings.CutPrefix(text, "env:"); ok && r.err == nil {
			if text = r.env(name); text == "" {
				r.fail(e.value, "the variable %s is not set", show(name))
			}
		}
		u, err := url.Parse(text)
		scheme := ""
		if err == nil {
			scheme, _, _ = strings.Cut(u.Scheme, "+")
		}
		if err != nil || !slices.Contains(schemes, scheme) || u.Host == "" && u.RawQuery == "" {
			r.fail(e.value, "expected a URL such as %s://HOST:PORT/..., or env:NAME, found %s", schemes[0], showAddress(text))
			r.hide(text)
		}
		all = append(all, Server{e.name, text})
	}
	return all
}

// span reads a duration.
func (r *probeReader) span(n ast.Node, least time.Duration) time.Duration {
	d, err := time.ParseDuration(r.scalar(n))
	if err != nil || d < least {
		r.fail(n, "expected a duration of at least %v, such as 1s, found %s", least, show(r.scalar(n)))
	}
	return d
}

// fieldsOf are what each kind has beside name, kind and every; those that it must have come first.
var fieldsOf = map[string]struct{ must, may []string }{
	"acked":    {[]string{"query"}, []string{"postgres", "lock"}},
	"sum":      {[]string{"query", "equals"}, []string{"postgres", "equals_postgres", "lock"}},
	"zero":     {[]string{"query"}, []string{"postgres", "lock"}},
	"monotone": {[]string{"query"}, []string{"postgres", "lock"}},
	"fence":    {nil, []string{"query", "postgres", "key", "redis", "lock"}},
	"lock":     {[]string{"pattern"}, []string{"redis", "except", "held", "lifetime", "tokens"}},
}

func (r *probeReader) watched(n ast.Node, p *Probe) Watched {
	m := r.mapping(n, "name", "kind", "every", "query", "equals", "equals_postgres", "postgres", "key", "redis", "pattern", "except", "held", "lifetime", "tokens", "lock")
	w := Watched{Name: r.ownName(m), Kind: r.oneOf(r.need(m, "kind"), WatchedKinds()...), Every: r.every}
	r.only(m, w.Kind)
	if e := m.get("every"); e != nil {
		w.Every = r.span(e, 50*time.Millisecond)
	}
	if l := m.get("lock"); l != nil {
		w.Lock = r.locks.named(r.reader, l).key
	}
	w.Query, w.at = r.query(m, "query")
	w.Equals, w.equalsAt = r.query(m, "equals")
	r.asks(&w, m)
	r.leases(&w, m)
	if w.Kind == "acked" && p.Admin == "" {
		r.fail(m.node, "%s is of kind acked, which needs the clock of the daemon: expected source: {admin: URL}", show(w.Name))
	}
	return w
}

// only refuses what a kind does not have.
func (r *probeReader) only(m mapping, kind string) {
	if r.err != nil {
		return
	}
	fields := fieldsOf[kind]
	for _, name := range fields.must {
		r.need(m, name)
	}
	known := slices.Concat([]string{"name", "kind", "every"}, fields.must, fields.may)
	for _, e := range m.entries {
		if !slices.Contains(known, e.name) {
			r.fail(e.key, "%s means nothing for the kind %s, expected of %s", e.name, kind, strings.Join(known, ", "))
		}
	}
	if kind == "fence" && m.get("query") == nil && m.get("key") == nil {
		r.fail(m.node, "expected a query for the stored fence, a key from which fences are given out, or both")
	}
}

func (r *probeReader) query(m mapping, field string) (string, *Error) {
	n := m.get(field)
	if n == nil || r.err != nil {
		return "", nil
	}
	text := strings.TrimRight(strings.TrimSpace(r.scalar(n)), "; \t\r\n")
	if text == "" {
		r.fail(n, "%s is empty, expected SQL", field)
	}
	return text, r.errorAt(start(n), "")
}

// asks finds the servers that an invariant asks.
func (r *probeReader) asks(w *Watched, m mapping) {
	if w.Query != "" {
		w.Postgres = r.server(m, "postgres", r.postgres)
		w.EqualsAt = w.Postgres
	}
	if m.get("equals_postgres") != nil {
		w.EqualsAt = r.server(m, "equals_postgres", r.postgres)
	}
	if w.Key = r.scalar(m.get("key")); w.Key != "" || w.Kind == "lock" {
		w.Redis = r.server(m, "redis", r.redis)
	}
}

// server finds one by the name that a field has; without the field there has to be one only.
func (r *probeReader) server(m mapping, field string, known []Server) Server {
	n := m.get(field)
	if r.err != nil {
		return Server{}
	}
	if n == nil {
		if len(known) != 1 {
			r.fail(m.node, "the field %s is missing, expected %s", field, nameList(known, field))
			return Server{}
		}
		return known[0]
	}
	name := r.scalar(n)
	for _, s := range known {
		if s.Name == name {
			return s
		}
	}
	r.fail(n, "nothing is named %s, expected %s", show(name), nameList(known, field))
	return Server{}
}

func nameList(known []Server, field string) string {
	field = strings.TrimPrefix(field, "equals_")
	if len(known) == 0 {
		return "it to be declared under " + field + ":"
	}
	var names []string
	for _, s := range known {
		names = append(names, s.Name)
	}
	return strings.Join(names, " or ")
}

// leases reads what is said of locks.
func (r *probeReader) leases(w *Watched, m mapping) {
	w.Pattern = r.pattern(m, "pattern")
	for _, p := range r.items(m.get("except")) {
		w.Except = append(w.Except, r.scalar(p))
	}
	if h := m.get("held"); h != nil {
		w.Held = r.span(h, time.Millisecond)
	}
	if l := m.get("lifetime"); l != nil {
		w.Lasting = r.oneOf(l, "required", "any") == "any"
	}
	if t := m.get("tokens"); t != nil {
		w.Unique = r.oneOf(t, "unique", "any") == "unique"
	}
	if w.Kind == "lock" && w.Lasting && w.Held == 0 {
		r.fail(m.node, "nothing is asked of %s: expected held, or a lifetime that is required", show(w.Name))
	}
}
