package main

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/witness"
)

// Before a command is started, its witnesses have so much time to be there.
const (
	employing = time.Second
	baselines = 3 * time.Second
)

// The variables with a login of the witnesses' own. Commands that are run do not get
// them.
const (
	witnessUser     = "LOCKFAULTD_WITNESS_USER"
	witnessPassword = "LOCKFAULTD_WITNESS_PASSWORD"
)

// loginTo returns what witnesses of a Redis log in with.
func (s *setup) loginTo(p config.Proxy) config.Login {
	if s.login.Password != "" {
		return s.login
	}
	return p.Login
}

// employ has witnesses look at the upstreams of the endpoints, unless none is
// wanted.
func (d *daemon) employ(list []endpoint, routes []proxy.Route) {
	how := d.setup.witness
	sees := how != "" && how != "none"
	if !sees && !d.setup.acts() && !d.setup.alters() {
		return
	}
	o := witness.Options{Hash: d.hash, Scripts: d.scripts, Now: d.clock, Locks: d.engine.Locks, Record: testimony{d}, Log: d.log}
	switch {
	case !sees:
	case how == "monitor":
		o.Monitor = true
	case how == "probe":
		o.Probe = witness.ProbeAll
	default:
		o.Monitor, o.Probe = d.setup.wrapping, witness.ProbeUnknown
	}
	for i, e := range list {
		r, login := routes[i], e.proxy.Login
		if r.Protocol == lock.Redis {
			login = d.setup.loginTo(e.proxy)
			o.Redis = append(o.Redis, witness.Redis{Name: r.Name, Address: r.Upstream, Dial: r.Legs.Dial, User: login.User, Password: login.Password})
			continue
		}
		from := probe.Database{URL: login.URL}
		if login.URL == "" {
			from = probe.Database{URL: "postgres://" + r.Upstream, TLS: e.proxy.TLS.Upstream, Direct: e.proxy.TLS.Direct}
		}
		o.Postgres = append(o.Postgres, witness.Postgres{Name: r.Name, Address: r.Upstream, Connect: from.Connect})
	}
	d.hand = witness.New(o)
	if sees {
		d.witnesses, d.server.Witness = d.hand, d.hand
	}
}

// acts reports whether a rule does to a server what it assumes.
func (s *setup) acts() bool {
	return slices.ContainsFunc(s.rules, func(r fault.Rule) bool { return r.Do == fault.Lose || r.Do == fault.Kill })
}

// hand is what acts on servers. There is none before listeners are served.
type hand struct{ d *daemon }

func (h hand) Forget(ctx context.Context, upstream string, db int, key string) (lock.Outcome, error) {
	return h.d.hand.Forget(ctx, upstream, db, key)
}

func (h hand) Kill(ctx context.Context, upstream string, backend int32, from netip.AddrPort) (lock.Outcome, error) {
	return h.d.hand.Kill(ctx, upstream, backend, from)
}

// sees reports whether somebody tells what scripts do.
func (d *daemon) sees() bool { return d.witnesses != nil }

// look has the witnesses be there before a command is run, and read what is
// compared at its end.
func (d *daemon) look(ctx context.Context) {
	if d.witnesses == nil {
		return
	}
	d.witnesses.Begin(employing)
	ctx, cancel := context.WithTimeout(ctx, baselines)
	defer cancel()
	d.witnesses.Baseline(ctx)
}

// tally records what the servers have counted since look. No session is left by
// then.
func (d *daemon) tally() {
	if d.witnesses == nil {
		return
	}
	for _, t := range d.witnesses.Tally(context.Background(), d.engine.Protects, d.backendPIDs()) {
		d.record.Tally(t)
	}
}

// dismiss ends the side connections.
func (d *daemon) dismiss() {
	if d.hand == nil {
		return
	}
	counts := d.hand.Close()
	d.log.Debug("witnesses", "counts", counts)
}

// rows tells who waits for a row's lock, as far as a witness sees it. There are none before listeners are
// served.
type rows struct{ d *daemon }

func (r rows) Blocked(ctx context.Context, upstream string) (map[int32][]int32, error) {
	if r.d.witnesses == nil {
		return nil, nil
	}
	return r.d.witnesses.Blocked(ctx, upstream)
}

// testimony goes into the record, and what the engine has to know to the engine.
type testimony struct{ d *daemon }

func (t testimony) Clock(c history.Clock) {
	t.d.engine.Sampled(c)
	if t.d.record != nil {
		t.d.record.Clock(c)
	}
}

func (t testimony) Bypass(b history.Bypass) {
	if t.d.record != nil {
		t.d.record.Bypass(b)
	}
}
