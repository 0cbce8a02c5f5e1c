package freezer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// passRole has a connection as descriptor 3 and the end of a Unix socket as 4: it passes the one by the other when it is told to.
func passRole([]string) error {
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	if err := unix.Sendmsg(4, []byte("x"), unix.UnixRights(3), nil, 0); err != nil {
		return err
	}
	return waitForEnd()
}

// takeRole takes a connection from the Unix socket that is its descriptor 3, and uses it as it is told: "read" waits in a
// system call, "poll" in another, "epoll" by a set, "idle" not at all.
func takeRole(args []string) error {
	oob := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(3, make([]byte, 1), oob, 0)
	if err != nil {
		return err
	}
	ms, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return err
	}
	fds, err := unix.ParseUnixRights(&ms[0])
	if err != nil {
		return err
	}
	fd := fds[0]
	if err := unix.SetNonblock(fd, false); err != nil {
		return err
	}
	switch args[0] {
	case "read":
		go unix.Read(fd, make([]byte, 1))
	case "poll":
		go unix.Poll([]unix.PollFd{{Fd: 0}, {Fd: int32(fd), Events: unix.POLLIN}}, -1)
	case "epoll":
		set, err := unix.EpollCreate1(0)
		if err != nil {
			return err
		}
		if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
			return err
		}
	}
	return waitForEnd()
}

// passing starts two processes of which neither descends from the other, nor has the same parent. One has a connection, and
// passes it to the other when it is told to.
func passing(t *testing.T, use string) (conn net.Conn, giver *child, taker int) {
	t.Helper()
	needRoot(t)
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	left, right := os.NewFile(uintptr(pair[0]), "left"), os.NewFile(uintptr(pair[1]), "right")
	g, _ := start(t, nil, []*os.File{file, left}, self("pass")...)
	// The taker has a parent of its own.
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h, _ := start(t, nil, []*os.File{right}, "sh", "-c", "exec 5<&0; '"+exe+"' take "+use+" <&5 >/dev/null & echo; wait")
	for _, f := range []*os.File{file, left, right} {
		f.Close()
	}
	c.Close()
	kids := kidsOf(t, h.pid())
	if len(kids) != 1 {
		t.Fatalf("children %v, expected one", kids)
	}
	return conn, g, kids[0]
}

// A connection may have been passed to a process that is no relative. The first freeze finds that out, and does not count as
// one that held; from then on it takes the one that uses the connection, or none.
func TestPassedDescriptor(t *testing.T) {
	for use, known := range map[string]bool{"read": true, "poll": true, "epoll": true, "idle": false} {
		t.Run(use, func(t *testing.T) {
			conn, giver, taker := passing(t, use)
			f := newFreezer(t)
			client, server := ends(conn)
			o := lookup(t, f, client, server)
			if got := pidsOf(o.Processes); !slices.Equal(got, []int{giver.pid()}) {
				t.Fatalf("holders %v, expected %d", got, giver.pid())
			}
			if _, err := giver.in.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the other has it", func() bool {
				at, _ := holds(taker, socketLink(o.Inode))
				return at != "" && (!known || uses(taker, o.Inode))
			})
			z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "the other is found", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.others) == 1 })
			if err := z.Thaw(); err != nil {
				t.Fatal(err)
			}
			if b := z.Broken(); !strings.HasPrefix(b, fmt.Sprintf("pid %d (", taker)) || !strings.HasSuffix(b, ") has the connection too, and was not stopped") {
				t.Errorf("broken: %q, expected it to name %d", b, taker)
			}
			eventually(t, "it is waited for again", func() bool { return !known || uses(taker, o.Inode) })
			z, err = f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
			if !known {
				mustRefuse(t, err, "which of them uses it cannot be told")
				var r *Refusal
				if errors.As(f.Check(o, ScopeProcess), &r); r == nil {
					t.Error("a check finds nothing")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := pidsOf(z.Processes()); !slices.Equal(got, []int{taker}) {
				t.Errorf("froze %v, expected %d, which uses it", got, taker)
			}
			everyThread(t, taker, 'T')
			if s := stateOf(giver.pid()); s == 'T' {
				t.Error("the one that only has it is stopped")
			}
			if err := z.Thaw(); err != nil {
				t.Fatal(err)
			}
			if b := z.Broken(); b != "" {
				t.Errorf("broken: %s", b)
			}
		})
	}
}

// A tree is that of the one that uses the connection, of whom others may have it by inheritance.
func TestTreeOfTheOneThatUses(t *testing.T) {
	f := newFreezer(t)
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	h, _ := start(t, nil, []*os.File{file}, "sh", "-c", "sleep 1000 & echo ready; read x <&3")
	file.Close()
	c.Close()
	kids := kidsOf(t, h.pid())
	if len(kids) != 1 {
		t.Fatalf("children %v", kids)
	}
	t.Cleanup(func() { _ = unix.Kill(kids[0], unix.SIGKILL) })
	client, server := ends(conn)
	o := lookup(t, f, client, server)
	if uses(kids[0], o.Inode) {
		t.Error("its child is taken to use what it only has")
	}
	for scope, stops := range map[Scope]bool{ScopeProcess: false, ScopeTree: true} {
		eventually(t, "it reads", func() bool { return uses(h.pid(), o.Inode) })
		z, err := f.Freeze(t.Context(), o, scope, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got := pidsOf(z.Processes()); !slices.Equal(got, []int{h.pid()}) {
			t.Errorf("%s: froze %v, expected %d", scope, got, h.pid())
		}
		if s := stateOf(kids[0]); (s == 'T') != stops {
			t.Errorf("%s: its child is in state %c", scope, s)
		}
		if err := z.Thaw(); err != nil {
			t.Fatal(err)
		}
		if b := z.Broken(); b != "" {
			t.Errorf("%s: broken: %s", scope, b)
		}
	}
}
