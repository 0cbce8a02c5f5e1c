package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// Ten thousand clients for two minutes, while the servers are started anew five
// times: no reply is wrong, no connection is lost without a reason, and in the end
// everything has been given back. By hand, make soak does it for an hour.
//
// The program is built for it: neither ten thousand clients nor what they go
// through would fit under the race detector.
func TestSoak(t *testing.T) {
	args := []string{"-time", "2m", "-rate", "1500", "-stay", "4m"}
	if testing.Short() {
		args = []string{"-connections", "200", "-postgres", "40", "-time", "6s", "-restarts", "2", "-rate", "400", "-stay", "3s"}
	}
	testbed.Redis(t).Stop() // skips where there is none
	program := filepath.Join(t.TempDir(), "soak")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
