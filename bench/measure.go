package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A sample is one run of one workload on one way.
type sample struct {
	Workload string  `json:"workload"`
	Way      string  `json:"way"`
	Round    int     `json:"round"`
	Requests int     `json:"requests"`
	Rate     float64 `json:"rate"` // requests a second
	P50      float64 `json:"p50_ms,omitempty"`
	P99      float64 `json:"p99_ms,omitempty"`
	CPU      float64 `json:"proxy_cpu_s,omitempty"` // of the whole run
}

// cost is the proxy's processor time for one request.
func (s sample) cost() float64 { return s.CPU / float64(s.Requests) }

// A bench runs workloads on ways.
type bench struct {
	options
	ways    []*way
	samples []sample
}

// run measures workload by workload and prints each when it is done.
func (b *bench) run(ctx context.Context, out io.Writer) error {
	var done []workload
	for _, w := range workloads {
		if !b.only.MatchString(w.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: %s\n", w.name)
		if err := b.rotate(ctx, w); err != nil {
			return err
		}
		b.table(out, w)
		done = append(done, w)
	}
	if len(done) == 0 {
		return fmt.Errorf("-only %s: no workload of that name", b.only)
	}
	b.targets(out, done)
	return b.save()
}

// rotate runs the rounds of one workload. Each begins with another way, so that
// none always comes first, or behind the same one.
func (b *bench) rotate(ctx context.Context, w workload) error {
	for round := range b.rounds {
		for i := range b.ways {
			to := b.ways[(i+round)%len(b.ways)]
			s, err := b.measure(ctx, w, to, round)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", w.name, to.name, err)
			}
			b.samples = append(b.samples, s)
		}
	}
	return nil
}

// settle lets what the run before has left behind (closing connections,
// garbage, the autovacuum) come to an end.
const settle = 100 * time.Millisecond

func (b *bench) measure(ctx context.Context, w workload, to *way, round int) (sample, error) {
	time.Sleep(settle)
	if b.perf != "" && round == 0 && to.proxy != nil {
		stop, err := record(b.perf, w.name, to)
		if err != nil {
			return sample{}, err
		}
		defer stop()
	}
	s, err := measure(ctx, w, to, int(w.share*float64(b.requests)))
	s.Round = round
	return s, err
}

// measure runs once and counts what the proxy took.
func measure(ctx context.Context, w workload, to *way, requests int) (sample, error) {
	before, err := to.cpu()
	if err != nil {
		return sample{}, err
	}
	r, err := w.run(ctx, to, requests)
	if err != nil {
		return sample{}, err
	}
	after, err := to.cpu()
	return sample{
		Workload: w.name, Way: to.name, Requests: r.requests,
		Rate: r.rate, P50: r.p50, P99: r.p99, CPU: (after - before).Seconds(),
	}, err
}

func (w *way) cpu() (time.Duration, error) {
	if w.proxy == nil {
		return 0, nil
	}
	return w.proxy.cpu()
}

func (b *bench) save() error {
	if b.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(b.samples, "", "  ")
	if err == nil {
		err = os.WriteFile(b.json, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write samples: %w", err)
	}
	return nil
}

// of returns the samples of a workload on a way, by round.
func of(samples []sample, workload, way string) []sample {
	var out []sample
	for _, s := range samples {
		if s.Workload == workload && s.Way == way {
			out = append(out, s)
		}
	}
	return out
}

// A spread is a median with its extremes. The zero spread is that of nothing.
type spread struct{ mid, min, max float64 }

func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{}
	}
	v = slices.Sorted(slices.Values(v))
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (mid + v[len(v)/2-1]) / 2
	}
	return spread{mid, v[0], v[len(v)-1]}
}

// ratios divides two ways round by round, since what the machine was doing in a
// round is common to both.
func ratios(a, b []sample, f func(sample) float64) spread {
	var out []float64
	for i := range min(len(a), len(b)) {
		if d := f(b[i]); d > 0 {
			out = append(out, f(a[i])/d)
		}
	}
	return spreadOf(out)
}

func each(samples []sample, f func(sample) float64) spread {
	var out []float64
	for _, s := range samples {
		out = append(out, f(s))
	}
	return spreadOf(out)
}

func fileName(workload, way string) string {
	return filepath.Base(strings.NewReplacer(" ", "-", "/", "-").Replace(workload + "-" + way))
}
