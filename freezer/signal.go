package freezer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// confirmWithin bounds how long the kernel may take to stop or resume.
	confirmWithin = 2 * time.Second
	// resendAfter is when a thread that has not stopped is told again: somebody
	// else's SIGCONT takes back every stop that was still waiting.
	resendAfter = 20 * time.Millisecond
)

// thread is one thread's id and state.
type thread struct {
	tid   int
	state byte
}

// threads returns the threads of p that have not ended. No thread means that
// the process has.
func (p Process) threads() ([]thread, error) {
	tids, err := numbers(procPath(p.PID, "task"))
	var ts []thread
	for _, tid := range tids {
		s, terr := readThread(p.PID, tid)
		if terr != nil && !vanished(terr) {
			err = terr
		}
		if terr == nil && !s.ended() {
			ts = append(ts, thread{tid, s.state})
		}
	}
	// Asked last: while this process lives, its pid was nobody else's.
	if p.exited() {
		return nil, nil
	}
	if err != nil && !vanished(err) {
		return nil, fmt.Errorf("read threads of %s: %w", p, err)
	}
	return ts, nil
}

// stopper stops processes, and knows when it has.
type stopper struct {
	procs []Process
	kin   func(p Process) bool // nil: all of procs have to be there. Of a tree, those that may end meanwhile
	sent  map[int]time.Time    // by thread
	last  map[int]bool         // the threads seen stopped in the last pass; nil if not all were
	slow  error                // what the last pass was still waiting for
}

// stopProcesses sends SIGSTOP to every thread and returns when two passes in a
// row saw the same threads, all of them stopped: a thread that was made while
// the first looked shows in the second. One signal to the process would do in
// the end, but while one thread after another hears of it the rest run on.
func stopProcesses(ctx context.Context, ps []Process, kin func(p Process) bool) error {
	ctx, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	s := &stopper{procs: ps, kin: kin, sent: make(map[int]time.Time)}
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		done, err := s.pass()
		if done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(s.slow, err)
		}
		time.Sleep(wait)
	}
}

func (s *stopper) pass() (done bool, err error) {
	seen := make(map[int]bool)
	s.slow = nil
	for _, p := range s.procs {
		ts, err := p.threads()
		if err != nil {
			return false, err
		}
		if len(ts) == 0 && (s.kin == nil || !s.kin(p)) {
			return false, fmt.Errorf("stop %s: %w", p, ErrGone)
		}
		for _, t := range ts {
			seen[t.tid] = true
			if t.state == 'T' || s.kin != nil && s.told(t.tid) && p.waitsForChild(t) {
				continue
			}
			s.slow = fmt.Errorf("thread %d of %s is in state %c and has not stopped", t.tid, p, t.state)
			if err := s.signal(p, t.tid); err != nil {
				return false, err
			}
		}
	}
	if s.slow != nil {
		s.last = nil
		return false, nil
	}
	done = s.last != nil && maps.Equal(s.last, seen)
	s.last = seen
	return done, nil
}

func (s *stopper) told(tid int) bool { return !s.sent[tid].IsZero() }

// waitsForChild reports whether a thread sleeps until a child of its own, which may be stopped, has begun its
// program: it stops once it has. Of a tree that child is stopped as well, and so the thread runs no more than it.
func (p Process) waitsForChild(t thread) bool {
	if t.state != 'D' {
		return false
	}
	b, err := readSmall(procPath(p.PID, "task", strconv.Itoa(t.tid), "wchan"))
	return err == nil && (string(b) == "kernel_clone" || string(b) == "wait_for_vfork_done")
}

// signal tells one thread to stop. A thread that has ended meanwhile is no error.
func (s *stopper) signal(p Process, tid int) error {
	now := time.Now()
	if last, ok := s.sent[tid]; ok && now.Sub(last) < resendAfter {
		return nil
	}
	s.sent[tid] = now
	if p.exited() {
		return nil
	}
	if err := unix.Tgkill(p.PID, tid, unix.SIGSTOP); err != nil && err != unix.ESRCH {
		return fmt.Errorf("stop thread %d of %s: %w", tid, p, err)
	}
	return nil
}

// thawProcesses resumes every process and waits until each runs, so that one
// that cannot be resumed keeps none of the others. The error names each that a
// human has to resume.
func thawProcesses(ps []Process) error {
	errs := make([]error, 0, len(ps))
	for _, p := range ps {
		errs = append(errs, p.resume())
	}
	deadline := time.Now().Add(confirmWithin)
	for i, p := range ps {
		if errs[i] == nil {
			errs[i] = p.awaitRunning(deadline)
		}
	}
	return errors.Join(errs...)
}

func (p Process) resume() error {
	err := unix.PidfdSendSignal(p.pidfd, unix.SIGCONT, nil, 0)
	if err != nil && err != unix.ESRCH {
		return fmt.Errorf("resume %s, send it SIGCONT by hand: %w", p, err)
	}
	return nil
}

func (p Process) awaitRunning(deadline time.Time) error {
	wait := 20 * time.Microsecond
	for again := time.Now().Add(resendAfter); ; {
		t, stopped, err := p.firstStopped()
		if !stopped && err == nil {
			return nil
		}
		now := time.Now()
		switch {
		case now.After(deadline) && err != nil:
			return fmt.Errorf("resume %s: whether it runs cannot be told, send it SIGCONT by hand: %w", p, err)
		case now.After(deadline):
			return fmt.Errorf("resume %s: thread %d is still in state %c, send it SIGCONT by hand", p, t.tid, t.state)
		}
		if now.After(again) {
			again = now.Add(resendAfter)
			if err := p.resume(); err != nil {
				return err
			}
		}
		time.Sleep(wait)
		wait = min(2*wait, time.Millisecond)
	}
}

// firstStopped returns a thread that is stopped. A tracer's stop is not ours.
func (p Process) firstStopped() (t thread, stopped bool, err error) {
	ts, err := p.threads()
	for _, t := range ts {
		if t.state == 'T' {
			return t, true, nil
		}
	}
	return thread{}, false, err
}

// resumedByOthers says how a stop that should still hold has ended, or "".
func resumedByOthers(ps []Process) string {
	for _, p := range ps {
		ts, err := p.threads()
		if err == nil && len(ts) == 0 {
			return fmt.Sprintf("%s ended while it was stopped", p)
		}
		for _, t := range ts {
			if t.state != 'T' && !p.waitsForChild(t) {
				return fmt.Sprintf("%s was resumed by somebody else: thread %d is in state %c", p, t.tid, t.state)
			}
		}
	}
	return ""
}
