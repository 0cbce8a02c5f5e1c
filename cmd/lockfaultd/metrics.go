package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/metrics"
)

// openMetrics makes what Prometheus is told by the admin API.
func (d *daemon) openMetrics() {
	d.registry = prometheus.NewRegistry()
	metrics.Runtime(d.registry, "lockfaultd", version)
	d.metrics = metrics.NewDaemon(d.registry, d.setup.decls, d.setup.declaredAs, metrics.Sources{
		Now:         d.clock,
		Live:        func() int64 { return d.server.Live() },
		Sessions:    func() int { return d.server.Sessions() },
		Desyncs:     func() int64 { return d.server.Desyncs() },
		Unread:      d.statements.Unread,
		HistoryLost: func() int { return d.record.Lost() },
		Lines:       d.ring.End,
		Armed:       d.armed,
		Frozen:      d.engine.Stopped,
	})
}

// armed counts the rules that are.
func (d *daemon) armed() (n int) {
	d.engine.Plan(d.clock(), func(p *fault.Plan) {
		for _, u := range p.Uses() {
			if u.Armed {
				n++
			}
		}
	})
	return n
}

// declaredAs is what the file calls the lock of a key, or else the pattern that declares it; "" where none does.
func (s *setup) declaredAs(key string) string {
	if name := s.config.Names.Of(key); name != "" {
		return name
	}
	for _, d := range s.decls {
		if !d.Ignore && d.Covers(key) {
			return d.Key
		}
	}
	return ""
}
