package main

import (
	"errors"
	"fmt"
	"strings"
)

// Files are how many files are open, by what they are.
type files struct {
	sockets, pipes, pidfds, others int
}

func (f *files) count(link string) {
	switch {
	case strings.HasPrefix(link, "socket:"):
		f.sockets++
	case strings.HasPrefix(link, "pipe:"):
		f.pipes++
	case link == "anon_inode:[pidfd]":
		f.pidfds++
	default:
		f.others++
	}
}

func (f files) all() int { return f.sockets + f.pipes + f.pidfds + f.others }

func (f files) String() string {
	return fmt.Sprintf("%d files (%d sockets, %d pipes, %d pidfds)", f.all(), f.sockets, f.pipes, f.pidfds)
}

// What lockfaultd may keep when the last client has gone.
const (
	keptSockets = 1  // to ask the kernel whose a connection is
	keptPipes   = 32 // ends of those that bytes were moved through last
)

// leaked says what is open beyond what was at the start and what is kept on
// purpose: of the processes that had connections a pidfd each.
func (f files) leaked(start files, processes int) error {
	var errs []error
	for _, k := range []struct {
		what              string
		have, begun, kept int
	}{
		{"sockets", f.sockets, start.sockets, keptSockets},
		{"pipes", f.pipes, start.pipes, keptPipes},
		{"pidfds", f.pidfds, start.pidfds, processes},
		{"other files", f.others, start.others, 0},
	} {
		if most := k.begun + k.kept; k.have > most {
			errs = append(errs, fmt.Errorf("%d %s, expected %d at most", k.have, k.what, most))
		}
	}
	return errors.Join(errs...)
}
