package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// lookback is how long what has ended is shown.
const lookback = time.Minute

// seeing is what the engine sees, as the API has it.
type seeing struct{ d *daemon }

// glance asks the engine.
func (d *daemon) glance() proxy.Snapshot {
	now := d.clock()
	return d.engine.Snapshot(now, now.Add(-lookback))
}

// nameOfLock is what the file calls a lock, or else its key.
func (s *setup) nameOfLock(id lock.LockID) string {
	return cmp.Or(s.config.Names.Of(id.Key), id.String())
}

func (s *setup) namesOf(ids []lock.LockID) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, s.nameOfLock(id))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s seeing) Locks() (out []admin.Lock) {
	for _, l := range s.d.glance().Locks {
		one := admin.Lock{
			Name: s.d.setup.nameOfLock(l.Lock), Key: l.Lock.Key, DB: l.Lock.DB, Upstream: l.Lock.Upstream,
			Held: len(l.Held()) > 0, Holders: []admin.Holder{}, Waiters: append([]string{}, l.Waiters...), Stranger: l.Stranger,
			Margin: millis(l.Margin),
		}
		for _, t := range l.Held() {
			one.Holders = append(one.Holders, admin.Holder{
				Actor: t.Actor, Session: t.Session, Since: s.d.wall(t.Since), TTL: float64(t.TTL) / float64(time.Millisecond),
				EndsFrom: s.d.wall(t.Ends.Earliest), EndsTo: s.d.wall(t.Ends.Latest), Overrun: t.Dead, Gone: t.End != 0, Fence: t.Fence,
			})
		}
		out = append(out, one)
	}
	return out
}

func millis(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	ms := float64(*d) / float64(time.Millisecond)
	return &ms
}

func (s seeing) Actors() (out []admin.Actor) {
	for _, a := range s.d.glance().Actors {
		out = append(out, admin.Actor{
			Label: a.Label, State: a.State, Until: s.d.wall(a.Until), By: a.By, PID: a.PID, Exe: a.Exe, Address: a.Address,
			Freezable: a.Cannot == "", Reason: a.Cannot, Sessions: a.Sessions, Holds: s.d.setup.namesOf(a.Holds),
		})
	}
	return out
}

func (s seeing) Sessions() (out []admin.Session) {
	for _, c := range s.d.engine.Sessions() {
		out = append(out, admin.Session{
			ID: c.ID, Protocol: string(c.Protocol), Upstream: c.Upstream, Actor: c.Actor, Name: c.Name, Address: c.Address,
			PID: c.PID, Since: s.d.wall(c.Since), Held: c.Held,
		})
	}
	return out
}

// stopping freezes, thaws and stops as the API asks for it.
type stopping struct{ d *daemon }

func (s stopping) Freeze(ctx context.Context, actor, scope string, length time.Duration) (admin.Frozen, error) {
	h, err := s.d.engine.Freeze(actor, fault.Scope(scope), length, s.d.clock())
	if err != nil {
		return admin.Frozen{}, inTheWay(err)
	}
	s.d.log.Info("freeze by hand", "actor", actor, "for", length, "scope", scope)
	until, err := h.Begun(ctx)
	if err != nil {
		return admin.Frozen{}, inTheWay(err)
	}
	return admin.Frozen{Actor: actor, Until: s.d.wall(until), Injection: h.ID}, nil
}

// inTheWay tells the API that what was asked for was well said, and cannot be done.
func inTheWay(err error) error {
	if errors.Is(err, proxy.ErrNoActor) {
		return refusing(err)
	}
	return apiError{err, admin.ErrConflict}
}

func (s stopping) Thaw(actor string) (int, error) {
	n, err := s.d.engine.Thaw(actor, s.d.clock())
	if err != nil {
		return 0, refusing(err)
	}
	s.d.log.Info("thawed by hand", "actor", actor, "processes", n)
	return n, nil
}

func (s stopping) Stop() admin.Stopped {
	rules, held := s.d.engine.Stop(s.d.clock())
	s.d.log.Warn("stopped by hand: no rule is armed any more, and nothing is held", "rules", rules, "held", held)
	return admin.Stopped{Rules: rules, Held: held}
}
