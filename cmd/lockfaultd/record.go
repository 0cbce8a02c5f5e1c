package main

import (
	"bufio"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

func (d *daemon) injected(in history.Injection) {
	said := []any{"rule", in.Rule, "effect", in.Effect, "matched", in.Matched, "for", in.For, "actor", in.Actor, "outcome", in.Outcome}
	if in.Reason != "" {
		said = append(said, "reason", in.Reason)
	}
	d.log.Info("injection ended", said...)
	if d.record != nil {
		d.record.Injection(in)
	}
}

func (d *daemon) turned(t history.Turn) {
	if d.record != nil {
		d.record.Turn(t)
	}
}

// did records what a rule has done to a lock.
func (d *daemon) did(op *lock.Op) {
	if d.record != nil {
		d.record.Op(op)
	}
}

func (d *daemon) vain(v fault.Vain) {
	d.log.Warn("a rule waits in vain", "rule", v.Rule, "matched", v.Name, "why", v.Why)
	if d.record != nil {
		d.record.Vain(v)
	}
}

func (d *daemon) openHistory(path string, start time.Time, full proxy.WhenFull) error {
	f, err := os.Create(path)
	if err != nil {
		return usagef("--out: cannot write the history: %v", err)
	}
	h := history.Header{
		Schema: history.Schema, Started: start, Seed: d.setup.seed, KeyID: d.hash.ID(), Version: version,
		Declarations: d.setup.decls, Invariants: invariantsForHeader(d.setup.invariants), Upstreams: d.setup.upstreams(),
	}
	d.file = f
	buffer := bufio.NewWriterSize(&disk{File: f, log: d.log}, 64<<10)
	d.record = proxy.NewRecord(history.NewWriter(buffer, h, d.setup.integers), buffer.Flush, d.engine, full)
	return nil
}

// A disk says so at once when it fails for the first time: the error itself
// comes out only when the history is closed, which for a sidecar may be weeks
// later.
type disk struct {
	*os.File
	log    *slog.Logger
	failed bool
}

func (d *disk) Write(p []byte) (int, error) {
	n, err := d.File.Write(p)
	if err != nil && !d.failed {
		d.failed = true
		d.log.Error("the history cannot be written: nothing is recorded from here on", "err", err)
	}
	return n, err
}

func (d *daemon) closeHistory() error {
	if d.record == nil {
		return nil
	}
	return errors.Join(d.record.Close(), d.file.Close())
}
