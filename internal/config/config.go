package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A Config is what a file says, each list in the file's order.
type Config struct {
	Proxies    []Proxy
	Locks      []lock.Declaration // one for each table of each lock
	Rules      []fault.Rule
	Invariants []Invariant
	Witness    string // one of Witnesses; "" where the file does not say
	Names      Names  // of the locks

	known locks
	rules []*Error // where they stand
}

// Misfit is the error of a rule, by its place in Rules, that is no good beside others, at its place in the file.
func (c *Config) Misfit(rule int, reason error) error {
	e := *c.rules[rule]
	e.Reason = reason.Error()
	return &e
}

// A Name is what a lock is called.
type Name struct {
	Name string
	Lock lock.Declaration
}

// Names are those of the locks, as a file has them.
type Names []Name

// Of is what the file calls the lock of a key; "" where it declares none.
func (all Names) Of(key string) string {
	for _, n := range all {
		if !n.Lock.Ignore && n.Lock.Covers(key) {
			return n.Name
		}
	}
	return ""
}

// A Proxy is one way through the daemon. The addresses are HOST:PORT; Listen may be unix:PATH.
type Proxy struct {
	Name     string
	Protocol lock.Protocol
	Listen   string
	Upstream string
	TLS      TLS
	Relayed  bool // clients come through a relay that speaks the PROXY protocol
	Login    Login
}

// A Login is what side connections to an upstream authenticate with. It must
// reach neither logs nor the history.
type Login struct {
	User, Password string
	URL            string // Postgres: all of it, as its libraries take it; "" where it is not known
}

// Witnesses are the words that say which side connections there are.
func Witnesses() []string { return []string{"auto", "monitor", "probe", "none"} }

// An Invariant is something that must hold of the data.
type Invariant struct {
	Name  string
	Kind  string // "counter", "fence" or "monotone"
	Query string // SQL that gives one number
	Lock  string // key of the lock that guards it; "" when none was named

	at *Error // its query's place
}

// Mistake is the error of a query that is no good, at its place in the file.
func (i Invariant) Mistake(reason error) error {
	e := *i.at
	e.Reason = fmt.Sprintf("query of %s: %s", i.Name, reason)
	return &e
}

// Place is where in the file the query stands: FILE:LINE:COLUMN.
func (i Invariant) Place() string { return fmt.Sprintf("%s:%d:%d", i.at.File, i.at.Line, i.at.Column) }

// Load reads the file at path. An error of its contents is an *[Error].
func Load(path string) (*Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err // it names the path
	}
	return Parse(filepath.Clean(path), b)
}

// Parse reads the text of a file; name is what errors call it. An error is an
// *[Error].
func Parse(name string, text []byte) (*Config, error) {
	r := &reader{name: name, text: string(text)}
	c := &Config{}
	if root := r.root(); r.err == nil {
		r.config(c, root)
	}
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

func (r *reader) config(c *Config, root ast.Node) {
	m := r.mapping(root, "version", "proxies", "locks", "rules", "invariants", "witness")
	r.version(m)
	if w := m.get("witness"); w != nil {
		c.Witness = r.oneOf(w, Witnesses()...)
	}
	for _, p := range r.entries(m.get("proxies")) {
		c.Proxies = append(c.Proxies, r.proxy(p))
	}
	locks := locks{}
	for _, n := range r.items(m.get("locks")) {
		all, name := locks.add(r, n)
		c.Locks, c.Names = append(c.Locks, all...), append(c.Names, name)
	}
	c.known = locks
	names := map[string]bool{}
	for _, n := range r.items(m.get("rules")) {
		c.Rules = append(c.Rules, r.rule(n, locks, names))
		c.rules = append(c.rules, r.errorAt(start(n), ""))
	}
	for _, n := range r.items(m.get("invariants")) {
		c.Invariants = append(c.Invariants, r.invariant(n, locks))
	}
}

func (r *reader) version(m mapping) {
	n := r.need(m, "version")
	if n != nil && r.scalar(n) != "1" {
		r.fail(n, "unknown version %s, expected 1", r.scalar(n))
	}
}

func (r *reader) proxy(e entry) Proxy {
	m := r.mapping(e.value, "listen", "upstream", "protocol", "tls", "proxy_protocol")
	p := Proxy{
		Name:     e.name,
		Protocol: r.protocol(e, m),
		Listen:   r.address(m, "listen"),
		Upstream: r.address(m, "upstream"),
	}
	if n := m.get("proxy_protocol"); n != nil {
		p.Relayed = r.oneOf(n, "true", "false") == "true"
	}
	if r.err == nil {
		p.TLS = r.tls(m.get("tls"), p.Protocol, p.Upstream)
	}
	return p
}

func (r *reader) protocol(e entry, m mapping) lock.Protocol {
	name, at := e.name, m.get("protocol")
	if at != nil {
		name = r.oneOf(at, "redis", "postgres")
	}
	p, ok := protocolOf(name)
	if !ok {
		r.fail(e.key, "the name %s tells no protocol, expected one that begins with redis or postgres, or the field protocol", show(name))
	}
	return p
}

func (r *reader) address(m mapping, field string) string {
	n := r.need(m, field)
	if n == nil {
		return ""
	}
	s := r.scalar(n)
	check := checkListen
	if field == "upstream" {
		check = func(s string) error { return checkAddress(s, true) }
	}
	if err := check(s); err != nil {
		r.fail(n, "%s", err)
		r.hide(s)
	}
	return s
}

// ownName reads a name that no invariant before has.
func (r *reader) ownName(m mapping) string {
	name := r.scalar(r.need(m, "name"))
	switch {
	case slices.Contains(r.taken, name):
		r.fail(m.get("name"), "the name %s is taken, expected one of its own", show(name))
	case name == "" || strings.ContainsAny(name, "\r\n"):
		r.fail(m.get("name"), "the name %s is none, expected some text on one line", show(name))
	}
	r.taken = append(r.taken, name)
	return name
}

func (r *reader) invariant(n ast.Node, known locks) Invariant {
	m := r.mapping(n, "name", "kind", "query", "lock")
	i := Invariant{
		Name:  r.ownName(m),
		Kind:  r.oneOf(r.need(m, "kind"), "counter", "fence", "monotone"),
		Query: r.scalar(r.need(m, "query")),
	}
	if l := m.get("lock"); l != nil {
		i.Lock = known.named(r, l).key
	}
	if r.err == nil {
		i.at = r.errorAt(start(m.get("query")), "")
	}
	return i
}
