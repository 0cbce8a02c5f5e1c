package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/freezer"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// freezing lets the proxy use the freezer.
type freezing struct {
	freezer *freezer.Freezer
	asked   bool // a rule freezes: see at once who must not be
}

// newFreezing starts the freezer. Its guard runs from the start when a rule
// freezes, so that the moment itself only has to arm it.
func newFreezing(s *setup, up []netip.AddrPort, log *slog.Logger) (*freezing, error) {
	f, err := freezer.New(context.Background(), freezer.Options{
		JournalDir:   journalDir(),
		GuardCommand: []string{self(), "guard"},
		Lazy:         !s.freezes(),
		Upstreams:    up,
		Log:          log,
	})
	if err != nil {
		return nil, err
	}
	if lacks := freezer.Lacking(); s.freezes() && lacks != "" {
		log.Warn("not everything can be frozen (lockfaultd doctor explains it)", "why", lacks)
	}
	return &freezing{freezer: f, asked: s.freezes() || s.alters()}, nil
}

// self is this program, which the guard is started from.
func self() string {
	if path, err := os.Executable(); err == nil {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/proc/self/exe" // it was replaced or removed meanwhile
}

func (s *setup) freezes() bool {
	for _, r := range s.rules {
		if r.Do == fault.Freeze {
			return true
		}
	}
	return false
}

// Lookup implements proxy.Freezer.
func (f *freezing) Lookup(ctx context.Context, client, server netip.AddrPort) *proxy.Owner {
	o, err := f.freezer.Lookup(ctx, client, server)
	return f.found(client.Addr().Unmap().String(), o, err)
}

// LookupPeer implements proxy.Finder.
func (f *freezing) LookupPeer(ctx context.Context, c syscall.Conn) *proxy.Owner {
	o, err := f.freezer.LookupPeer(ctx, c)
	return f.found("unix", o, err)
}

// LookupRelayed implements proxy.Finder.
func (f *freezing) LookupRelayed(ctx context.Context, client, server netip.AddrPort) *proxy.Owner {
	o, err := f.freezer.LookupRelayed(ctx, client, server)
	return f.found(client.Addr().Unmap().String(), o, err)
}

// found tells the proxy of the owner of a connection from an address, or why there is none.
func (f *freezing) found(address string, o *freezer.Owner, err error) *proxy.Owner {
	if err != nil {
		return &proxy.Owner{Address: address, Reason: err.Error()}
	}
	first := o.Processes[0]
	out := &proxy.Owner{
		Key: keyOf(o), PID: first.PID, Start: first.Start, Exe: first.Exe,
		Cgroup: o.Cgroup, Address: address, Handle: o,
	}
	if f.asked {
		if err := f.freezer.Check(o, freezer.ScopeProcess); err != nil {
			out.Reason = err.Error()
		}
	}
	return out
}

// keyOf names the processes that hold a connection.
func keyOf(o *freezer.Owner) string {
	var b strings.Builder
	for _, p := range o.Processes {
		fmt.Fprintf(&b, "%d@%d ", p.PID, p.Start)
	}
	return b.String()
}

// Freeze implements proxy.Freezer.
func (f *freezing) Freeze(ctx context.Context, o *proxy.Owner, scope fault.Scope, max time.Duration) (proxy.Thawer, error) {
	z, err := f.freezer.Freeze(ctx, o.Handle.(*freezer.Owner), freezer.Scope(scope), max)
	if err != nil {
		return nil, err
	}
	return thawing{z}, nil
}

// Unread implements proxy.Socketeer.
func (f *freezing) Unread(o *proxy.Owner) (int, error) {
	found, ok := o.Handle.(*freezer.Owner)
	if !ok {
		return 0, errors.New(o.Reason)
	}
	return found.Unread()
}

// Close thaws everything and ends the guard.
func (f *freezing) Close() error { return f.freezer.Close() }

type thawing struct{ frozen *freezer.Frozen }

// Thaw implements proxy.Thawer.
func (t thawing) Thaw() (note string, err error) {
	err = t.frozen.Thaw()
	return t.frozen.Broken(), err
}
