package service

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockfaultd/lockfaultd/metrics"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// The metrics. Labels are names of the config, codes and levels; a lock goes by its name or its shape, of which there is a bound.
type descs struct {
	acknowledged, unknown, value, deficit, ok, violations, polls, failures *prometheus.Desc
	verdicts, lag, up, lines, gaps, blind, bytes, ops, judging             *prometheus.Desc
}

func newDescs() *descs {
	of := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("probe_"+name, help, labels, nil)
	}
	return &descs{
		acknowledged: of("acknowledged", "Sum of the steps of a counter that were acknowledged, from its first reading on.", "name"),
		unknown:      of("unknown", "Writes of a counter of which it is not known whether the last reading has them.", "name"),
		value:        of("value", "What was read of a counter last.", "name"),
		deficit:      of("deficit", "What a counter lacks of what was acknowledged; negative: it has more.", "name"),
		ok:           of("invariant_ok", "Whether an invariant held at its last look (1), or did not (0); absent: it cannot be told.", "name"),
		violations:   of("violations_total", "Episodes in which an invariant did not hold.", "name"),
		polls:        of("polls_total", "Looks at an invariant.", "name"),
		failures:     of("poll_failures_total", "Looks at an invariant that could not read it.", "name"),
		verdicts:     of("verdicts_total", "Verdicts that were told since the state folder was begun.", "code", "level", "class", "lock"),
		lag:          of("judge_lag_seconds", "How far the history that was taken in is behind, while more waits."),
		up:           of("source_up", "Whether the history is followed."),
		lines:        of("lines_total", "Lines of the history that were taken in."),
		gaps:         of("gaps_total", "Stretches that could not be seen, since the state folder was begun."),
		blind:        of("blind", "What cannot be seen now: sources, invariants."),
		bytes:        of("window_bytes", "Bytes of the lines that are kept for what goes on."),
		ops:          of("window_ops", "Lines that are kept for what goes on."),
		judging:      of("judging_seconds", "How long it took to judge, the last time."),
	}
}

// A collector makes metrics of what the service knows.
type collector struct {
	s *Service
	*descs
	names *metrics.Names
}

// Metrics returns a handler that serves the service's metrics, and those of the process.
func (s *Service) Metrics() http.Handler {
	return metrics.Handler(s.registry(), nil)
}

func (s *Service) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	metrics.Runtime(r, "probe", s.conf.Version)
	r.MustRegister(collector{s, newDescs(), metrics.NewNames(s.conf.Named)})
	return r
}

// Describe lists the metrics.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.acknowledged, c.unknown, c.value, c.deficit, c.ok, c.violations, c.polls, c.failures,
		c.verdicts, c.lag, c.up, c.lines, c.gaps, c.blind, c.bytes, c.ops, c.judging} {
		ch <- d
	}
}

// Collect tells them.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	polls, failures, breaches, figures := c.s.counts.copy()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, w := range c.s.conf.Watches {
		name := w.About().Name
		counter(c.polls, float64(polls[name]), name)
		counter(c.failures, float64(failures[name]), name)
		counter(c.violations, float64(breaches[name]), name)
		switch c.s.opinions[name].State {
		case Broken:
			gauge(c.ok, 0, name)
		case Holds:
			gauge(c.ok, 1, name)
		}
		if f, ok := figures[name]; ok {
			gauge(c.acknowledged, float64(f.Acknowledged), name)
			gauge(c.unknown, float64(f.Unknown), name)
			gauge(c.value, float64(f.Value), name)
			gauge(c.deficit, float64(f.Deficit), name)
		}
	}
	alike := map[[4]string]int{}
	for _, id := range c.s.told.order {
		g := c.s.told.groups[id]
		class := string(g.Class)
		if g.Harm {
			class = string(check.Harm)
		}
		alike[[4]string{g.Code, string(g.Level), class, c.names.Of(g.Lock)}] += g.Count
	}
	for k, n := range alike {
		counter(c.verdicts, float64(n), k[:]...)
	}
	blind := 0
	for _, g := range c.s.gaps.list {
		if g.To.IsZero() {
			blind++
		}
	}
	up := 0.0
	if c.s.up.Load() {
		up = 1
	}
	gauge(c.up, up)
	gauge(c.lag, c.s.behind().Seconds())
	gauge(c.blind, float64(blind))
	gauge(c.bytes, float64(c.s.tail.size))
	gauge(c.ops, float64(len(c.s.tail.lines)))
	gauge(c.judging, c.s.took.Seconds())
	counter(c.lines, float64(c.s.counts.lines.Load()))
	counter(c.gaps, float64(c.s.gaps.missed))
}
