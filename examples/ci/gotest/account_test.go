// Package ci has the account service, paused at the worst moment, as tests of go test.
//
// Needs lockfaultd in PATH, REDIS_URL and DATABASE_URL. Run it with: go test .
package ci

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// underLockfaultd runs three processes of the service, one of them paused, and returns
// the exit status that says what it came to.
func underLockfaultd(t *testing.T, env []string, flags ...string) int {
	t.Helper()
	args := []string{"run", "--out", t.TempDir(), "--timeout", "1m",
		"--lock", "lock:account:1=account.fence",
		"--counter", "SELECT balance FROM account WHERE id = 1",
		"--freeze-before", "write(account)#5=until:lease-expired+next-write"}
	args = append(append(args, flags...), "--", "sh", "-c", "for i in 1 2 3; do "+build(t)+" & done; wait")
	cmd := exec.Command("lockfaultd", args...)
	cmd.Env = append(append(os.Environ(), "LEASE=300ms", "DURATION=2s"), env...)
	said, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%s", said) // which go test shows of a test that fails
	return cmd.ProcessState.ExitCode()
}

func TestAPausedHolderLosesNothing(t *testing.T) {
	if exit := underLockfaultd(t, []string{"FENCE=claim"}); exit != 0 {
		t.Errorf("lockfaultd ended with %d", exit)
	}
}

// Without its fence the service loses an update. A test that cannot fail shows nothing.
func TestThePauseWouldBeNoticed(t *testing.T) {
	if exit := underLockfaultd(t, []string{"FENCE=none"}, "--expect", "lost-update"); exit != 0 {
		t.Errorf("lockfaultd ended with %d", exit)
	}
}

// build makes the service, and has it make its table.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "account")
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = "../../go"
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, said)
	}
	// Its table is there before, as that of a service mostly is.
	cmd = exec.Command(program)
	cmd.Env = append(os.Environ(), "DURATION=0s")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return program
}
