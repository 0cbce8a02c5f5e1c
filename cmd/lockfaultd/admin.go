package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/live"
	"github.com/lockfaultd/lockfaultd/metrics"
)

// The variables with the admin API's token, and with its URL for commands that are run.
const (
	adminToken = "LOCKFAULTD_ADMIN_TOKEN"
	adminURL   = "LOCKFAULTD_ADMIN"
)

// aCommandsAdmin is where the API listens for a command that has a signal to give and did not hear where.
const aCommandsAdmin = "127.0.0.1:0"

// wantsAdmin refuses signals that nobody could give.
func (s *setup) wantsAdmin() error {
	names := fault.Signals(s.rules)
	if len(names) == 0 || s.admin != "" {
		return nil
	}
	return usagef("a rule waits for signal:%s, and nothing takes signals; expected --admin ADDRESS, such as --admin 127.0.0.1:8474", names[0])
}

// openAdmin serves the admin API, if there is to be one.
func (d *daemon) openAdmin() error {
	if d.setup.admin == "" {
		return nil
	}
	token := os.Getenv(adminToken)
	ln, err := admin.Listen(d.setup.admin, token)
	switch {
	case errors.Is(err, admin.ErrOpen):
		return usagef("--admin %s: %v; expected an address of loopback, or a token in %s", d.setup.admin, err, adminToken)
	case err != nil:
		return usagef("--admin: cannot %v", err)
	}
	d.admin = admin.Serve(ln, admin.Handler(d.parts(), token))
	d.adminURL, d.adminAt = "http://"+reachable(ln.Addr()), "http://"+listens(d.setup.admin, ln.Addr())
	return nil
}

// parts are what the API is made of.
func (d *daemon) parts() admin.Parts {
	return admin.Parts{
		Gates: signals{d}, Rules: ruling{d}, Seen: seeing{d}, Freezing: stopping{d}, Stopping: stopping{d},
		Events: admin.Events(stream{d.ring, d.run}, d.metrics), Metrics: metrics.Handler(d.registry, d.metrics.Settle), Page: live.Page("lockfaultd"), State: func() any { return d.snapshot() }, Ready: d.ready,
		Clock: d.tick,
	}
}

// ready returns why nobody is served yet.
func (d *daemon) ready() error {
	if !d.accepting.Load() {
		return errors.New("no listener accepts yet")
	}
	return nil
}

// A stream is the history of this run as the API has it.
type stream struct {
	*history.Ring
	run string
}

func (s stream) Run() string { return s.run }

func (s stream) At(n uint64) int64 { return int64(s.Ring.At(n)) }

// listens is where a listener listens. One of every interface is called what it was asked for as.
func listens(asked string, a net.Addr) string {
	host, _, _ := net.SplitHostPort(asked)
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsUnspecified() {
		return net.JoinHostPort(cmp.Or(host, "0.0.0.0"), strconv.Itoa(t.Port))
	}
	return a.String()
}

// reachable is an address as somebody on this machine would dial it.
func reachable(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok && t.IP.IsUnspecified() {
		return fmt.Sprintf("127.0.0.1:%d", t.Port)
	}
	return a.String()
}

func (d *daemon) closeAdmin() error {
	if d.admin == nil {
		return nil
	}
	return d.admin.Close()
}

func (d *daemon) announceAdmin(w io.Writer) {
	if d.admin == nil {
		return
	}
	fmt.Fprintf(w, "lockfaultd: admin %s\n", d.adminAt)
	if names := fault.Signals(d.setup.rules); len(names) > 0 {
		fmt.Fprintf(w, "lockfaultd: rules wait for signals: %s (curl -X POST %s/v1/signals/%s)\n", strings.Join(names, ", "), d.adminURL, names[0])
	}
}

// tellAdmin gives a command the URL of the API.
func (e *environment) tellAdmin(d *daemon) {
	e.unset(adminURL)
	if d.admin != nil {
		e.vars = append(e.vars, adminURL+"="+d.adminURL)
	}
}

// signals are the engine's gates as the API has them.
type signals struct{ d *daemon }

func (s signals) Signals() []string { return s.d.engine.Signals() }

func (s signals) Waiting(name string) (gates int, kept bool) { return s.d.engine.Waiting(name) }

func (s signals) Signal(name string) (heard, opened int) {
	return s.d.engine.Signal(name, s.d.clock())
}
