package lock

import (
	"slices"
	"strings"
)

// A Declaration is what a user said of a lock: which keys, and what they guard.
type Declaration struct {
	Key         string   `json:"key"`                // the lock's key; * stands for any text
	Except      []string `json:"except,omitempty"`   // keys that are not meant though Key matches them, likewise
	Table       string   `json:"table,omitempty"`    // table that it protects; "" when none was named
	FenceColumn string   `json:"fence,omitempty"`    // column of Table that keeps the fence; "" when there is none
	Purpose     string   `json:"purpose,omitempty"`  // "", "correctness" or "efficiency"
	Kind        Sort     `json:"kind,omitempty"`     // "" where it is to be learned
	Quorum      int      `json:"quorum,omitempty"`   // how many servers, or keys, grant it together; 0 where that is to be learned
	Ignore      bool     `json:"ignore,omitempty"`   // such keys are no locks, whatever they look like, unless another declaration speaks of them
	Declared    bool     `json:"declared,omitempty"` // it was declared to guard correctness

	Lease *LeaseTable `json:"lease,omitempty"` // where such locks are rows; nil: as the statements show
}

// A LeaseTable is a Postgres table whose rows are locks, and what its columns say:
// those that its statements leave open.
type LeaseTable struct {
	Table string   `json:"table"`
	Owner string   `json:"owner"`           // who has the lock
	Until string   `json:"until,omitempty"` // until when, or since when
	Key   []string `json:"key,omitempty"`   // which lock it is; none: each condition that is no other column's
}

// A Sort says how many may hold a lock at once.
type Sort string

// The sorts.
const (
	Unsorted  Sort = ""          // not known
	Exclusive Sort = "exclusive" // one term
	Reentrant Sort = "reentrant" // one holder, several times
	ReadWrite Sort = "shared"    // one writer, or readers
	Semaphore Sort = "semaphore" // several, up to a number
)

// Covers reports whether the declaration speaks of the key.
func (d Declaration) Covers(key string) bool {
	return Glob(d.Key, key) && !slices.ContainsFunc(d.Except, func(p string) bool { return Glob(p, key) })
}

// Glob reports whether text matches pattern, in which * stands for any text.
func Glob(pattern, text string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	if !strings.HasPrefix(text, head) {
		return false
	}
	text = text[len(head):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], more
	}
}

// declarations are what a user said of all locks.
type declarations []Declaration

// lock reports whether the key was declared to be a lock's.
func (l declarations) lock(key string) bool {
	return slices.ContainsFunc(l, func(d Declaration) bool { return !d.Ignore && d.Covers(key) })
}

// notLocks are keys of libraries that look like locks in all that they do, and
// guard nothing: a probe of what the server can, a latch that wakes waiters up, a
// mutex that is only to keep a periodic task from running twice, and the set of jobs
// whose workers are looked after.
var notLocks = [...]string{"symfony_check_support_time*", "redisson_unlock_latch:*", "*:stalled-check", "bull:*:stalled"}

// ignored reports whether the key is none of a lock, by what was declared or
// else because it is known.
func (l declarations) ignored(key string) bool {
	if l.lock(key) {
		return false
	}
	return slices.ContainsFunc(l, func(d Declaration) bool { return d.Ignore && d.Covers(key) }) ||
		slices.ContainsFunc(notLocks[:], func(p string) bool { return Glob(p, key) })
}

// sort returns the declared sort of a key, if there is one.
func (l declarations) sort(key string) Sort {
	for _, d := range l {
		if d.Kind != Unsorted && !d.Ignore && d.Covers(key) {
			return d.Kind
		}
	}
	return Unsorted
}

// quorum returns how many grant the key together, as declared; 0: not declared.
func (l declarations) quorum(key string) int {
	for _, d := range l {
		if d.Quorum != 0 && !d.Ignore && d.Covers(key) {
			return d.Quorum
		}
	}
	return 0
}
