package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/alarm"
)

// A said is one line that lockfaultd said, and when.
type said struct {
	at   time.Time
	line string
}

// Spoken is all that a lockfaultd said.
type spoken struct {
	mu    sync.Mutex
	lines []said
	rest  []byte // of the line that is not whole
}

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	for {
		line, rest, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		s.lines = append(s.lines, said{time.Now(), string(line)})
		s.rest = rest
	}
}

func (s *spoken) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, l := range s.lines {
		fmt.Fprintln(&b, l.line)
	}
	b.Write(s.rest)
	return b.String()
}

// shown is how many complaints are shown of one kind.
const shown = 5

// judge returns an error for what was complained of and has no excuse, and how
// often it had one.
func (s *spoken) judge(excuse func(said) bool) (excused int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	times := map[alarm.Kind]int{}
	var errs []error
	for _, l := range append(s.lines, said{line: string(s.rest)}) {
		kind := alarm.Of(l.line)
		switch {
		case kind == "":
		case excuse(l):
			excused++
		default:
			if times[kind]++; times[kind] <= shown {
				errs = append(errs, fmt.Errorf("lockfaultd: %s: %s", kind, l.line))
			}
		}
	}
	for kind, n := range times {
		if n > shown {
			errs = append(errs, fmt.Errorf("lockfaultd: %s: %d times in all", kind, n))
		}
	}
	return excused, errors.Join(errs...)
}
