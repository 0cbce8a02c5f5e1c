package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockfaultd/lockfaultd/lock"
)

// The minimum is that of so many spans of time that are over, and of the one that goes on.
const (
	spans = 5
	span  = time.Minute
)

// lows collects for each lock the least of what was noted lately.
type lows struct {
	desc *prometheus.Desc
	now  func() lock.Instant

	mu    sync.Mutex
	least map[string]*[spans]least // by the lock
}

// A least is the least value of one span.
type least struct {
	span  int64
	value float64
}

func newLows(name, help string, now func() lock.Instant) *lows {
	return &lows{desc: prometheus.NewDesc(name, help, []string{"lock"}, nil), now: now, least: map[string]*[spans]least{}}
}

func (l *lows) note(lock string, value float64, at lock.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.least[lock]
	if all == nil {
		all = &[spans]least{}
		l.least[lock] = all
	}
	n := spanOf(at)
	switch e := &all[n%spans]; {
	case e.span < n:
		*e = least{n, value}
	case e.span == n:
		e.value = min(e.value, value)
	}
}

// spanOf numbers the spans from 1: 0 is none.
func spanOf(at lock.Instant) int64 { return int64(at)/int64(span) + 1 }

// Describe and Collect make it a collector: of a lock of which nothing was noted lately it tells nothing.
func (l *lows) Describe(ch chan<- *prometheus.Desc) { ch <- l.desc }

// Collect implements prometheus.Collector.
func (l *lows) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	oldest := spanOf(l.now()) - spans + 1
	for name, all := range l.least {
		value, some := 0.0, false
		for _, e := range all {
			if e.span >= oldest && e.span > 0 && (!some || e.value < value) {
				value, some = e.value, true
			}
		}
		if some {
			ch <- prometheus.MustNewConstMetric(l.desc, prometheus.GaugeValue, value, name)
		}
	}
}
