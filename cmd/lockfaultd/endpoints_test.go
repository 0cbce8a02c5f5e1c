package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/config"
)

// A Unix socket that a daemon left when it was killed is no hindrance; one that somebody serves, or another file, is.
func TestListenOnUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	p := config.Proxy{Name: "--redis", Listen: "unix:" + path}
	e, err := listen(p)
	if err != nil {
		t.Fatal(err)
	}
	if got := e.address(); got != p.Listen {
		t.Errorf("listens on %s, want %s", got, p.Listen)
	}
	if _, err := listen(p); err == nil {
		t.Error("two listen there")
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("the first listens no more: %v", err)
	} else {
		c.Close()
	}
	e.ln.(*net.UnixListener).SetUnlinkOnClose(false)
	e.ln.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal("nothing was left:", err)
	}
	if e, err = listen(p); err != nil {
		t.Fatal(err)
	}
	e.ln.Close()
	if _, err := os.Lstat(path); err == nil {
		t.Error("it is left behind")
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listen(p); err == nil {
		t.Error("listens in the place of a file")
	}
	if b, err := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file is %q, %v", b, err)
	}
}
