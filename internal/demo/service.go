package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

// A service is one that takes a lock, adds one to a row, and gives the lock back; its form is how it is kept
// from harm. They are those of `probe load`, or, with -worker, three processes of that command, which are told the
// same in their environment.
type service struct {
	name      string
	form      string   // for the names of files
	load      []string // flags of probe load
	fenced    string   // FENCED of a worker
	heartbeat bool     // HEARTBEAT of one
}

func services() []service {
	return []service{
		{name: "no fence", form: "unfenced", load: []string{"--fence", "none"}, fenced: "0"},
		{name: "fence checked at the write", form: "write-fenced", load: []string{"--fence", "write", "--broken", "split-fence"}, fenced: "1"},
		{name: "fence claimed at the read", form: "read-claimed", load: []string{"--fence", "claim", "--broken", "split-fence"}, fenced: "claim"},
		{name: "no fence, and a heartbeat", form: "heartbeat", load: []string{"--fence", "none", "--renew", "50ms"}, fenced: "0", heartbeat: true},
	}
}

// times are those of a service's sections.
type times struct{ lease, work, duration time.Duration }

// repeated is what replay and sweep share.
type repeated struct {
	*demo
	worker    string
	heartbeat bool // the worker has one
	times     times
	quick     bool
	form      string
}

func (r *repeated) flags(fs *flag.FlagSet) {
	fs.StringVar(&r.worker, "worker", "", "a command of which three are run, rather than probe load; it is told FENCED, LEASE_MS, WORK_MS and DURATION_S")
	fs.BoolVar(&r.heartbeat, "heartbeat", false, "the worker has a form that renews its lock, with HEARTBEAT=1")
	fs.BoolVar(&r.quick, "quick", false, "the part that make test runs")
	fs.StringVar(&r.form, "service", "", "one service alone: unfenced, write-fenced, read-claimed or heartbeat")
}

func (r *repeated) services() []service {
	return slices.DeleteFunc(services(), func(s service) bool {
		return r.worker != "" && s.heartbeat && !r.heartbeat || r.form != "" && r.form != s.form
	})
}

// command is what is wrapped.
func (r *repeated) command(s service) []string {
	if r.worker != "" {
		return []string{"sh", "-c", "for i in 1 2 3; do " + r.worker + " & done; wait"}
	}
	return append([]string{r.file("probe"), "load", "--lease", r.times.lease.String(), "--work", r.times.work.String(), "--duration", r.times.duration.String()}, s.load...)
}

func (r *repeated) environment(s service) []string {
	return append(os.Environ(), "REDIS_URL="+r.servers.redis, "DATABASE_URL="+r.servers.database,
		"FENCED="+s.fenced, "HEARTBEAT="+map[bool]string{true: "1", false: "0"}[s.heartbeat], fmt.Sprint("LEASE_MS=", r.times.lease.Milliseconds()), fmt.Sprint("WORK_MS=", r.times.work.Milliseconds()), fmt.Sprint("DURATION_S=", r.times.duration.Seconds()))
}

// lockfaultd runs it with the service's declarations, and returns its status and what it printed.
func (r *repeated) lockfaultd(ctx context.Context, s service, command string, flags ...string) (int, string, error) {
	args := append([]string{command, "--lock", "lock:counter=counter.fence", "--counter", "SELECT value FROM counter WHERE id = 1"}, flags...)
	args = append(append(args, "--"), r.command(s)...)
	cmd := exec.CommandContext(ctx, r.file("lockfaultd"), args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Env = r.environment(s)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var x *exec.ExitError
	if err != nil && !errors.As(err, &x) {
		return 0, "", err
	}
	return cmd.ProcessState.ExitCode(), out.String(), ctx.Err()
}

// prepare makes the table, which a worker expects to be there.
func (r *repeated) prepare(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, r.file("probe"), "load", "--duration", "1ms", "--workers", "1")
	cmd.Env = r.environment(service{})
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make table: %w\n%s", err, out)
	}
	return nil
}
