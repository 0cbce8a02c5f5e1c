package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/freezer"
	"github.com/lockfaultd/lockfaultd/internal/config"
)

// look is how often the file is looked at.
const look = time.Second

// listenToSignals returns a context that ends with what tells the daemon to, and where SIGHUP goes if it does not end the
// daemon, since it has a file to read again. Where SIGHUP is ignored, as by nohup, it stays so.
func (s *setup) listenToSignals(ctx context.Context) (_ context.Context, hangups chan os.Signal, stop context.CancelFunc) {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	switch {
	case !s.reloads:
		ends = append(ends, syscall.SIGHUP)
	case !signal.Ignored(syscall.SIGHUP):
		hangups = make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP)
	}
	ctx, stop = signal.NotifyContext(ctx, ends...)
	return ctx, hangups, stop
}

// A stamp tells whether a file is the one that it was.
type stamp struct {
	changed  time.Time
	size     int64
	dev, ino uint64
}

// stampOf returns the stamp of what is there now, zero if there is nothing.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	s := stamp{changed: info.ModTime(), size: info.Size()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.dev, s.ino = sys.Dev, sys.Ino
	}
	return s
}

// A reloader has the rules follow their file. One goroutine has it.
type reloader struct {
	daemon   *daemon
	path     string
	hangups  <-chan os.Signal // nil: none come
	terminal bool             // there is one that may hang up
	read     stamp            // of the file as it was read last
	seen     stamp            // as it was looked at last
	told     string           // what was said to be as it was, until something else is
}

func newReloader(d *daemon, path string, hangups <-chan os.Signal) *reloader {
	return &reloader{daemon: d, path: path, hangups: hangups, terminal: onTerminal(), read: d.setup.stamp, seen: d.setup.stamp}
}

// onTerminal reports whether this process has a terminal of which a hangup would be told.
func onTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// follow reads the file again whenever it is told to or finds that it has changed, until ctx is done. It calls stop if
// the terminal has hung up: then SIGHUP means what it means to others.
func (r *reloader) follow(ctx context.Context, stop func()) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.hangups:
			if r.terminal && !onTerminal() {
				stop()
				return
			}
			r.reload()
		case <-tick.C:
			r.look()
		}
	}
}

// look reads the file again if it is another than was read, and has not changed since the last look: what is being
// written is left alone.
func (r *reloader) look() {
	now := stampOf(r.path)
	if now != r.read && now == r.seen {
		r.reload()
	}
	r.seen = now
}

// reload makes the file's rules those of the plan. A file that is no good changes nothing.
func (r *reloader) reload() {
	r.read = stampOf(r.path)
	done, c, err := r.replace()
	if err != nil {
		r.daemon.log.Error("the file is no good: the rules are as they were", "config", r.path, "err", short(err))
		return
	}
	r.daemon.log.Info("the file was read again", "config", r.path, "kept", done.Kept, "new", done.New, "gone", done.Gone)
	r.daemon.warnOfFreezes(c.Rules)
	r.tellRest(c)
}

func (r *reloader) replace() (done fault.Reloaded, c *config.Config, err error) {
	if c, err = config.Load(r.path); err != nil {
		return done, nil, err
	}
	if names := fault.Signals(c.Rules); len(names) > 0 && r.daemon.admin == nil {
		return done, nil, fmt.Errorf("a rule waits for signal:%s, and nothing takes signals; expected a start with --admin", names[0])
	}
	err = r.daemon.engine.Alter(func(p *fault.Plan) error {
		done, err = p.Reload(c.Rules, r.daemon.clock())
		return err
	})
	return done, c, placed(c, err)
}

// short is an error without the lines of the file.
func short(err error) string {
	var e *config.Error
	if errors.As(err, &e) {
		return e.Short()
	}
	return err.Error()
}

// warnOfFreezes says so if rules freeze and not everything can be frozen.
func (d *daemon) warnOfFreezes(rules []fault.Rule) {
	freezes := slices.ContainsFunc(rules, func(r fault.Rule) bool { return r.Do == fault.Freeze })
	if lacks := freezer.Lacking(); freezes && lacks != "" {
		d.log.Warn("not everything can be frozen (lockfaultd doctor explains it)", "why", lacks)
	}
}

// tellRest says, once, what of the file is another than at the start and takes a new start to change.
func (r *reloader) tellRest(c *config.Config) {
	rest := strings.Join(apart(r.daemon.setup.config, c), ", ")
	if rest != "" && rest != r.told {
		r.daemon.log.Warn("only rules are read again: this stays as it was at the start", "config", r.path, "changed", rest)
	}
	r.told = rest
}

// apart lists the parts, beside the rules, in which two files are not the same. What is secret or a certificate is not
// compared.
func apart(a, b *config.Config) (parts []string) {
	same := func(part string, of func(c *config.Config) string) {
		if of(a) != of(b) {
			parts = append(parts, part)
		}
	}
	same("proxies", func(c *config.Config) string {
		var out []string
		for _, p := range c.Proxies {
			out = append(out, fmt.Sprint(p.Name, p.Protocol, p.Listen, p.Upstream, p.Relayed, p.TLS.Client != nil, p.TLS.Upstream != nil))
		}
		return strings.Join(out, "\n")
	})
	same("locks", func(c *config.Config) string {
		var out []string
		for _, n := range c.Names {
			out = append(out, n.Name)
		}
		for _, l := range c.Locks {
			lease := ""
			if l.Lease != nil {
				lease = fmt.Sprint(*l.Lease)
			}
			l.Lease = nil
			out = append(out, fmt.Sprintf("%+v %s", l, lease))
		}
		return strings.Join(out, "\n")
	})
	same("invariants", func(c *config.Config) string {
		var out []string
		for _, i := range c.Invariants {
			out = append(out, fmt.Sprint(i.Name, i.Kind, i.Query, i.Lock))
		}
		return strings.Join(out, "\n")
	})
	same("witness", func(c *config.Config) string { return c.Witness })
	return parts
}
