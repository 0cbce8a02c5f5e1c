package freezer

import (
	"testing"
	"time"
)

// BenchmarkFreeze is the time from the call to the kernel's word, which is what
// a reply waits for, and apart from it that of the thaw.
func BenchmarkFreeze(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			f := newFreezer(b)
			var v *victim
			if k.home == "" {
				v = newVictim(b, "127.0.0.1:0", 0, nil)
			} else {
				v = victimIn(b, inCgroup(b, k.home), 0)
			}
			o := lookup(b, f, v.client, v.server)
			var thaws time.Duration
			for b.Loop() {
				z, err := f.Freeze(b.Context(), o, k.scope, time.Minute)
				if err != nil {
					b.Fatal(err)
				}
				begun := time.Now()
				if err := z.Thaw(); err != nil {
					b.Fatal(err)
				}
				thaws += time.Since(begun)
			}
			b.ReportMetric(float64(thaws.Microseconds())/float64(b.N), "us-thaw/op")
		})
	}
}

// BenchmarkLookup is what accepting a connection costs: of a client that was
// seen before, and of one that nobody knows.
func BenchmarkLookup(b *testing.B) {
	for _, known := range []bool{true, false} {
		b.Run(map[bool]string{true: "known", false: "unknown"}[known], func(b *testing.B) {
			f := newFreezer(b)
			v := newVictim(b, "127.0.0.1:0", 0, nil)
			if all, err := numbers("/proc"); err == nil {
				b.ReportMetric(float64(len(all)), "processes")
			}
			for b.Loop() {
				if !known {
					f.recent = nil
				}
				o, err := f.Lookup(b.Context(), v.client, v.server)
				if err != nil {
					b.Fatal(err)
				}
				o.Close()
			}
		})
	}
}
