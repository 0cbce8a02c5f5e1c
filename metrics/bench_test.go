package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// BenchmarkSection is a section of four ops, which the goroutine of the history pays for, with keys that recur and with keys that are always new.
func BenchmarkSection(b *testing.B) {
	for _, distinct := range []int{1, 1 << 30} {
		b.Run(fmt.Sprintf("keys=%d", distinct), func(b *testing.B) {
			s := newScene(b)
			for n := 0; b.Loop(); n++ {
				id := lock.TermID(n + 1)
				s.Op(grant(id, fmt.Sprintf("order:%d:lock", n%distinct), n, n, time.Second))
				s.Op(write(id, n, n, 1, nil))
				s.Op(write(id, n, n, 1, nil))
				s.Op(release(id, n+5, n+5, lock.Done))
			}
		})
	}
}
