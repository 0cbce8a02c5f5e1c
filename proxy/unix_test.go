package proxy

import (
	"net"
	"path/filepath"
	"testing"
)

// connectedUnix returns both ends of a connection of a Unix socket.
func connectedUnix(t *testing.T) (client, accepted *net.UnixConn) {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); a.Close() })
	return c.(*net.UnixConn), a.(*net.UnixConn)
}

// What a client of a Unix socket has not read is known, as of one of TCP; its end is an end, and no reset.
func TestEndsOfUnixSockets(t *testing.T) {
	client, accepted := connectedUnix(t)
	if unheard(accepted) || hungUp(accepted) || told(accepted) {
		t.Error("it is new, and has something to hear, has hung up or was reset")
	}
	if _, err := accepted.Write([]byte("four")); err != nil {
		t.Fatal(err)
	}
	if !unheard(accepted) {
		t.Error("what is in its queue counts as heard")
	}
	drain(t, client, 4)
	if unheard(accepted) {
		t.Error("what it has read counts as unheard")
	}
	if _, err := client.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	if got := string(waiting(accepted)); got != "more" {
		t.Errorf("waiting: %q", got)
	}
	drain(t, accepted, 4)
	if _, err := accepted.Write([]byte("last")); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if !hungUp(accepted) || told(accepted) || unheard(accepted) {
		t.Errorf("closed: hung up %v, reset %v, unheard %v", hungUp(accepted), told(accepted), unheard(accepted))
	}
}
