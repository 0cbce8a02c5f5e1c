package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/live"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// snapshot is what the page shows now.
func (d *daemon) snapshot() live.Snapshot {
	look, now := d.glance(), time.Now()
	s := live.Snapshot{
		Now: now, Name: "lockfaultd", Version: version, Since: d.started, Control: true,
		Sources: d.sources(), Locks: d.locksShown(look), Actors: d.actorsShown(look), Rules: d.rulesShown(), Marks: d.marksShown(look, now),
	}
	s.Gaps = int(d.server.Desyncs())
	if d.record.Lost() > 0 {
		s.Gaps++
	}
	return s
}

// sources are the servers behind the proxies, once these accept clients.
func (d *daemon) sources() (out []live.Source) {
	if !d.accepting.Load() {
		return nil
	}
	outages := d.server.Outages()
	for _, e := range d.endpoints {
		p := e.proxy
		one := live.Source{Name: strings.TrimLeft(strings.TrimPrefix(p.Name, "proxies."), "-"), Address: e.address() + " → " + p.Upstream, Up: true}
		for _, o := range outages {
			if o.Protocol == p.Protocol && o.Upstream == p.Upstream {
				one.Up, one.Since, one.Text = false, d.wall(o.Since), o.Err.Error()
			}
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b live.Source) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (d *daemon) locksShown(look proxy.Snapshot) (out []live.Lock) {
	for _, l := range look.Locks {
		free := live.Lock{Name: d.setup.nameOfLock(l.Lock), Waiters: len(l.Waiters), Stranger: l.Stranger, Margin: millis(l.Margin)}
		for _, t := range l.Held() {
			one := free
			one.Gone = t.End != 0
			one.Held, one.Holder, one.Since, one.TTL = true, t.Actor, d.wall(t.Since), float64(t.TTL)/float64(time.Millisecond)
			one.EndsFrom, one.EndsTo, one.Overrun, one.Fence = d.wall(t.Ends.Earliest), d.wall(t.Ends.Latest), t.Dead, t.Fence
			out = append(out, one)
		}
		if len(l.Held()) == 0 {
			out = append(out, free)
		}
	}
	slices.SortStableFunc(out, func(a, b live.Lock) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.Since.Compare(b.Since)) })
	return out
}

func (d *daemon) actorsShown(look proxy.Snapshot) (out []live.Actor) {
	for _, a := range look.Actors {
		out = append(out, live.Actor{
			Label: a.Label, State: a.State, Until: d.wall(a.Until), By: a.By, Sessions: a.Sessions, PID: a.PID, Holds: d.setup.namesOf(a.Holds),
		})
	}
	return out
}

func (d *daemon) rulesShown() (out []live.Rule) {
	d.engine.Plan(d.clock(), func(p *fault.Plan) {
		for _, u := range p.Uses() {
			r := live.Rule{Name: u.Called, Text: u.Text, Armed: u.Armed, Until: d.wall(u.Until), Seen: u.Seen, Fired: u.Fired}
			if u.Left > 0 {
				r.Left = &u.Left
			}
			for _, b := range u.Barred {
				r.Barred += b.N
			}
			if len(u.Barred) > 0 {
				r.Why = u.Barred[0].What
			}
			out = append(out, r)
		}
	})
	return out
}

// marksShown adds to the marks what goes on, and the sections.
func (d *daemon) marksShown(look proxy.Snapshot, now time.Time) []live.Mark {
	out := d.marks.since(now.Add(-lookback))
	section := func(t proxy.TermSeen) live.Mark {
		return live.Mark{At: d.wall(t.Since), To: d.wall(t.End), Open: t.End == 0, Kind: live.MarkSection, Lock: d.setup.nameOfLock(t.Lock), Actor: t.Actor}
	}
	for _, l := range look.Locks {
		for _, t := range l.Terms {
			out = append(out, section(t))
		}
	}
	for _, t := range look.Ended {
		out = append(out, section(t))
	}
	for _, in := range look.Acting {
		if in.Confirmed != 0 && in.Act.Lasts() {
			out = append(out, live.Mark{At: d.wall(in.Confirmed), Open: true, Kind: kindOf(in.Act), Actor: in.Actor, Text: in.Rule})
		}
	}
	slices.SortStableFunc(out, func(a, b live.Mark) int { return a.At.Compare(b.At) })
	return out[max(0, len(out)-mostMarks):]
}
