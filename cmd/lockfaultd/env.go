package main

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
)

// An environment is a command's variables being rewritten, so that what points
// to an upstream points to a proxy. Two variables with one upstream share one.
type environment struct {
	vars    []string
	listen  func(p lock.Protocol, upstream string) (address string, err error)
	known   map[string]string // protocol and upstream -> address
	changed []string          // what was rewritten, for people
	notes   []string          // what was not, and why
}

// rewriteEnv returns vars with the usual variables, and those in extra,
// rewritten to the addresses that listen gives. Errors name the variable.
func rewriteEnv(vars, extra []string, listen func(lock.Protocol, string) (string, error)) (*environment, error) {
	e := &environment{vars: slices.Clone(vars), listen: listen, known: map[string]string{}}
	for _, name := range append([]string{"REDIS_URL", "DATABASE_URL"}, extra...) {
		if err := e.rewriteURL(name, slices.Contains(extra, name)); err != nil {
			return nil, err
		}
	}
	if err := e.rewriteHostPort("REDIS_HOST", "REDIS_PORT", lock.Redis); err != nil {
		return nil, err
	}
	return e, e.rewritePG()
}

func (e *environment) get(name string) (string, bool) {
	for i := len(e.vars) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e.vars[i], name+"="); ok {
			return v, v != ""
		}
	}
	return "", false
}

func (e *environment) set(name, value string) {
	e.unset(name)
	e.vars = append(e.vars, name+"="+value)
	e.changed = append(e.changed, name)
}

func (e *environment) unset(name string) {
	e.vars = slices.DeleteFunc(e.vars, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

func (e *environment) proxyFor(p lock.Protocol, upstream string) (string, error) {
	key := string(p) + " " + canonical(upstream)
	if a, ok := e.known[key]; ok {
		return a, nil
	}
	a, err := e.listen(p, upstream)
	if err == nil {
		e.known[key] = a
	}
	return a, err
}

// canonical makes one spelling of an address: localhost is 127.0.0.1.
func canonical(address string) string {
	if found := resolve(address); len(found) > 0 {
		return found[0].String()
	}
	return address
}

// rewriteURL keeps user, password, database and options of a URL.
func (e *environment) rewriteURL(name string, must bool) error {
	text, ok := e.get(name)
	if !ok {
		if must {
			return fmt.Errorf("--env %s: the variable is not set; expected a redis:// or postgres:// URL, or HOST:PORT", name)
		}
		return nil
	}
	if must && !strings.Contains(text, "://") {
		return e.rewriteAddress(name, text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("%s: not a URL: expected redis://HOST:PORT/DB or postgres://USER@HOST:PORT/DATABASE", name)
	}
	p, ok := protocolOf(u)
	if !ok {
		if must {
			return fmt.Errorf("%s: scheme %q cannot be proxied; expected redis, postgres or postgresql", name, u.Scheme)
		}
		e.notes = append(e.notes, fmt.Sprintf("%s is left as it is: scheme %q cannot be proxied", name, u.Scheme))
		return nil
	}
	if err := plain(name, p, u); err != nil {
		return err
	}
	host, port := e.defaults(p)
	if u.Hostname() == "" && strings.HasPrefix(host, "/") {
		e.notes = append(e.notes, fmt.Sprintf("%s is left as it is: PGHOST=%s is a Unix socket, which cannot be proxied", name, host))
		return nil
	}
	address, err := e.proxyFor(p, net.JoinHostPort(or(u.Hostname(), host), or(u.Port(), port)))
	if err != nil {
		return err
	}
	u.Host = address
	e.set(name, u.String())
	return nil
}

// protocolOf reads the scheme, without the driver that some libraries put
// behind a plus.
func protocolOf(u *url.URL) (lock.Protocol, bool) {
	scheme, _, _ := strings.Cut(u.Scheme, "+")
	switch scheme {
	case "redis", "rediss":
		return lock.Redis, true
	case "postgres", "postgresql":
		return lock.Postgres, true
	}
	return "", false
}

// plain refuses what a proxy that speaks no TLS, and knows one address, cannot
// keep.
func plain(name string, p lock.Protocol, u *url.URL) error {
	mode := u.Query().Get("sslmode")
	switch {
	case u.Scheme == "rediss":
		return fmt.Errorf("%s: TLS (rediss) cannot be proxied yet; expected redis://", name)
	case strings.Contains(u.Host, ","):
		return fmt.Errorf("%s: several hosts in one URL cannot be proxied; expected one", name)
	case p == lock.Postgres && u.Query().Get("host") != "":
		return fmt.Errorf("%s: the host %q in its options cannot be rewritten; expected it before the database's name", name, u.Query().Get("host"))
	case p == lock.Postgres && needsTLS(mode):
		return fmt.Errorf("%s: sslmode=%s cannot be kept through a proxy that does not speak TLS yet; expected prefer, allow or disable", name, mode)
	}
	return nil
}

func needsTLS(mode string) bool { return mode == "require" || strings.HasPrefix(mode, "verify-") }

// defaults is where a URL without host or port leads: for Postgres that is
// what PGHOST and PGPORT say, before they are rewritten.
func (e *environment) defaults(p lock.Protocol) (host, port string) {
	if p == lock.Redis {
		return "127.0.0.1", "6379"
	}
	h, _ := e.get("PGHOST")
	pt, _ := e.get("PGPORT")
	return or(h, "127.0.0.1"), or(pt, "5432")
}

func (e *environment) rewriteAddress(name, text string) error {
	if _, _, err := net.SplitHostPort(text); err != nil {
		return fmt.Errorf("--env %s: %q is neither a URL nor HOST:PORT", name, text)
	}
	p := lock.Redis
	if up := strings.ToUpper(name); strings.Contains(up, "PG") || strings.Contains(up, "POSTGRES") || strings.Contains(up, "DATABASE") {
		p = lock.Postgres
	}
	address, err := e.proxyFor(p, text)
	if err != nil {
		return err
	}
	e.set(name, address)
	return nil
}

// rewritePG rewrites the variables of libpq. A host that is a folder is a Unix
// socket, which no proxy can stand before: it stays, with a note.
func (e *environment) rewritePG() error {
	host, _ := e.get("PGHOST")
	if strings.HasPrefix(host, "/") {
		e.notes = append(e.notes, fmt.Sprintf("PGHOST=%s is left as it is: a Unix socket cannot be proxied; expected a host, such as 127.0.0.1", host))
		return nil
	}
	if mode, _ := e.get("PGSSLMODE"); needsTLS(mode) {
		return fmt.Errorf("PGSSLMODE=%s cannot be kept through a proxy that does not speak TLS yet; expected prefer, allow or disable", mode)
	}
	if numeric, ok := e.get("PGHOSTADDR"); ok {
		e.set("PGHOST", numeric) // it is what libpq connects to
		e.unset("PGHOSTADDR")
	}
	return e.rewriteHostPort("PGHOST", "PGPORT", lock.Postgres)
}

// rewriteHostPort rewrites a pair where one of the two is set.
func (e *environment) rewriteHostPort(hostVar, portVar string, p lock.Protocol) error {
	host, ok := e.get(hostVar)
	port, portSet := e.get(portVar)
	if !ok && !portSet {
		return nil
	}
	def := map[lock.Protocol]string{lock.Redis: "6379", lock.Postgres: "5432"}[p]
	address, err := e.proxyFor(p, net.JoinHostPort(or(host, "127.0.0.1"), or(port, def)))
	if err != nil {
		return err
	}
	h, pt, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	e.set(hostVar, h)
	e.set(portVar, pt)
	return nil
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// databaseURL returns where invariants are read: straight from the upstream
// that the command would have used.
func databaseURL(vars, extra []string, proxies []config.Proxy) string {
	e := &environment{vars: vars}
	for _, name := range append([]string{"DATABASE_URL"}, extra...) {
		text, _ := e.get(name)
		if u, err := url.Parse(text); err == nil {
			if p, ok := protocolOf(u); ok && p == lock.Postgres {
				u.Scheme = "postgres"
				return u.String()
			}
		}
	}
	_, host := e.get("PGHOST")
	_, port := e.get("PGPORT")
	if host || port {
		h, pt := e.defaults(lock.Postgres)
		return fmt.Sprintf("host=%s port=%s", h, pt) // the rest comes from PGUSER, ... as for every client
	}
	for _, p := range proxies {
		if p.Protocol == lock.Postgres {
			return "postgres://" + p.Upstream
		}
	}
	return ""
}
