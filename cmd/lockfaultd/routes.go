package main

import (
	"context"
	"net"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/proxy/legs"
	"github.com/lockfaultd/lockfaultd/proxy/pgwire"
	"github.com/lockfaultd/lockfaultd/proxy/resp"
)

// accept serves endpoints until endSessions.
func (d *daemon) accept(list []endpoint) {
	routes := d.routes(list)
	d.employ(list, routes)
	for i, e := range list {
		d.serving.Go(func() {
			if err := d.server.Serve(d.serve, e.ln, routes[i]); err != nil {
				d.log.Error("proxy ended", "err", err)
			}
		})
	}
	d.endpoints = list
	d.accepting.Store(true)
}

// routes makes a route of each endpoint. Upstreams have a name in the record
// where there are several of one protocol.
func (d *daemon) routes(list []endpoint) []proxy.Route {
	out := make([]proxy.Route, len(list))
	for i, e := range list {
		out[i] = proxy.Route{Protocol: e.proxy.Protocol, Upstream: e.proxy.Upstream, Legs: d.legs(e.proxy), Name: d.setup.nameOf(e.proxy), Relayed: e.proxy.Relayed}
	}
	return out
}

// legs makes the connections of a proxy's sessions.
func (d *daemon) legs(p config.Proxy) proxy.Legs {
	policy := legs.Policy{Client: p.TLS.Client, Upstream: p.TLS.Upstream, Address: p.Upstream, Connect: dial, Log: d.log}
	if p.Protocol == lock.Redis {
		return &legs.Redis{Policy: policy}
	}
	return &legs.Postgres{Policy: policy, Direct: p.TLS.Direct, Cancels: &d.cancels}
}

// track makes the parser of a new session.
func (d *daemon) track(r proxy.Route, session uint64) proxy.Tracker {
	wants := d.wants(r.Protocol)
	if r.Protocol == lock.Redis {
		leaves := func(what string) {
			d.log.Info("the upstream names other addresses: the client may go on past the proxy", "session", session, "upstream", r.Name, "by", what)
		}
		t := resp.NewTracker(resp.Options{Session: session, Upstream: r.Name, Hash: d.hash, Scripts: d.scripts, Wants: wants, Epoch: d.plan.Epoch, Could: d.engine.Keys, Leaves: leaves, Witnessed: d.sees(), EffectsOnly: d.setup.effects})
		return proxy.Tracker{Tracker: t, ClientName: t.ClientName}
	}
	pair := r.Legs.(*legs.Postgres)
	watch := pair.Watch()
	t := pgwire.NewTracker(pgwire.Options{
		Session: session, Upstream: r.Name, Hash: d.hash, Statements: d.statements, Wants: wants, Reads: d.engine.Reads,
		StripPlus: pair.Stripped(), KeyData: watch.KeyData, Refused: watch.Refused,
	})
	d.mu.Lock()
	d.backends[t] = true
	d.mu.Unlock()
	return proxy.Tracker{Tracker: t, ClientName: t.ApplicationName, Backend: t.BackendPID, Working: t.Working, Ended: func() { watch.Ended(); d.backendEnded(t) }}
}

// wants tells which verbs the rules name; nil without rules.
func (d *daemon) wants(p lock.Protocol) func(verb string) bool {
	if len(d.setup.rules) == 0 && !d.setup.alters() {
		return nil
	}
	return func(verb string) bool { return d.plan.Wants(p, verb) }
}

func (d *daemon) backendEnded(t *pgwire.Tracker) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.backends, t)
	if pid := t.BackendPID(); pid != 0 && (len(d.setup.invariants) > 0 || d.setup.wrapping) {
		d.pids = append(d.pids, pid)
	}
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", address)
}

// backendPIDs lists the Postgres backends that sessions have used.
func (d *daemon) backendPIDs() []int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]int32(nil), d.pids...)
}
