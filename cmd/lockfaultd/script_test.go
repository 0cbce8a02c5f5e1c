package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockfaultd/lockfaultd/freezer"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("LOCKFAULT_CLIENT"); address != "" {
		if err := impatient(address, freezes); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The guard of a daemon inside this test is this binary too.
	if len(os.Args) == 2 && os.Args[1] == "guard" {
		if err := freezer.RunGuard(); err != nil {
			os.Exit(1)
		}
		return
	}
	clients := map[string]func(redisURL string) error{scriptedClient: scripted, releaser: releasing}
	if len(os.Args) == 2 && clients[os.Args[1]] != nil {
		if err := clients[os.Args[1]](os.Getenv("REDIS_URL")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testscript.Main(m, map[string]func(){
		"lockfaultd": func() { os.Exit(Main(os.Args, os.Stdout, os.Stderr)) },
		shower: func() {
			fmt.Fprintln(os.Stderr, showing())
			os.Exit(1)
		},
	})
}

// TestScripts runs the command as a user types it. Scripts below servers/ have
// a real Redis and Postgres in REDIS_URL and DATABASE_URL.
func TestScripts(t *testing.T) {
	testscript.Run(t, params("testdata/script", nil))
}

func TestScriptsWithServers(t *testing.T) {
	redis, postgres := testbed.Redis(t), testbed.Postgres(t)
	programs := build(t)
	testscript.Run(t, params("testdata/servers", func(e *testscript.Env) error {
		host, port, err := net.SplitHostPort(redis.Addr())
		e.Setenv("REDIS_URL", "redis://"+redis.Addr()+"/0")
		e.Setenv("REDIS_HOST", host)
		e.Setenv("REDIS_PORT", port)
		e.Setenv("REDIS_ADDR", redis.Addr())
		e.Setenv("DATABASE_URL", postgres.URL())
		e.Setenv("PGURL", postgres.URL())
		e.Setenv("PATH", programs+":"+e.Getenv("PATH"))
		return err
	}))
}

// Scripts below tls/ have servers that want TLS, and what it takes to be trusted.
func TestScriptsWithTLS(t *testing.T) {
	a := testbed.NewAuthority(t, t.TempDir())
	cert, key := a.Issue(t, "server", "127.0.0.1", "localhost")
	_, redis := testbed.SecureRedis(t, cert, key, a.File, "no")
	postgres := testbed.Postgres(t)
	testbed.SecurePostgres(t, postgres, cert, key, a.File)
	testscript.Run(t, params("testdata/tls", func(e *testscript.Env) error {
		for name, value := range map[string]string{
			"CA": a.File, "CERT": cert, "KEY": key, "PGADDR": postgres.Addr(), "REDIS_ADDR": redis, "PGPASSWORD": testbed.Password,
		} {
			e.Setenv(name, value)
		}
		return nil
	}))
}

// build makes the service under test and returns its folder.
func build(t *testing.T) string {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "../probe").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return dir
}

func params(dir string, setup func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		Setup:               setup,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": status_, "samejudgement": sameJudgement, "fits": fits},
	}
}

// status_ runs a command and wants one exit status: status 2 lockfaultd --nope.
func status_(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command [args]")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("status: %v", err)
	}
	err = ts.Exec(args[1], args[2:]...)
	if got := exitStatus(err); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
