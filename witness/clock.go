package witness

import (
	"bufio"
	"bytes"
	"context"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

const (
	between  = time.Second // looks at a clock
	untilOld = time.Minute // for so long behind the last op of a lock there may be leases
)

// A Clock looks at the wall clock of a Redis, and who answers, about once a
// second while locks are seen there.
type Clock struct {
	redis  Redis
	now    func() lock.Instant
	locks  func() uint64 // rises with each op of a lock
	record func(history.Clock)
	say    *notes

	slept time.Duration // CLOCK_BOOTTIME less CLOCK_MONOTONIC when it began
}

// run looks until ctx ends, and once more then.
func (c *Clock) run(ctx context.Context) {
	c.slept = asleep()
	c.redis.keep(ctx, func(k *link) error { return c.follow(ctx, k) }, func(err error) { c.say.lost("clock", c.redis.Name, err) })
}

// follow looks over one link until that fails or ctx ends.
func (c *Clock) follow(ctx context.Context, k *link) error {
	seen, last := c.locks(), c.now()
	if err := c.look(k); err != nil {
		return err
	}
	for {
		sleep(ctx, between)
		if n := c.locks(); n != seen {
			seen, last = n, c.now()
		}
		over := ctx.Err() != nil // before the look, which is the one more only then
		if !over && c.now().Sub(last) > untilOld {
			continue
		}
		if err := c.look(k); err != nil || over {
			return err
		}
	}
}

// look asks for the time alone, so that it is known how old the answer is, and
// then for who gave it.
func (c *Clock) look(k *link) error {
	asked := c.now()
	got, err := k.ask(words("TIME"))
	answered := c.now()
	if err != nil {
		return err
	}
	if got[0].kind == '-' {
		return refusal(got[0].text)
	}
	seconds, ok := got[0].at(0).integer()
	micros, ok2 := got[0].at(1).integer()
	if !ok || !ok2 {
		return errReply
	}
	out := history.Clock{
		Upstream: c.redis.Name, At: asked.Add(answered.Sub(asked) / 2), Trip: answered.Sub(asked),
		Wall: time.Unix(seconds, micros*1000).UTC(), Slept: asleep() - c.slept,
	}
	if err := identity(k, &out); err != nil {
		return err
	}
	c.record(out)
	return nil
}

// identity asks who answers; a server that does not tell stays unknown.
func identity(k *link, out *history.Clock) error {
	got, err := k.ask(words("INFO", "server"), words("INFO", "replication"))
	if err != nil {
		return err
	}
	for _, r := range got {
		for in := bufio.NewScanner(bytes.NewReader(r.text)); r.kind == '$' && in.Scan(); {
			name, value, _ := strings.Cut(in.Text(), ":")
			switch name {
			case "run_id":
				out.Run = value
			case "master_replid":
				out.Data = value
			case "role":
				out.Role = value
			}
		}
	}
	return nil
}

// asleep is how far the clock that goes on in a suspend has parted from the one
// that does not.
func asleep() time.Duration {
	var boot, mono unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono) != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil {
		return 0
	}
	// The clocks are read one behind the other; a suspend is longer than that.
	return time.Duration(boot.Nano() - mono.Nano()).Truncate(time.Millisecond)
}
