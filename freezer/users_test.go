package freezer

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// passRole has a connection as descriptor 3 and the end of a Unix socket as 4: it passes the one by the other when it is told to.
// With "busy" it is busy from then on.
func passRole(args []string) error {
	fmt.Println("ready")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	if err := unix.Sendmsg(4, []byte("x"), unix.UnixRights(3), nil, 0); err != nil {
		return err
	}
	if args[0] == "busy" {
		go func() {
			for {
				runtime.Gosched()
			}
		}()
	}
	return waitForEnd()
}

// takeRole takes a connection from the Unix socket that is its descriptor 3, and uses it as it is told: "read" waits in a
// system call, "poll" in another, "epoll" in one for a set; "set" only has a set, and "idle" does nothing.
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
	case "epoll", "set":
		set, err := unix.EpollCreate1(0)
		if err != nil {
			return err
		}
		if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
			return err
		}
		if args[0] == "epoll" {
			go unix.EpollWait(set, make([]unix.EpollEvent, 1), -1)
		}
	}
	return waitForEnd()
}

// passing starts two processes of which neither descends from the other, nor has the same parent. One has a connection, and
// passes it to the other when it is told to.
func passing(t *testing.T, use, giver string) (conn net.Conn, by *child, taker int) {
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
	g, _ := start(t, nil, []*os.File{file, left}, self("pass", giver)...)
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
// one that held; from then on it takes the one that uses the connection while the other waits for something else, or none.
func TestPassedDescriptor(t *testing.T) {
	for _, c := range []struct {
		use, giver string
		known      bool
	}{{"read", "", true}, {"poll", "", true}, {"epoll", "", true}, {"set", "", false}, {"idle", "", false}, {"read", "busy", false}} {
		t.Run(c.use+c.giver, func(t *testing.T) {
			conn, giver, taker := passing(t, c.use, c.giver)
			f := newFreezer(t)
			client, server := ends(conn)
			o := lookup(t, f, client, server)
			if got := pidsOf(o.Processes); !slices.Equal(got, []int{giver.pid()}) {
				t.Fatalf("holders %v, expected %d", got, giver.pid())
			}
			if _, err := giver.in.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			settled := func() bool {
				return !c.known || mannerOf(taker, o.Inode) == uses && mannerOf(giver.pid(), o.Inode) == waits
			}
			eventually(t, "the other has it", func() bool {
				at, _ := holds(taker, socketLink(o.Inode))
				return at != "" && settled()
			})
			freezePassed(t, f, o, giver.pid(), taker)
			eventually(t, "it is waited for again", settled)
			z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
			if !c.known {
				mustRefuse(t, err, "which of them uses it cannot be told")
				if err := f.Check(o, ScopeProcess); err != nil {
					t.Errorf("a check that another moment may not bear out: %v", err)
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

// freezePassed makes the first freeze of a connection that was passed on.
func freezePassed(t *testing.T, f *Freezer, o *Owner, giver, taker int) {
	t.Helper()
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := pidsOf(z.Processes()); !slices.Equal(got, []int{giver}) {
		t.Errorf("froze %v, expected %d", got, giver)
	}
	eventually(t, "the other is found", func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.others) == 1 })
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
	if b := z.Broken(); !strings.HasPrefix(b, fmt.Sprintf("pid %d (", taker)) || !strings.HasSuffix(b, ") has the connection too, and was not stopped") {
		t.Errorf("broken: %q, expected it to name %d", b, taker)
	}
}

// Each connection has its own search for those to whom it was passed, and what is found is known after the holders have
// changed, too.
func TestPassedDescriptorOfEachConnection(t *testing.T) {
	f := newFreezer(t)
	for range 2 { // at once one after the other
		conn, giver, taker := passing(t, "idle", "")
		client, server := ends(conn)
		o := lookup(t, f, client, server)
		if _, err := giver.in.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the other has it", func() bool { at, _ := holds(taker, socketLink(o.Inode)); return at != "" })
		freezePassed(t, f, o, giver.pid(), taker)
		others, err := o.strangers(nil, o.Inode)
		if err != nil || len(others) != 1 || others[0].PID != taker {
			t.Errorf("others %v, %v, expected %d", others, err, taker)
		}
		closeAll(others)
	}
}

// Of a family all are stopped: the one that waits for the connection need not be the one that works on it.
func TestFamilyIsStoppedWhole(t *testing.T) {
	f := newFreezer(t)
	_, c, conn := dial(t, "127.0.0.1:0")
	file, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	h, _ := start(t, nil, []*os.File{file}, "sh", "-c", "while :; do :; done & echo ready; read x <&3")
	file.Close()
	c.Close()
	kids := kidsOf(t, h.pid())
	if len(kids) != 1 {
		t.Fatalf("children %v", kids)
	}
	t.Cleanup(func() { _ = unix.Kill(kids[0], unix.SIGKILL) })
	client, server := ends(conn)
	o := lookup(t, f, client, server)
	eventually(t, "it reads", func() bool { return mannerOf(h.pid(), o.Inode) == uses })
	for _, scope := range []Scope{ScopeProcess, ScopeTree} {
		z, err := f.Freeze(t.Context(), o, scope, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range []int{h.pid(), kids[0]} {
			everyThread(t, pid, 'T')
		}
		if err := z.Thaw(); err != nil {
			t.Fatal(err)
		}
		if b := z.Broken(); b != "" {
			t.Errorf("%s: broken: %s", scope, b)
		}
	}
}
