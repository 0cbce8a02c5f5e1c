package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "clients" { // this binary is the clients' too
		if err := clients(os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// log writes lines to a test's log.
type log struct{ t *testing.T }

func (l log) Write(p []byte) (int, error) {
	l.t.Logf("%s", p)
	return len(p), nil
}

// Ten thousand clients for two minutes, while the servers are started anew five
// times: no reply is wrong, no connection is lost without a reason, and in the end
// everything has been given back. By hand, make soak does it for an hour.
func TestSoak(t *testing.T) {
	o := options{Connections: 10000, Postgres: 180, Time: 2 * time.Minute, Restarts: 5, Rate: 1500, Stay: 4 * time.Minute, Log: log{t}}
	if testing.Short() {
		o.Connections, o.Postgres, o.Time, o.Restarts, o.Rate, o.Stay = 200, 40, 6*time.Second, 2, 400, 3*time.Second
	}
	testbed.Redis(t).Stop() // skips where there is none
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip(err)
	}
	if err := soak(t.Context(), o); err != nil {
		t.Error(err)
	}
}
