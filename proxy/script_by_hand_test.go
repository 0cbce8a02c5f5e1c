package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
)

// alter changes the rules: add FLAG VALUE, remove NAME, arm NAME FOR TIMES, off NAME.
func (s *stage) alter(f []string) error {
	now := s.clock()
	err := s.engine.Alter(func(p *fault.Plan) error {
		switch f[0] {
		case "add":
			r, err := fault.Parse(f[1], strings.Join(f[2:], " "))
			if err != nil {
				return err
			}
			name, err := p.Add(r, fault.Arming{}, false, now)
			s.say("added %s", name)
			return err
		case "remove":
			return p.Remove(f[1])
		case "arm":
			d, err := time.ParseDuration(f[2])
			if err != nil {
				return err
			}
			var times int
			if _, err := fmt.Sscan(f[3], &times); err != nil {
				return err
			}
			return p.Arm(f[1], fault.Arming{For: d, Times: times}, now)
		}
		return p.Disarm(f[1])
	})
	if err != nil {
		s.say("%s: %v", strings.Join(f, " "), err)
	}
	return nil
}

func (s *stage) freezeByHand(label, length string) error {
	d, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	h, err := s.engine.Freeze(label, fault.ScopeProcess, d, s.clock())
	if err != nil {
		s.say("freeze %s: %v", label, err)
		return nil
	}
	s.wait.Go(func() {
		until, err := h.Begun(context.Background())
		s.say("freeze %s: until %v, %v", label, time.Duration(until).Round(time.Millisecond), err)
	})
	return nil
}

// look says what the engine sees.
func (s *stage) look() {
	now := s.clock()
	look := s.engine.Snapshot(now, now.Add(-time.Minute))
	at := func(i lock.Instant) time.Duration { return time.Duration(i).Round(time.Millisecond) }
	for _, l := range look.Locks {
		margin := "none"
		if l.Margin != nil {
			margin = l.Margin.Round(10 * time.Millisecond).String()
		}
		s.say("lock %s: %d terms, wanted by %v, margin %s", l.Lock, len(l.Terms), l.Waiters, margin)
		for _, t := range l.Terms {
			s.say("  held by %s since %v, lasts %v, ends %v to %v, dead %t", t.Actor, at(t.Since), t.TTL, at(t.Ends.Earliest), at(t.Ends.Latest), t.Dead)
		}
	}
	for _, l := range look.Locks {
		if l.Stranger {
			s.say("stranger: has %s", l.Lock)
		}
		if t := l.Left; t != nil {
			s.say("left: %s by %s, lasts %v, ends %v to %v", l.Lock, t.Actor, t.TTL, at(t.Ends.Earliest), at(t.Ends.Latest))
		}
	}
	for _, t := range look.Ended {
		s.say("ended: %s of %s by %s at %v", t.Lock, t.Actor, t.EndBy, at(t.End))
	}
	for _, a := range look.Actors {
		s.say("actor %s: %s until %v by %q, %d sessions, holds %v", a.Label, a.State, at(a.Until), a.By, a.Sessions, a.Holds)
	}
	for _, c := range s.engine.Sessions() {
		s.say("session %d: %s of %q, held %t", c.ID, c.Protocol, c.Actor, c.Held)
	}
	for _, in := range look.Acting {
		s.say("acting: %s of %s on %s, %q, until %v", in.Act, in.Rule, in.Actor, in.Lock, at(in.Ends))
	}
}
