package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/config"
)

// Who goes past a proxy is told, but for probe serve, which has to.
func TestProbeServeMayGoPast(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	dir := t.TempDir()
	// Scripts by the names of what probe does: bash is called probe, and so is the first argument.
	for _, name := range []string{"serve", "load"} {
		text := "exec 3<>/dev/tcp/127.0.0.1/$1\nread\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	connect := func(does string) {
		t.Helper()
		cmd := exec.Command("bash")
		cmd.Args, cmd.Dir = []string{"probe", does, strings.TrimPrefix(server.Addr().String(), "127.0.0.1:")}, dir
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			c.Close()
			in.Close()
			_ = cmd.Wait() // what it read has ended
		})
	}
	p := config.Proxy{Upstream: server.Addr().String()}
	connect("serve")
	if f := bypassed(p); !f.OK || !strings.Contains(f.Says, "but for probe serve, as it should: ") {
		t.Errorf("%+v", f)
	}
	connect("load")
	if f := bypassed(p); f.OK || !strings.Contains(f.Says, "by themselves: ") || strings.Contains(f.Says, ", pid") {
		t.Errorf("%+v", f)
	}
}
