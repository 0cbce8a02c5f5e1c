package main

import (
	"fmt"
	"regexp"

	"github.com/lockfaultd/lockfaultd/internal/alarm"
)

// A complained is a line of lockfaultd's log, or of its history.
type complained struct {
	kind alarm.Kind
	line string
}

// An expected complaint is one that a suite calls for.
type expected struct {
	kind alarm.Kind
	line *regexp.Regexp
	most int // in one run; 0: any number
	why  string
}

// judge sorts what a run complained of: lines that nobody expected, or more often
// than expected, and how many there were of each that was.
func (s suite) judge(all []complained) (wrong []string, seen []int) {
	seen = make([]int, len(s.expects))
	for _, c := range all {
		if i := s.expecting(c); i < 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %s", c.kind, c.line))
		} else if seen[i]++; s.expects[i].most > 0 && seen[i] > s.expects[i].most {
			wrong = append(wrong, fmt.Sprintf("%s, expected %d at most: %s", c.kind, s.expects[i].most, c.line))
		}
	}
	return wrong, seen
}

func (s suite) expecting(c complained) int {
	for i, e := range s.expects {
		if c.kind == e.kind && e.line.MatchString(c.line) {
			return i
		}
	}
	return -1
}

func (e expected) String() string {
	if e.most == 0 {
		return fmt.Sprintf("%s: %s", e.kind, e.why)
	}
	return fmt.Sprintf("%s, at most %d: %s", e.kind, e.most, e.why)
}
