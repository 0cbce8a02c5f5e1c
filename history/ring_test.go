package history

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/lockfaultd/lockfaultd/lock"
)

// ringOf returns a ring of room for so many bytes, with a header and lines 1 to n of
// four bytes each.
func ringOf(size, n int) *Ring {
	now := lock.Instant(0)
	r := NewRing(size, func() lock.Instant { now += 10; return now })
	r.Write([]byte("head"))
	for i := 1; i <= n; i++ {
		fmt.Fprintf(r, "%03d\n", i)
	}
	return r
}

func TestRing(t *testing.T) {
	for _, tt := range []struct {
		name    string
		size, n int
		from    uint64
		max     int
		want    string
		next    uint64
		lost    uint64
		waits   bool
	}{
		{name: "the header alone comes first", size: 40, n: 3, from: 0, max: 9, want: "head", next: 1},
		{name: "then all", size: 40, n: 3, from: 1, max: 9, want: "001 002 003", next: 4},
		{name: "at most so many", size: 40, n: 3, from: 1, max: 2, want: "001 002", next: 3},
		{name: "the last", size: 40, n: 3, from: 3, max: 9, want: "003", next: 4},
		{name: "nothing more yet", size: 40, n: 3, from: 4, max: 9, next: 4, waits: true},
		{name: "what is beyond comes at its time", size: 40, n: 3, from: 7, max: 9, next: 7, waits: true},
		{name: "only the header", size: 40, n: 0, from: 1, max: 9, next: 1, waits: true},
		{name: "room for two", size: 8, n: 5, from: 1, max: 9, want: "004 005", next: 6, lost: 3},
		{name: "the header is there still", size: 8, n: 5, from: 0, max: 9, want: "head", next: 1},
		{name: "one that lost less", size: 8, n: 5, from: 3, max: 9, want: "004 005", next: 6, lost: 1},
		{name: "one that kept up", size: 8, n: 5, from: 5, max: 9, want: "005", next: 6},
		{name: "a line that is too long is kept by itself", size: 2, n: 5, from: 1, max: 9, want: "005", next: 6, lost: 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines, next, lost, more := ringOf(tt.size, tt.n).Read(tt.from, tt.max)
			var got []string
			for _, l := range lines {
				got = append(got, strings.TrimSpace(string(l)))
			}
			if s := strings.Join(got, " "); s != tt.want || next != tt.next || lost != tt.lost || (more != nil) != tt.waits {
				t.Errorf("%q next %d lost %d waits %v, want %q next %d lost %d waits %v", s, next, lost, more != nil, tt.want, tt.next, tt.lost, tt.waits)
			}
		})
	}
}

// A line that is given stays as it was, whatever becomes of the writer's buffer.
func TestRingCopies(t *testing.T) {
	r := ringOf(40, 0)
	buffer := []byte("aaa\n")
	r.Write(buffer)
	copy(buffer, "bbb\n")
	if lines, _, _, _ := r.Read(1, 1); string(lines[0]) != "aaa\n" {
		t.Errorf("%q", lines[0])
	}
}

// What is told of a gap is no earlier than the lines that were lost.
func TestRingTellsByWhenALineWasWritten(t *testing.T) {
	r := ringOf(8, 5) // 004 at 50, 005 at 60
	for n, want := range map[uint64]lock.Instant{1: 50, 4: 50, 5: 60, 9: 60} {
		if got := r.At(n); got != want {
			t.Errorf("line %d: %d, want %d", n, got, want)
		}
	}
	if at := NewRing(1, nil).At(3); at != 0 {
		t.Errorf("of an empty ring: %d", at)
	}
}

func TestRingEnds(t *testing.T) {
	r := NewRing(40, nil)
	if n := r.End(); n != 0 {
		t.Errorf("an empty one ends at %d", n)
	}
	_, _, _, more := r.Read(0, 1)
	r.Write([]byte("head"))
	<-more
	r.Write([]byte("001\n"))
	_, _, _, more = r.Read(2, 1)
	r.Close()
	<-more
	if lines, _, _, more := r.Read(1, 9); len(lines) != 1 || more != nil {
		t.Errorf("what is left: %q %v", lines, more)
	}
	if lines, _, _, more := r.Read(2, 9); len(lines) != 0 || more != nil || r.End() != 2 {
		t.Errorf("behind the end: %q %v %d", lines, more, r.End())
	}
}

// Readers of every speed are given each line once and in order, or are told exactly
// how many they did not get; one that stopped reading holds up nobody.
func TestRingLosesNothingUncounted(t *testing.T) {
	const total = 5000
	synctest.Test(t, func(t *testing.T) {
		r := NewRing(400, nil)
		r.Write([]byte("head"))
		var readers sync.WaitGroup
		for speed := 1; speed <= 64; speed *= 4 {
			readers.Go(func() {
				at, got, gone := uint64(1), 0, 0
				for {
					lines, next, lost, more := r.Read(at, speed)
					gone += int(lost)
					for _, l := range lines {
						if want := fmt.Sprintf("%06d\n", got+gone+1); string(l) != want {
							t.Errorf("reader of %d: got %q, want %q", speed, l, want)
							return
						}
						got++
					}
					if at = next; len(lines) > 0 {
						continue
					}
					if more == nil {
						break
					}
					<-more
				}
				if got+gone != total {
					t.Errorf("reader of %d: %d lines and %d lost of %d", speed, got, gone, total)
				}
			})
		}
		for n := 1; n <= total; n++ {
			fmt.Fprintf(r, "%06d\n", n)
		}
		r.Close()
		readers.Wait()
	})
}
