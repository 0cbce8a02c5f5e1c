package metrics

import (
	"cmp"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// Sources are what is asked at a scrape. All are needed; they may be called concurrently, and never wait for a disk.
type Sources struct {
	Now         func() lock.Instant
	Live        func() int64  // sessions that are open
	Sessions    func() int    // that began so far
	Desyncs     func() int64  // that could not be followed
	Unread      func() int64  // SQL statements that could not be read to their end
	HistoryLost func() int    // entries that the history lacks
	Lines       func() uint64 // of the history
	Armed       func() int    // rules
	Frozen      func() int    // processes
}

// A Daemon counts what a lockfaultd sees. Op, End and Injection are called by one goroutine.
type Daemon struct {
	names *Names
	rules *Names
	now   func() lock.Instant

	ops        *prometheus.CounterVec
	grants     *prometheus.CounterVec
	refusals   *prometheus.CounterVec
	sections   *prometheus.HistogramVec
	margins    *prometheus.HistogramVec
	low        *lows
	overruns   *prometheus.CounterVec
	rejections *prometheus.CounterVec
	ambiguous  *prometheus.CounterVec
	injections *prometheus.CounterVec
	unowned    prometheus.Counter
	overhead   *prometheus.HistogramVec
	consumers  prometheus.Gauge
	unread     prometheus.Counter

	mu   sync.Mutex // Settle is another goroutine's
	seen book
}

// The buckets of the histograms, in seconds.
var (
	sectionBuckets  = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	marginBuckets   = []float64{-60, -10, -5, -1, -.5, -.1, 0, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	overheadBuckets = []float64{.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .1, 1}
)

// NewDaemon registers what is counted, for locks of which so much was declared. named tells what a key was called then: see [Names].
func NewDaemon(reg prometheus.Registerer, decls []lock.Declaration, named func(key string) string, s Sources) *Daemon {
	m := maker{reg}
	d := &Daemon{
		names: NewNames(named), rules: NewNames(nil), now: s.Now, seen: newBook(decls),
		ops:        m.counters("ops_total", "Ops that went into the history, by what they do and what the server answered.", "protocol", "kind", "outcome"),
		grants:     m.counters("grants_total", "Locks granted.", "lock"),
		refusals:   m.counters("refusals_total", "Locks refused.", "lock"),
		sections:   m.histograms("section_seconds", "From the delivery of a grant to the request for its release.", sectionBuckets, "lock"),
		margins:    m.histograms("lease_margin_seconds", "What was left of the lease when the last protected write of a section had taken effect; below 0 it was over.", marginBuckets, "lock"),
		low:        newLows("lockfaultd_lease_margin_min_seconds", "The least lease margin of the last five minutes.", s.Now),
		overruns:   m.counters("overruns_total", "Sections whose lease was over, or whose lock was gone, before their release was asked for.", "lock"),
		rejections: m.counters("fence_rejections_total", "Writes and claims of a section that a fence or another guard refused.", "lock"),
		ambiguous:  m.counters("ambiguous_writes_total", "Protected writes of which it cannot be told whether the lease was over.", "lock"),
		injections: m.counters("injections_total", "Injections that have ended, by rule, effect and outcome.", "rule", "effect", "outcome"),
		unowned:    m.counter("unattributed_writes_total", "Accepted writes to protected tables that belong to no section for certain."),
		overhead:   m.histograms("forward_seconds", "From the last byte of a request to just before its first goes upstream, without what rules hold.", overheadBuckets, "protocol"),
		consumers:  m.gauge("event_consumers", "Who reads the event stream now."),
		unread:     m.counter("event_lines_lost_total", "Lines that consumers of the event stream were too slow for."),
	}
	reg.MustRegister(d.low)
	m.ask(s)
	return d
}

// ask registers what is asked at a scrape.
func (m maker) ask(s Sources) {
	m.gaugeOf("connections", "Client connections that are open.", nil, func() float64 { return float64(s.Live()) })
	m.counterOf("connections_total", "Client connections that were made.", nil, func() float64 { return float64(s.Sessions()) })
	m.counterOf("blind_spots_total", "What could not be seen: connections passed on unread from some point on, and SQL statements not read to their end.",
		prometheus.Labels{"kind": "desync"}, func() float64 { return float64(s.Desyncs()) })
	m.counterOf("blind_spots_total", "What could not be seen: connections passed on unread from some point on, and SQL statements not read to their end.",
		prometheus.Labels{"kind": "statement"}, func() float64 { return float64(s.Unread()) })
	m.counterOf("history_lines_total", "Lines of the history.", nil, func() float64 { return float64(s.Lines()) })
	m.counterOf("history_lost_total", "Entries that the history lacks.", nil, func() float64 { return float64(s.HistoryLost()) })
	m.gaugeOf("rules_armed", "Rules that are armed.", nil, func() float64 { return float64(s.Armed()) })
	m.gaugeOf("frozen", "Processes that are frozen.", nil, func() float64 { return float64(s.Frozen()) })
}

// Op counts a finished op.
func (d *Daemon) Op(op *lock.Op) {
	d.ops.WithLabelValues(string(op.Proto), string(op.Kind), cmp.Or(string(op.Outcome), "pending")).Inc()
	if op.A > 0 && op.F >= op.A && op.Evidence != lock.FromRule {
		d.overhead.WithLabelValues(string(op.Proto)).Observe(max(0, op.F.Sub(op.A)-op.Held).Seconds())
	}
	if op.Kind == lock.Acquire {
		switch op.Outcome {
		case lock.Granted:
			d.grants.WithLabelValues(d.names.Of(op.Key)).Inc()
		case lock.Refused:
			d.refusals.WithLabelValues(d.names.Of(op.Key)).Inc()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.follow(op)
	d.settle(op.A)
}

// End notes that a session has ended.
func (d *Daemon) End(session uint64, at lock.Instant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen.left(session)
	d.settle(at)
}

// Injection counts one that has ended.
func (d *Daemon) Injection(in history.Injection) {
	outcome, _, _ := strings.Cut(in.Outcome, ":")
	d.injections.WithLabelValues(d.rules.Few(cmp.Or(in.Name, in.Rule)), in.Effect, outcome).Inc()
}

// Consumers and Lost make it the tally of the event stream: see admin.Tally.
func (d *Daemon) Consumers(by int) { d.consumers.Add(float64(by)) }

// Lost counts lines that a consumer did not get.
func (d *Daemon) Lost(lines uint64) { d.unread.Add(float64(lines)) }

// Settle counts the sections that are over although nothing has happened since.
func (d *Daemon) Settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle(d.now())
}

// settle counts sections that were over so long before an instant that no write of them is still to be told of.
func (d *Daemon) settle(at lock.Instant) {
	for _, s := range d.seen.over(at) {
		if s.delivered > 0 {
			d.sections.WithLabelValues(s.name).Observe(max(0, s.released.Sub(s.delivered)).Seconds())
		}
		if s.overrun() {
			d.overruns.WithLabelValues(s.name).Inc()
		}
		if s.written > 0 && s.lease.Earliest != lock.Never {
			left := s.margin.Seconds()
			d.margins.WithLabelValues(s.name).Observe(left)
			d.low.note(s.name, left, s.written)
		}
	}
}

// A maker registers metrics of lockfaultd.
type maker struct{ reg prometheus.Registerer }

func (m maker) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "lockfaultd", Name: name, Help: help}, labels)
	m.reg.MustRegister(v)
	return v
}

func (m maker) histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "lockfaultd", Name: name, Help: help, Buckets: buckets}, labels)
	m.reg.MustRegister(v)
	return v
}

func (m maker) counter(name, help string) prometheus.Counter {
	v := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "lockfaultd", Name: name, Help: help})
	m.reg.MustRegister(v)
	return v
}

func (m maker) gauge(name, help string) prometheus.Gauge {
	v := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "lockfaultd", Name: name, Help: help})
	m.reg.MustRegister(v)
	return v
}

func (m maker) gaugeOf(name, help string, labels prometheus.Labels, f func() float64) {
	m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "lockfaultd", Name: name, Help: help, ConstLabels: labels}, f))
}

func (m maker) counterOf(name, help string, labels prometheus.Labels, f func() float64) {
	m.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "lockfaultd", Name: name, Help: help, ConstLabels: labels}, f))
}
