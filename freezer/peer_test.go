package freezer

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// unixVictim starts a victim that connects to a Unix socket, by argv before its own.
func unixVictim(t *testing.T, before ...string) *victim {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(dir, "stamp")
	c, _ := start(t, nil, nil, append(before, exe, "victim", "unix:"+l.Addr().String(), stamp, "0")...)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	v := &victim{child: c, conn: conn}
	if v.stamp, err = openStamp(stamp); err != nil {
		t.Fatal(err)
	}
	v.mustMove(t, "before anything")
	return v
}

func lookupPeer(t *testing.T, f *Freezer, c net.Conn) *Owner {
	t.Helper()
	o, err := f.LookupPeer(t.Context(), c.(syscall.Conn))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// The client of a Unix socket has no address. It is found in any network namespace.
func TestLookupUnix(t *testing.T) {
	for name, before := range map[string][]string{"here": nil, "elsewhere": {"unshare", "-n"}} {
		t.Run(name, func(t *testing.T) {
			f := newFreezer(t)
			v := unixVictim(t, before...)
			o := lookupPeer(t, f, v.conn)
			if got := pidsOf(o.Processes); !slices.Equal(got, []int{v.pid()}) {
				t.Fatalf("holders %v, expected %d", got, v.pid())
			}
			z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			v.mustStand(t)
			if n, err := o.Unread(); n != 0 || err != nil {
				t.Errorf("%d bytes unread, %v", n, err)
			}
			if _, err := v.conn.Write([]byte("four")); err != nil {
				t.Fatal(err)
			}
			if n, err := o.Unread(); n == 0 || err != nil {
				t.Errorf("%d bytes unread, %v; expected some", n, err)
			}
			if err := z.Thaw(); err != nil {
				t.Fatal(err)
			}
			v.mustMove(t, "after the thaw")
			v.kill()
			if _, err := o.Unread(); !errors.Is(err, ErrNoConnection) {
				t.Errorf("of a client that has gone: %v", err)
			}
			if _, err := f.LookupPeer(t.Context(), v.conn.(syscall.Conn)); !errors.Is(err, ErrNoConnection) {
				t.Errorf("a client that has gone: %v", err)
			}
			if _, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute); !errors.Is(err, ErrNoConnection) {
				t.Errorf("a freeze of a client that has gone: %v", err)
			}
		})
	}
}

// Whoever has connected may have ended, and another have the connection.
func TestLookupUnixHeir(t *testing.T) {
	f := newFreezer(t)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The shell connects nothing itself: what has connected starts a holder and ends.
	first, line := start(t, nil, nil, self("connect", l.Addr().String())...)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if line != "ready" {
		t.Fatalf("the holder said %q", line)
	}
	eventually(t, "who has connected has ended", func() bool { return gone(first.pid()) })
	o := lookupPeer(t, f, conn)
	if got := pidsOf(o.Processes); len(got) != 1 || got[0] == first.pid() {
		t.Fatalf("holders %v, expected the heir of %d", got, first.pid())
	}
	z, err := f.Freeze(t.Context(), o, ScopeProcess, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	everyThread(t, o.Processes[0].PID, 'T')
	if err := z.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// An inode may be another socket's later; its cookie tells.
func TestLookupUnixOtherSocket(t *testing.T) {
	f := newFreezer(t)
	v := unixVictim(t)
	p, err := peeringOf(v.conn.(syscall.Conn))
	if err != nil {
		t.Fatal(err)
	}
	if p.maker != v.pid() {
		t.Errorf("connected by %d, expected %d", p.maker, v.pid())
	}
	if _, err := p.find(f); err != nil {
		t.Error(err)
	}
	p.cookie++
	if s, err := p.find(f); !errors.Is(err, ErrNoConnection) {
		t.Errorf("%+v, %v of another socket", s, err)
	}
}

func TestParseUnixAnswer(t *testing.T) {
	if _, err := parseUnixAnswer(make([]byte, unixAnswerSize-1)); err == nil {
		t.Error("a short answer was read")
	}
	bad := append(make([]byte, unixAnswerSize), 1, 0, 0, 0) // an attribute that is shorter than its header
	if _, err := parseUnixAnswer(bad); err == nil {
		t.Error("a broken attribute was read")
	}
	if e, err := parseUnixAnswer(make([]byte, unixAnswerSize)); err != nil || e.inode != 0 {
		t.Errorf("%+v, %v without attributes", e, err)
	}
}
