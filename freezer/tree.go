package freezer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// atOnce is how many processes the guard is given in one message.
const atOnce = handlesMax - 50

// mostKin bounds a tree: the journal and the guard name each of its processes.
const mostKin = 800

// halt stops the target. A tree grows while it is being stopped, so what has descended from those that are
// stopped meanwhile is stopped too, until nothing has: who is stopped starts nobody.
func (z *Frozen) halt(ctx context.Context, max time.Duration) error {
	if z.scope != ScopeTree {
		return z.target.stop(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	for {
		if err := stopProcesses(ctx, z.target.procs, z.isKin); err != nil {
			return err
		}
		more, err := z.descended()
		if err != nil {
			return err
		}
		if len(more) == 0 {
			z.target.procs = slices.DeleteFunc(z.target.procs, func(p Process) bool { return p.exited() && z.isKin(p) })
			return nil
		}
		if err := z.grow(more, max); err != nil {
			return err
		}
	}
}

// isKin reports whether a process is no holder: it may end while the tree is being stopped.
func (z *Frozen) isKin(p Process) bool {
	return slices.ContainsFunc(z.kin, func(k Process) bool { return k.PID == p.PID && k.Start == p.Start })
}

// grow makes more processes the freeze's own, before any of them is touched.
func (z *Frozen) grow(more []int, max time.Duration) error {
	known := len(z.target.procs)
	if err := z.join(more); err != nil {
		return err
	}
	return z.armFrom(known, max)
}

// armAll gives the guard all of the target.
func (z *Frozen) armAll(max time.Duration) error {
	if z.target.group != nil {
		return z.arm(opArm, z.target.handles(), max)
	}
	return z.armFrom(0, max)
}

// armFrom gives the guard what it does not know yet, as much at a time as one message takes.
func (z *Frozen) armFrom(known int, max time.Duration) error {
	all := z.target.procs
	defer func() { z.target.procs = all }()
	for known < len(all) {
		op := opGrow
		if known == 0 {
			op = opArm
		}
		next := min(known+atOnce, len(all))
		z.target.procs = all[:next]
		if err := z.arm(op, z.target.handles()[known:], max); err != nil {
			return err
		}
		known = next
	}
	return nil
}

// descended lists who descends from the target and is not of it.
func (z *Frozen) descended() (out []int, err error) {
	known := make(map[int]bool)
	for _, p := range z.target.procs {
		known[p.PID] = true
	}
	for _, p := range z.target.procs {
		if out, err = z.below(p.PID, known, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (z *Frozen) below(pid int, known map[int]bool, out []int) ([]int, error) {
	kids, err := children(pid)
	if err != nil {
		return nil, err
	}
	for _, kid := range kids {
		if known[kid] {
			continue
		}
		known[kid] = true
		left, err := z.leaves(kid)
		if err != nil {
			return nil, fmt.Errorf("a descendant: %w", err)
		}
		if !left {
			out = append(out, kid)
		}
		// Of one that is left, those that it has started run on.
		if out, err = z.below(kid, known, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// leaves reports whether a descendant is left as it is: it has ended, or somebody else has stopped it.
func (z *Frozen) leaves(pid int) (bool, error) {
	p, err := openProcess(pid)
	if vanished(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer closeAll([]Process{p})
	var r *Refusal
	err = z.f.running(p)
	if errors.As(err, &r) || errors.Is(err, ErrGone) {
		return true, nil
	}
	return false, err
}

// join takes hold of descendants, if none of them is one that must not stop.
func (z *Frozen) join(pids []int) error {
	if len(z.target.procs)+len(pids) > mostKin {
		return refuse(0, "it has more than %d descendants", mostKin)
	}
	policy := z.f.policy()
	z.target.procs = slices.Clone(z.target.procs)
	for _, pid := range pids {
		err := policy.identity(pid)
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		p, err := openProcess(pid)
		if vanished(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("a descendant: %w", err)
		}
		z.kin = append(z.kin, p)
		key := "pid " + strconv.Itoa(pid)
		if r := z.f.take([]string{key}); r != nil {
			return fmt.Errorf("a descendant: %w", r)
		}
		z.keys = append(z.keys, key)
		z.target.procs = append(z.target.procs, p)
	}
	return nil
}
