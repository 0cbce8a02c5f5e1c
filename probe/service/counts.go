package service

import (
	"maps"
	"sync"
	"sync/atomic"
)

// counts are what metrics are made of.
type counts struct {
	lines atomic.Uint64

	mu       sync.Mutex
	polls    map[string]uint64
	failures map[string]uint64
	breaches map[string]uint64
	figures  map[string]Figures
}

func (c *counts) init() {
	c.polls, c.failures, c.breaches, c.figures = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}, map[string]Figures{}
}

func (c *counts) looked(watch string, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.polls[watch]++; failed {
		c.failures[watch]++
	}
}

func (c *counts) broke(watch string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breaches[watch]++
}

func (c *counts) opinion(watch string, o Opinion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.Figures != nil {
		c.figures[watch] = *o.Figures
	}
}

// copy returns what there is, the caller's own.
func (c *counts) copy() (polls, failures, breaches map[string]uint64, figures map[string]Figures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.polls), maps.Clone(c.failures), maps.Clone(c.breaches), maps.Clone(c.figures)
}
