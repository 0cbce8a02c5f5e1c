package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe"
)

// An environment is a command's variables being rewritten, so that what points
// to an upstream points to a proxy. Two variables with one upstream share one.
type environment struct {
	vars    []string
	given   []string // vars as they were
	listen  func(config.Proxy) (address string, err error)
	known   map[string]string // protocol, upstream and its TLS -> address
	changed []string          // what was rewritten, for people
	notes   []string          // what was not, and why
}

// rewriteEnv returns vars with the usual variables, and those in extra,
// rewritten to the addresses that listen gives. Errors name the variable.
func rewriteEnv(vars, extra []string, listen func(config.Proxy) (string, error)) (*environment, error) {
	e := &environment{vars: slices.Clone(vars), given: vars, listen: listen, known: map[string]string{}}
	e.unset(witnessUser)
	e.unset(witnessPassword)
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

func (e *environment) get(name string) (string, bool) { return lookup(e.vars, name) }

func lookup(vars []string, name string) (string, bool) {
	for i := len(vars) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(vars[i], name+"="); ok {
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

// proxyFor returns the address of a proxy that leads to an upstream, by a
// plaintext leg from the command and one to the upstream as its URL wants it.
// login is the command's own, of which the first counts.
func (e *environment) proxyFor(p lock.Protocol, upstream string, leg config.UpstreamLeg, login config.Login) (string, error) {
	key := fmt.Sprintf("%s %s %v", p, canonical(upstream), leg)
	if a, ok := e.known[key]; ok {
		return a, nil
	}
	conf, err := leg.Load(upstream)
	if err != nil {
		return "", fmt.Errorf("TLS to %s: %w", upstream, err)
	}
	a, err := e.listen(config.Proxy{Protocol: p, Upstream: upstream, TLS: config.TLS{Upstream: conf, Direct: leg.Direct}, Login: login})
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
	if err := single(name, p, u); err != nil {
		return err
	}
	host, port := e.defaults(p)
	if u.Hostname() == "" && strings.HasPrefix(host, "/") {
		e.notes = append(e.notes, fmt.Sprintf("%s is left as it is: PGHOST=%s is a Unix socket, which cannot be proxied", name, host))
		return nil
	}
	leg, rest, err := config.TakeTLS(p, u, e.libpq)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if u.Host, err = e.proxyFor(p, net.JoinHostPort(or(u.Hostname(), host), or(u.Port(), port)), leg, loginOf(u)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if leg.Mode != config.Disable {
		u.Scheme = strings.Replace(u.Scheme, "rediss", "redis", 1)
		u.RawQuery = rest
		if p == lock.Postgres {
			e.weaken()
		}
	}
	e.set(name, u.String())
	return nil
}

func loginOf(u *url.URL) config.Login {
	password, _ := u.User.Password()
	return config.Login{User: u.User.Username(), Password: password, URL: u.String()}
}

// login is what the variables beside a host and a port say.
func (e *environment) login(p lock.Protocol) config.Login {
	if p == lock.Postgres {
		host, port := e.defaults(p)
		return config.Login{URL: fmt.Sprintf("host=%s port=%s", host, port)} // the rest comes from PGUSER, ... as for every client
	}
	user, _ := e.get("REDIS_USERNAME")
	password, _ := e.get("REDIS_PASSWORD")
	return config.Login{User: user, Password: password}
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

// single refuses what a proxy that knows one address cannot keep.
func single(name string, p lock.Protocol, u *url.URL) error {
	switch {
	case strings.Contains(u.Host, ","):
		return fmt.Errorf("%s: several hosts in one URL cannot be proxied; expected one", name)
	case p == lock.Postgres && u.Query().Get("host") != "":
		return fmt.Errorf("%s: the host %q in its options cannot be rewritten; expected it before the database's name", name, u.Query().Get("host"))
	}
	return nil
}

// libpq returns a variable about TLS, or the file that libpq takes without it.
func (e *environment) libpq(name string) string {
	if v, ok := lookup(e.given, name); ok {
		return v
	}
	file := map[string]string{"PGSSLROOTCERT": "root.crt", "PGSSLCERT": "postgresql.crt", "PGSSLKEY": "postgresql.key"}[name]
	home, _ := lookup(e.given, "HOME")
	path := filepath.Join(home, ".postgresql", file)
	if _, err := os.Stat(path); file == "" || home == "" || err != nil {
		return ""
	}
	return path
}

// weaken takes away the variables beside which libpq accepts no plaintext, not
// even that of a URL that says so.
func (e *environment) weaken() {
	for name, strict := range map[string]string{"PGSSLROOTCERT": "system", "PGSSLNEGOTIATION": "direct"} {
		if v, _ := e.get(name); v == strict {
			e.unset(name)
		}
	}
}

// legOf is how an upstream is to be trusted whose address has no options: that
// of Postgres has libpq's variables.
func (e *environment) legOf(p lock.Protocol) (config.UpstreamLeg, error) {
	leg, _, err := config.TakeTLS(p, &url.URL{}, e.libpq)
	if err == nil && leg.Mode != config.Disable {
		e.set("PGSSLMODE", config.Disable)
		e.weaken()
	}
	return leg, err
}

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
	if _, _, err := net.SplitHostPort(text); err != nil || strings.Contains(text, "@") {
		return fmt.Errorf("--env %s: %q is neither a URL nor HOST:PORT", name, config.WithoutSecrets(text))
	}
	p := lock.Redis
	if up := strings.ToUpper(name); strings.Contains(up, "PG") || strings.Contains(up, "POSTGRES") || strings.Contains(up, "DATABASE") {
		p = lock.Postgres
	}
	leg, err := e.legOf(p)
	if err != nil {
		return fmt.Errorf("--env %s: %w", name, err)
	}
	address, err := e.proxyFor(p, text, leg, e.login(p))
	if err != nil {
		return fmt.Errorf("--env %s: %w", name, err)
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
	leg, err := e.legOf(p)
	if err != nil {
		return fmt.Errorf("%s: %w", hostVar, err)
	}
	address, err := e.proxyFor(p, net.JoinHostPort(or(host, "127.0.0.1"), or(port, def)), leg, e.login(p))
	if err != nil {
		return fmt.Errorf("%s: %w", hostVar, err)
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

// databaseOf returns where invariants are read: straight from the upstream
// that the command would have used, which has to be trusted as by its proxy.
func databaseOf(vars, extra []string, proxies []config.Proxy) probe.Database {
	e := &environment{vars: vars}
	for _, name := range append([]string{"DATABASE_URL"}, extra...) {
		text, _ := e.get(name)
		if u, err := url.Parse(text); err == nil {
			if p, ok := protocolOf(u); ok && p == lock.Postgres {
				u.Scheme = "postgres"
				return probe.Database{URL: u.String()}
			}
		}
	}
	_, host := e.get("PGHOST")
	_, port := e.get("PGPORT")
	if host || port {
		h, pt := e.defaults(lock.Postgres)
		return probe.Database{URL: fmt.Sprintf("host=%s port=%s", h, pt)} // the rest comes from PGUSER, ... as for every client
	}
	for _, p := range proxies {
		if p.Protocol == lock.Postgres {
			return probe.Database{URL: "postgres://" + p.Upstream, TLS: p.TLS.Upstream, Direct: p.TLS.Direct}
		}
	}
	return probe.Database{}
}
