package main

import "github.com/lockfaultd/lockfaultd/lock"

// A tick is the time of the history, for who compares it with what a database shows.
type tick struct {
	Run     string       `json:"run"`
	At      lock.Instant `json:"at"`
	Holding lock.Instant `json:"holding,omitempty"` // when the oldest injection began that goes on; 0: none does
}

func (d *daemon) tick() any {
	t := tick{Run: d.run, At: d.clock()}
	for _, a := range d.engine.Snapshot(t.At, t.At).Acting {
		if t.Holding == 0 || a.At < t.Holding {
			t.Holding = a.At
		}
	}
	return t
}
