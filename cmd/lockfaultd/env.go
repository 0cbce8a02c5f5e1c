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
	routes  int
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
	return e, e.rewriteHostPort("PGHOST", "PGPORT", lock.Postgres)
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
	e.vars = slices.DeleteFunc(e.vars, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	e.vars = append(e.vars, name+"="+value)
	e.changed = append(e.changed, name)
}

func (e *environment) proxyFor(p lock.Protocol, upstream string) (string, error) {
	key := string(p) + " " + upstream
	if a, ok := e.known[key]; ok {
		return a, nil
	}
	a, err := e.listen(p, upstream)
	if err == nil {
		e.known[key] = a
		e.routes++
	}
	return a, err
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
	p, port, err := schemeOf(name, u)
	if err != nil {
		return err
	}
	address, err := e.proxyFor(p, net.JoinHostPort(hostOr(u.Hostname()), portOr(u.Port(), port)))
	if err != nil {
		return err
	}
	u.Host = address
	e.set(name, u.String())
	return nil
}

func schemeOf(name string, u *url.URL) (lock.Protocol, string, error) {
	switch u.Scheme {
	case "redis":
		return lock.Redis, "6379", nil
	case "postgres", "postgresql":
		if h := u.Query().Get("host"); h != "" || u.Hostname() == "" && u.Host != "" {
			return "", "", fmt.Errorf("%s: the host %q in its options cannot be rewritten; expected it before the database's name", name, h)
		}
		if mode := u.Query().Get("sslmode"); mode == "require" || strings.HasPrefix(mode, "verify-") {
			return "", "", fmt.Errorf("%s: sslmode=%s cannot be kept through a proxy that does not speak TLS yet; expected prefer, allow or disable", name, mode)
		}
		return lock.Postgres, "5432", nil
	}
	return "", "", fmt.Errorf("%s: scheme %q cannot be proxied; expected redis, postgres or postgresql", name, u.Scheme)
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

// rewriteHostPort rewrites a pair where the host is set. A host that is a
// folder is a Unix socket, which no proxy can stand before: it stays.
func (e *environment) rewriteHostPort(hostVar, portVar string, p lock.Protocol) error {
	host, ok := e.get(hostVar)
	port, portSet := e.get(portVar)
	if !ok && !portSet || strings.HasPrefix(host, "/") {
		return nil
	}
	def := map[lock.Protocol]string{lock.Redis: "6379", lock.Postgres: "5432"}[p]
	address, err := e.proxyFor(p, net.JoinHostPort(hostOr(host), portOr(port, def)))
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

func hostOr(h string) string {
	if h == "" {
		return "127.0.0.1"
	}
	return h
}

func portOr(p, def string) string {
	if p == "" {
		return def
	}
	return p
}

// databaseURL returns where invariants are read: straight from the upstream.
func databaseURL(vars []string, proxies []config.Proxy) string {
	e := &environment{vars: vars}
	if u, ok := e.get("DATABASE_URL"); ok {
		return u
	}
	if h, ok := e.get("PGHOST"); ok {
		return "host=" + h // the rest comes from PGPORT, PGUSER, ... as for every client
	}
	for _, p := range proxies {
		if p.Protocol == lock.Postgres {
			return "postgres://" + p.Upstream
		}
	}
	return ""
}
