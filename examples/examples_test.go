package examples

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/probe"
	"github.com/lockfaultd/lockfaultd/probe/check"
)

// believed is what the examples print, whatever they call their amount.
type believed struct {
	Units      int64 `json:"units"`
	Cents      int64 `json:"cents"`
	Seats      int64 `json:"seats"`
	TurnedAway int   `json:"turned_away"`
	Errors     int   `json:"errors"`
}

func TestPythonLosesNothingWithoutFaults(t *testing.T) {
	needPython(t)
	losesNothing(t, "SELECT reserved FROM stock WHERE id = 1", fences, python, "python/stock.py")
}

func TestTasksLoseNothingWithoutFaults(t *testing.T) {
	needPython(t)
	losesNothing(t, "SELECT sum(ordered) FROM customers", []string{"GUARD=none", "GUARD=version"}, python, "python/orders.py")
}

func TestThreadsLoseNothingWithoutFaults(t *testing.T) {
	needPython(t)
	losesNothing(t, "SELECT taken FROM seats WHERE id = 1",
		[]string{"LOCK=session", "LOCK=transaction", "LOCK=row", "LOCK=lease"}, python, "python/seats.py")
}

const python = "/usr/bin/python3"

func needPython(t *testing.T) {
	t.Helper()
	if err := exec.Command(python, "-c", "import redis.asyncio, asyncpg, psycopg").Run(); err != nil {
		missing := t.Skipf
		if os.Getenv("CI") != "" {
			missing = t.Fatalf
		}
		missing("%s lacks a module (Debian: python3-redis python3-asyncpg python3-psycopg): %v", python, err)
	}
}

func TestGoLosesNothingWithoutFaults(t *testing.T) {
	program := filepath.Join(t.TempDir(), "account")
	if out, err := exec.Command("go", "build", "-o", program, "./go").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	losesNothing(t, "SELECT balance FROM account WHERE id = 1", fences, program)
}

var fences = []string{"FENCE=none", "FENCE=write", "FENCE=claim"}

// losesNothing runs the command in each of its forms, a setting in its environment.
func losesNothing(t *testing.T, counter string, forms []string, command ...string) {
	inv, err := probe.ParseInvariant(probe.CounterKind, counter)
	if err != nil {
		t.Fatal(err)
	}
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	for _, form := range forms {
		t.Run(form, func(t *testing.T) {
			env := append(os.Environ(), "REDIS_URL="+red.URL(), "DATABASE_URL="+pg.URL(), form,
				"LEASE_MS=5000", "LEASE=5s", "CARRIER_MS=5", "BANK_MS=5", "PAYMENT_MS=5", "CHECK=5ms", "DURATION_S=0.7", "DURATION=700ms")
			before := value(t, pg.URL(), inv)
			sum := runThree(t, env, command)
			change := value(t, pg.URL(), inv) - before
			if sum.Errors != 0 || sum.TurnedAway != 0 || sum.Units+sum.Cents+sum.Seats != change || change == 0 {
				t.Errorf("they believe %+v, the row rose by %d", sum, change)
			}
		})
	}
}

func value(t *testing.T, url string, inv check.Invariant) int64 {
	t.Helper()
	v, _, err := probe.ReadInvariant(t.Context(), url, inv)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func runThree(t *testing.T, env, command []string) (sum believed) {
	t.Helper()
	var all sync.WaitGroup
	said, errs := make([]believed, 3), make([]error, 3)
	for i := range said {
		all.Go(func() { said[i], errs[i] = runOne(env, command) })
	}
	all.Wait()
	for i, b := range said {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		sum.Units += b.Units
		sum.Cents += b.Cents
		sum.Seats += b.Seats
		sum.TurnedAway += b.TurnedAway
		sum.Errors += b.Errors
	}
	return sum
}

func runOne(env, command []string) (b believed, err error) {
	var out, log bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &log
	if err := cmd.Run(); err != nil {
		return b, fmt.Errorf("run %s: %w\n%s", command[0], err, log.String())
	}
	return b, json.Unmarshal(out.Bytes(), &b)
}
