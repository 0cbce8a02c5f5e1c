package main

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"probe": main})
}

func TestScripts(t *testing.T) {
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": exitStatus, "record": record},
		Setup: func(e *testscript.Env) error {
			e.Setenv("REDIS_URL", red.URL())
			e.Setenv("DATABASE_URL", pg.URL())
			return nil
		},
	})
}

// exitStatus is `status N command args...`: the command must end with status N.
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var ended interface{ ExitCode() int }
	if errors.As(err, &ended) {
		got = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%v: status %d, want %d", args[1:], got, want)
	}
}

// A worker outlives nobody: the end of its stdin is the end of its work, which
// the interrupted load of package probe shows; here only that it wants an order.
func TestWorkerWithoutOrderFails(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if got := run([]string{"probe", workerName}, null, out, out); got != statusFailed {
		t.Errorf("status %d, want %d", got, statusFailed)
	}
}
