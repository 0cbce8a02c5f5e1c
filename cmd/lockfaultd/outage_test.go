package main

import (
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/live"
)

// A daemon whose server is gone says so, since when and why, and not that nothing was missed.
func TestServerThatIsGone(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, address, said := sidecar(t, "--admin", "127.0.0.1:0", "--redis", "127.0.0.1:0="+server.Addr().String())
	a := api{t, adminOf(t, said)}
	client := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	state := func() live.Source {
		var s live.Snapshot
		a.ask("GET", "/v1/state", "", 200, &s)
		if len(s.Sources) != 1 {
			t.Fatalf("%+v", s.Sources)
		}
		return s.Sources[0]
	}
	defer client().Close()
	c, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s := state(); !s.Up || !s.Since.IsZero() {
		t.Errorf("while it is there: %+v", s)
	}
	server.Close()
	for range 5 {
		c := client()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a client of a server that is gone was told something")
		}
		c.Close()
	}
	if s := state(); s.Up || s.Since.IsZero() || !strings.Contains(s.Text, "refused") {
		t.Errorf("when it is gone: %+v", s)
	}
	if n := strings.Count(said(), "upstream cannot be reached"); n != 1 {
		t.Errorf("told %d times:\n%s", n, said())
	}
	watch := exec.Command("/proc/self/exe", "watch", "--once", "--admin", a.url)
	watch.Args[0] = "lockfaultd"
	out, err := watch.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "not reached") || !strings.Contains(string(out), "since ") || strings.Contains(string(out), "nothing was missed") {
		t.Errorf("%v: %s", err, out)
	}
}
