package proxy

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// dials notes how dials ended, and tells what was said of them.
type dials struct {
	Server
	now  lock.Instant
	said bytes.Buffer
	log  *slog.Logger
}

func newDials() *dials {
	d := &dials{now: lock.Instant(time.Hour)}
	d.log = slog.New(slog.NewTextHandler(&d.said, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	return d
}

// try has n dials end, one each step.
func (d *dials) try(n int, step time.Duration, err error) {
	for range n {
		d.reached.note(Route{Protocol: lock.Redis, Upstream: "redis:6379"}, attempt{d.now, d.now, err}, d.log)
		d.now = d.now.Add(step)
	}
}

func (d *dials) want(t *testing.T, lines ...string) {
	t.Helper()
	if got := strings.TrimSpace(d.said.String()); got != strings.Join(lines, "\n") {
		t.Errorf("it said:\n%s\nwant:\n%s", got, strings.Join(lines, "\n"))
	}
	d.said.Reset()
}

// An upstream that goes is told of once, then by a count each ten seconds, and once when it is back.
func TestUpstreamThatGoesIsToldOnce(t *testing.T) {
	d, refused := newDials(), errors.New("connection refused")
	d.try(3, time.Second, nil)
	d.want(t)
	d.try(100, 100*time.Millisecond, refused)
	d.want(t, `level=ERROR msg="upstream cannot be reached" proxy=redis upstream=redis:6379 err="connection refused"`)
	d.try(10, 100*time.Millisecond, refused)
	d.want(t, `level=ERROR msg="upstream cannot be reached" proxy=redis upstream=redis:6379 attempts=101 for=10s err="connection refused"`)
	d.try(5, time.Second, nil)
	d.want(t, `level=INFO msg="upstream is reached again" proxy=redis upstream=redis:6379 after=11s attempts=110`)
}

// One that comes and goes all the time is told of no more often than one that is gone, and another is not held back by it.
func TestUpstreamThatFlaps(t *testing.T) {
	d, refused := newDials(), errors.New("connection refused")
	for range 40 {
		d.try(1, 100*time.Millisecond, refused)
		d.try(1, 100*time.Millisecond, nil)
	}
	if n := strings.Count(d.said.String(), "\n"); n != 2 {
		t.Errorf("%d lines in 8 s, want 2: gone and back\n%s", n, d.said.String())
	}
	d.said.Reset()
	d.reached.note(Route{Protocol: lock.Postgres, Upstream: "pg:5432"}, attempt{d.now, d.now, refused}, d.log)
	d.want(t, `level=ERROR msg="upstream cannot be reached" proxy=pg upstream=pg:5432 err="connection refused"`)
}

// A dial that hung since before another succeeded says nothing of now.
func TestDialThatHung(t *testing.T) {
	d := newDials()
	began := d.now
	d.now = d.now.Add(time.Second)
	d.try(1, time.Minute, nil)
	d.reached.note(Route{Protocol: lock.Redis, Upstream: "redis:6379"}, attempt{began, d.now, errors.New("i/o timeout")}, d.log)
	if got := d.Outages(); len(got) != 0 {
		t.Errorf("gone: %+v", got)
	}
	d.want(t)
}

// An outage lasts from the first dial in a row that failed to the next that succeeds; one that had been reached before is no
// upstream that was never reached.
func TestOutages(t *testing.T) {
	d, refused := newDials(), errors.New("connection refused")
	d.try(1, time.Second, refused)
	if got := d.Unreached(); len(got) != 1 || got[0] != "redis redis:6379: connection refused" {
		t.Errorf("never reached: %q", got)
	}
	d.try(1, time.Second, nil)
	gone := d.now
	d.try(3, time.Second, refused)
	if got := d.Outages(); len(got) != 1 || got[0].Since != gone || got[0].Err != refused {
		t.Errorf("got %+v, want one since %d", got, gone)
	}
	if got := d.Unreached(); len(got) != 0 {
		t.Errorf("it had been reached: %q", got)
	}
	d.try(1, time.Second, nil)
	if got := d.Outages(); len(got) != 0 {
		t.Errorf("it is back: %+v", got)
	}
}
