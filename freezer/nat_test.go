package freezer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// translate lets a network namespace translate addresses by the rules of a chain at a hook.
func translate(t *testing.T, in func(...string) []string, hook, priority, rule string) {
	t.Helper()
	needTools(t, "nft")
	do(t, in("nft", fmt.Sprintf("add table inet lf%s; add chain inet lf%s c { type nat hook %s priority %s; }; add rule inet lf%s c %s", hook, hook, hook, priority, hook, rule))...)
}

// join joins two network namespaces by a pair of devices.
func join(t *testing.T, left func(...string) []string, dev, addr string, pid int, right func(...string) []string, dev2, addr2 string) {
	t.Helper()
	do(t, left("ip", "link", "add", dev, "type", "veth", "peer", "name", dev2, "netns", strconv.Itoa(pid))...)
	t.Cleanup(func() { argv := left("ip", "link", "del", dev); _ = exec.Command(argv[0], argv[1:]...).Run() })
	for _, side := range []struct {
		in        func(...string) []string
		dev, addr string
	}{{left, dev, addr}, {right, dev2, addr2}} {
		do(t, side.in("ip", "addr", "add", side.addr, "dev", side.dev, "nodad")...)
		do(t, side.in("ip", "link", "set", side.dev, "up")...)
	}
}

func here(argv ...string) []string { return argv }

// victimAt starts a victim by in, which connects to an address that leads to the listener.
func victimAt(t *testing.T, l net.Listener, in func(...string) []string, addr string) *victim {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(t.TempDir(), "stamp")
	c, _ := start(t, nil, nil, in(exe, "victim", addr, stamp, "0")...)
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(watchdog))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	v := &victim{child: c, conn: conn}
	if v.stamp, err = openStamp(stamp); err != nil {
		t.Fatal(err)
	}
	v.client, v.server = ends(conn)
	return v
}

// Behind address translation neither end of the client's socket may be what arrives here. Who has translated knows.
func TestLookupTranslated(t *testing.T) {
	for _, six := range []bool{false, true} {
		for _, routed := range []bool{false, true} {
			t.Run(fmt.Sprintf("six %v routed %v", six, routed), func(t *testing.T) {
				pid, in := newSpace(t)
				n := pid % 250
				near, mine, theirs, virtual := fmt.Sprintf("10.215.%d.", n), "1/24", "2/24", "10.99.77.77"
				if six {
					near, mine, theirs, virtual = fmt.Sprintf("fd00:215:%x::", n), "1/64", "2/64", "fd00:99::7"
				}
				join(t, here, fmt.Sprintf("lfn%d", pid), near+mine, pid, in, "eth0", near+theirs)
				l, err := net.Listen("tcp", net.JoinHostPort(near+"1", "0"))
				if err != nil {
					t.Skip("no such address here:", err)
				}
				defer l.Close()
				family := "ip"
				if six {
					family = "ip6"
				}
				to := fmt.Sprintf("%s daddr %s tcp dport 6379 dnat %s to %s", family, virtual, family, l.Addr())
				client := in
				if !routed {
					do(t, in("ip", "route", "add", "default", "via", near+"1")...)
					translate(t, in, "output", "-100", to)
				} else {
					inner, within := newSpace(t)
					far := strings.Replace(near, "215", "216", 1)
					join(t, in, "far0", far+mine, inner, within, "eth0", far+theirs)
					do(t, within("ip", "route", "add", "default", "via", far+"1")...)
					do(t, in("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")...)
					translate(t, in, "prerouting", "-100", to)
					translate(t, in, "postrouting", "100", "masquerade")
					client = within
				}
				v := victimAt(t, l, client, net.JoinHostPort(virtual, "6379"))
				f := newFreezer(t)
				o := lookup(t, f, v.client, v.server)
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
				if err := z.Thaw(); err != nil {
					t.Fatal(err)
				}
				v.mustMove(t, "after the thaw")
			})
		}
	}
}

// What was not translated, or is none of a namespace's, is not found by that.
func TestLookupNotTranslated(t *testing.T) {
	f := newFreezer(t)
	a := addresses{client: netip.MustParseAddrPort("10.1.2.3:4"), server: netip.MustParseAddrPort("10.1.2.4:5")}
	if was, err := f.untranslated(a); err != nil || was.client.IsValid() {
		t.Errorf("%+v, %v", was, err)
	}
	if o, err := f.Lookup(t.Context(), a.client, a.server); !errors.Is(err, ErrNoConnection) {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestTrackMessages(t *testing.T) {
	for _, pair := range [][2]string{{"10.0.0.1:1", "10.0.0.2:65535"}, {"[fd00::1]:1", "[fd00::2]:2"}} {
		source, target := netip.MustParseAddrPort(pair[0]), netip.MustParseAddrPort(pair[1])
		b, err := trackRequest(source, target)
		if err != nil {
			t.Fatal(err)
		}
		original, reply, err := parseTrack(b) // what is asked with is built as answers are
		if err != nil || original != (addresses{}) || reply != (addresses{client: source, server: target}) {
			t.Errorf("%v: %+v, %+v, %v", pair, original, reply, err)
		}
		for n := range b {
			if _, _, err := parseTrack(b[:n]); n%4 != 0 && n > trackHeader && err == nil {
				t.Errorf("%v: %d bytes of %d were read", pair, n, len(b))
			}
		}
	}
}

func TestParseOne(t *testing.T) {
	message := func(size uint32, kind uint16, data ...byte) []byte {
		b := make([]byte, 16, 64)
		binary.NativeEndian.PutUint32(b, size)
		binary.NativeEndian.PutUint16(b[4:], kind)
		binary.NativeEndian.PutUint32(b[8:], 7)
		return append(b, data...)
	}
	if ms, err := parseOne(message(20, getTrack, 1, 2, 3, 4, 5), 7); err != nil || len(ms) != 1 || len(ms[0].Data) != 4 {
		t.Errorf("%v, %v", ms, err)
	}
	denied := make([]byte, 4)
	binary.NativeEndian.PutUint32(denied, ^uint32(0)) // -EPERM
	if _, err := parseOne(message(20, 2, denied...), 7); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("%v", err)
	}
	for _, bad := range [][]byte{nil, make([]byte, 15), message(15, getTrack), message(17, getTrack), message(^uint32(0), getTrack)} {
		if ms, err := parseOne(bad, 7); err == nil {
			t.Errorf("%v of %v", ms, bad)
		}
	}
	if ms, err := parseOne(message(16, getTrack), 8); err == nil {
		t.Errorf("%v of another question", ms)
	}
}
