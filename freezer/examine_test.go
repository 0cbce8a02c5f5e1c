package freezer

import (
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// As root on a machine of its own nothing is lacking.
func TestExamine(t *testing.T) {
	needRoot(t)
	found := map[string]Finding{}
	for _, f := range Examine(filepath.Join(t.TempDir(), "journal"), self("guard")) {
		found[f.What] = f
	}
	for _, what := range []string{"processes", "privileges", "guard", "network namespaces"} {
		if f, ok := found[what]; !ok || !f.OK || f.Says == "" {
			t.Errorf("%s: %+v", what, f)
		}
	}
	if !found["cgroups v2"].OK && !found["cgroups v1"].OK {
		t.Errorf("no cgroup: %+v, %+v", found["cgroups v2"], found["cgroups v1"])
	}
	if s := Lacking(); s != "" {
		t.Errorf("root lacks %s", s)
	}
}

func TestExamineWithout(t *testing.T) {
	if f := Examine(filepath.Join(t.TempDir(), "journal"), []string{"/bin/true"})[2]; f.What != "guard" || f.OK {
		t.Errorf("a guard that does not start: %+v", f)
	}
	if f := Examine("/proc/none", self("guard"))[2]; f.OK || !strings.Contains(f.Says, "journal") {
		t.Errorf("a journal that cannot be written: %+v", f)
	}
	if f := (mounts{}).examine(v2); f.OK || f.What != "cgroups v2" {
		t.Errorf("no hierarchy: %+v", f)
	}
	all := ^uint64(0)
	if f := capable(all, 0); !f.OK {
		t.Errorf("%+v", f)
	}
	f := capable(all&^(1<<unix.CAP_KILL), 1000)
	if want := "uid 1000 lacks CAP_KILL (stopping processes of other users): only processes of its own can be frozen"; f.OK || f.Says != want {
		t.Errorf("%+v, want %q", f, want)
	}
}

func TestEffectiveCapabilities(t *testing.T) {
	if n, err := effective([]byte("Name:\tx\nCapPrm:\tff\nCapEff:\t00000000000000a0\nCapBnd:\tff\n")); n != 0xa0 || err != nil {
		t.Errorf("%x, %v", n, err)
	}
	for _, bad := range []string{"", "Name:\tx\n", "\nCapEff:\tx\n"} {
		if n, err := effective([]byte(bad)); err == nil {
			t.Errorf("%q gave %x", bad, n)
		}
	}
}

// Whoever speaks to a server by himself is named, whatever family his socket is of.
func TestBypassing(t *testing.T) {
	needRoot(t)
	for _, listen := range []string{"127.0.0.1:0", "[::1]:0"} {
		v := newVictim(t, listen, 0, nil)
		got, err := Bypassing(v.server, "none")
		if err != nil || !slices.Equal(pidsOf(got), []int{v.pid()}) {
			t.Errorf("%s: %v, %v; expected %d", listen, got, err, v.pid())
		}
		if got, err := Bypassing(v.server, got[0].Comm); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v; expected nobody but those by name", listen, got, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got, err := Bypassing(l.Addr().(*net.TCPAddr).AddrPort(), ""); err != nil || len(got) != 0 {
		t.Errorf("%v, %v of a server without clients", got, err)
	}
}

func TestHexAddr(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90":                         "127.0.0.1:8080",
		"00000000000000000000000001000000:0050": "[::1]:80",
		"0000000000000000FFFF00000100007F:0050": "[::ffff:127.0.0.1]:80",
	} {
		if got, ok := hexAddr(text); !ok || got != netip.MustParseAddrPort(want) {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	for _, bad := range []string{"", "x", "0100007F", "0100007F:x", "010000:0050", "0100007G:0050"} {
		if got, ok := hexAddr(bad); ok {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}
