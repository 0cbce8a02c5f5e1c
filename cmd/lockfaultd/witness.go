package main

import (
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/witness"
)

// employ has witnesses look at the upstreams of the endpoints, unless none is
// wanted.
func (d *daemon) employ(list []endpoint, routes []proxy.Route) {
	if how := d.setup.witness; how == "" || how == "none" {
		return
	}
	o := witness.Options{Now: d.clock, Locks: d.engine.Locks, Record: testimony{d}, Log: d.log}
	for i, e := range list {
		if r := routes[i]; r.Protocol == lock.Redis {
			login := e.proxy.Login
			o.Redis = append(o.Redis, witness.Redis{Name: r.Name, Address: r.Upstream, Dial: r.Legs.Dial, User: login.User, Password: login.Password})
		}
	}
	d.witnesses = witness.New(o)
	d.server.Witness = d.witnesses
}

// dismiss ends the side connections.
func (d *daemon) dismiss() {
	if d.witnesses == nil {
		return
	}
	counts := d.witnesses.Close()
	d.log.Debug("witnesses", "counts", counts)
}

// testimony goes into the record, and what the engine has to know to the engine.
type testimony struct{ d *daemon }

func (t testimony) Clock(c history.Clock) {
	t.d.engine.Sampled(c)
	if t.d.record != nil {
		t.d.record.Clock(c)
	}
}
