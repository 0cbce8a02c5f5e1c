package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// Leases is that the locks of a pattern have a lifetime, and are not held for longer than a bound.
type Leases struct {
	Is       About
	Client   *redis.Client
	Pattern  string
	Except   []string      // patterns of keys that are not meant
	Lifetime bool          // they must have one
	Longest  time.Duration // that they may be held; 0: for ever
	Unique   bool          // each grant has a token of its own, so that the same value is the same grant

	// Granted returns when the history last told of a grant of the lock that nobody has given back; nil: no history is
	// followed. CaughtUp reports whether it has been told up to a time.
	Granted  func(key string, db int) (time.Time, bool)
	CaughtUp func(at lock.Instant, ours time.Time) bool

	seen   map[string]seen // by the last look; the looks' own
	cursor uint64
	mem    leases
}

// leases is what is remembered: since when each key has been held by one grant, as far as can be told.
type leases struct {
	Since map[string]since `json:"since,omitempty"`
}

type since struct {
	At    time.Time    `json:"at"`
	Value string       `json:"value"`
	Ends  [2]time.Time `json:"ends"` // when its lifetime is over, by the last look; zero: it has none
}

// A seen is a key at one look.
type seen struct {
	value    string // a hash of it; "" where it is no text
	lives    time.Duration
	none     bool // it has no lifetime
	from, to time.Time
	naked    bool // it certainly had none since the look before, and was the same
}

// Bounds of a look.
const (
	scanStep  = 500
	scanSteps = 20   // steps of a look: what is left is for the next
	mostKeys  = 5000 // that are looked at
	mostBroke = 100  // things that are told one by one
	atOnce    = 64
)

// How long a key without a lifetime is looked at once more, and how often: what sets the lifetime by a command of its own
// has done so by then, or has left the lock without one for too long.
const (
	longNaked  = 150 * time.Millisecond
	nakedLooks = 15
)

// About says what it is.
func (l *Leases) About() About { return l.Is }

// Memory is since when which keys are held.
func (l *Leases) Memory() any { return &l.mem }

// Look looks at the keys of the pattern, and at those that it found before.
func (l *Leases) Look(ctx context.Context) (func() Opinion, error) {
	keys, whole, err := l.keys(ctx)
	if err != nil {
		l.seen = nil
		return nil, err
	}
	now, err := l.lookAt(ctx, keys)
	if err != nil {
		l.seen = nil
		return nil, err
	}
	if l.Lifetime {
		if err := l.confirm(ctx, now); err != nil {
			l.seen = nil
			return nil, err
		}
	}
	l.seen = now
	mine := maps.Clone(now)
	at := time.Now()
	return func() Opinion { return l.judge(mine, whole, at) }, nil
}

// keys lists what to look at: some more of the pattern's, and those of the last look. whole: it is all of them.
func (l *Leases) keys(ctx context.Context) (keys []string, whole bool, err error) {
	if !strings.ContainsAny(l.Pattern, "*?[\\") {
		return []string{l.Pattern}, true, nil
	}
	found := map[string]bool{}
	for key := range l.seen {
		found[key] = true
	}
	began := l.cursor
	for range scanSteps {
		page, next, err := l.Client.Scan(ctx, l.cursor, l.Pattern, scanStep).Result()
		if err != nil {
			return nil, false, fmt.Errorf("scan for %s: %w", l.Pattern, err)
		}
		for _, key := range page {
			if len(found) < mostKeys && !slices.ContainsFunc(l.Except, func(p string) bool { return lock.Glob(p, key) }) {
				found[key] = true
			}
		}
		if l.cursor = next; next == 0 {
			break
		}
	}
	return slices.Sorted(maps.Keys(found)), began == 0 && l.cursor == 0 && len(found) < mostKeys, nil
}

// lookAt reads the lifetime and the value of each key, both as of one moment.
func (l *Leases) lookAt(ctx context.Context, keys []string) (map[string]seen, error) {
	out := map[string]seen{}
	for some := range slices.Chunk(keys, atOnce) {
		lives, values := make([]*redis.DurationCmd, len(some)), make([]*redis.StringCmd, len(some))
		from := time.Now()
		_, err := l.Client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			for i, key := range some {
				lives[i], values[i] = p.PTTL(ctx, key), p.Get(ctx, key)
			}
			return nil
		})
		to := time.Now()
		for i, key := range some {
			d, failed := lives[i].Result()
			if failed != nil {
				return nil, fmt.Errorf("look at key %s: %w", key, errors.Join(failed, err))
			}
			if d == -2 {
				continue // it is not there
			}
			s := seen{lives: d, none: d == -1, from: from, to: to}
			if text, err := values[i].Result(); err == nil {
				sum := sha256.Sum256([]byte(text))
				s.value = hex.EncodeToString(sum[:8])
			}
			out[key] = s
		}
	}
	return out, nil
}

// confirm finds, among the keys that have no lifetime and had none at the last look, those that have none for a while.
func (l *Leases) confirm(ctx context.Context, now map[string]seen) error {
	naked := map[string]seen{}
	for key, s := range now {
		if last, ok := l.seen[key]; ok && last.none && s.none && last.value == s.value {
			naked[key] = s
		}
	}
	for range nakedLooks {
		if len(naked) == 0 {
			return nil
		}
		select {
		case <-time.After(longNaked / nakedLooks):
		case <-ctx.Done():
			return ctx.Err()
		}
		again, err := l.lookAt(ctx, slices.Sorted(maps.Keys(naked)))
		if err != nil {
			return err
		}
		maps.DeleteFunc(naked, func(key string, s seen) bool { a, ok := again[key]; return !ok || !a.none || a.value != s.value })
	}
	for key, s := range naked {
		s.naked = true
		now[key] = s
	}
	return nil
}

// judge tells of keys that have no lifetime, and of those that are held for too long.
func (l *Leases) judge(now map[string]seen, whole bool, at time.Time) Opinion {
	l.follow(now)
	if l.Longest > 0 && l.Granted != nil && !l.CaughtUp(0, at) && time.Since(at) < settlesAfter {
		return Opinion{Wait: true}
	}
	o := Opinion{State: Holds, Value: counted(len(now))}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		s := now[key]
		switch {
		case s.naked:
			o.Breaches = append(o.Breaches, l.naked(key, at))
		case s.none: // at the first look it is not known whether it had none before
			o.Stays = append(o.Stays, nakedThing(key))
		}
		if from, how := l.heldSince(key, at); l.Longest > 0 && at.Sub(from) > l.Longest {
			o.Breaches = append(o.Breaches, l.tooLong(key, from, at, how))
		}
	}
	if n := len(o.Breaches); n > 0 {
		o.State, o.Text = Broken, fmt.Sprintf("%d of them", n)
		for _, b := range o.Breaches[min(n, mostBroke):] {
			o.Stays = append(o.Stays, b.Thing)
		}
		o.Breaches = o.Breaches[:min(n, mostBroke)]
	}
	if !whole {
		o.Text = strings.TrimPrefix(o.Text+"; there are more keys than one look goes through", "; ")
	}
	return o
}

// follow notes since when each key is held by the same grant, as far as looks tell.
func (l *Leases) follow(now map[string]seen) {
	next := map[string]since{}
	for key, s := range now {
		n := since{At: s.to, Value: s.value}
		if !s.none {
			n.Ends = [2]time.Time{s.from.Add(s.lives), s.to.Add(s.lives + time.Millisecond)}
		}
		if last, ok := l.mem.Since[key]; ok && l.same(last, n) {
			n.At = last.At
		}
		next[key] = n
	}
	l.mem.Since = next
}

// same reports whether a key is certainly held by the grant that had it at the last look: who takes it anew sets its
// lifetime anew, which ends later then.
func (l *Leases) same(last, now since) bool {
	if last.Value != now.Value || now.Value == "" {
		return false
	}
	if l.Unique {
		return true
	}
	return !last.Ends[0].IsZero() && !now.Ends[0].IsZero() && !now.Ends[0].After(last.Ends[1]) && !last.Ends[0].After(now.Ends[1])
}

// heldSince returns since when a key is held, and how that is known.
func (l *Leases) heldSince(key string, now time.Time) (time.Time, string) {
	if l.Granted != nil && l.CaughtUp(0, now) {
		if at, ok := l.Granted(key, l.Client.Options().DB); ok {
			return at, "the history told of its grant then, and of nobody who took it or gave it back since"
		}
	}
	return l.mem.Since[key].At, "each look since then found it held by the same grant"
}

func nakedThing(key string) string { return "no lifetime: " + key }

func (l *Leases) naked(key string, at time.Time) Breach {
	proof := fmt.Sprintf("Let L be %s, whose keys must always have a lifetime. However at two looks and for %v after the second, at %s, L had none, and its value was the same: "+
		"whoever sets the lifetime by a command of its own would have done so by then. If its holder dies, L is held for ever.", key, longNaked, stamp(at))
	return Breach{Thing: nakedThing(key), Code: "LF304", Name: "no-expiry", Class: check.Hazard, Level: check.Proven, Lock: key, Proof: proof}
}

func (l *Leases) tooLong(key string, from, at time.Time, how string) Breach {
	proof := fmt.Sprintf("Let L be %s, which may be held for %v. It has been held since %s: %s. However at %s it still was, after %v.",
		key, l.Longest, stamp(from), how, stamp(at), at.Sub(from).Round(time.Millisecond))
	return Breach{Thing: "held too long: " + key, Code: "LF313", Name: "held-long", Class: check.Hazard, Level: check.Proven, Lock: key, Proof: proof}
}

// counted says how many keys there are.
func counted(n int) string {
	if n == 1 {
		return "1 key"
	}
	return fmt.Sprintf("%d keys", n)
}
