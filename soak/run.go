package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// Options say how much, and for how long.
type options struct {
	Connections int
	Postgres    int
	Time        time.Duration
	Restarts    int
	Rate        float64
	Stay        time.Duration
	Log         io.Writer
}

// recovery is how long after a restart clients may still lose a connection: it
// takes a while until all have noticed, on a busy machine.
const recovery = 20 * time.Second

// A soaking is one run.
type soaking struct {
	options
	dir     string
	servers []*testbed.Server // two Redis and a Postgres
	daemons []*daemon
	groups  []*group
	downs   []down
}

// A down is a time in which a server was away.
type down struct {
	server   int
	from, to time.Time
}

// covers reports whether the server's absence explains what happened then.
func (d down) covers(t time.Time) bool {
	return t.After(d.from.Add(-time.Second)) && t.Before(d.to.Add(recovery))
}

// explains reports whether the server's absence explains a loss: it came then, or ended a connection of
// before, however late the client came to ask.
func (d down) explains(l loss) bool {
	return d.server == l.Server && (d.covers(l.At) || l.Since.Before(d.to) && l.At.After(d.from))
}

// soak runs to the end and says what was wrong.
func soak(ctx context.Context, o options) (err error) {
	s := &soaking{options: o}
	if s.dir, err = os.MkdirTemp("", "lockfaultd-soak-"); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	defer s.kill()
	if err := os.Chmod(s.dir, 0o755); err != nil { // the user postgres passes
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := s.endure(ctx); err != nil {
		return err
	}
	return s.conclude(ctx)
}

func (s *soaking) begin(ctx context.Context) error {
	for _, start := range []func() (*testbed.Server, error){
		func() (*testbed.Server, error) { return testbed.StartRedis(ctx, s.dir, "--maxclients", "15000") },
		func() (*testbed.Server, error) { return testbed.StartRedis(ctx, s.dir, "--maxclients", "15000") },
		func() (*testbed.Server, error) { return testbed.StartPostgres(ctx, s.dir) },
	} {
		server, err := start()
		if err != nil {
			return err
		}
		s.servers = append(s.servers, server)
	}
	if err := createTable(ctx, s.servers[2].URL()); err != nil {
		return err
	}
	program := filepath.Join(s.dir, "lockfaultd")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/lockfaultd/lockfaultd/cmd/lockfaultd").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	for first := 0; first < s.Connections; {
		d, err := startDaemon(program, filepath.Join(s.dir, "out"+strconv.Itoa(len(s.daemons))), s.servers)
		if err != nil {
			return err
		}
		s.daemons = append(s.daemons, d)
		n := min(d.capacity(), s.Connections-first)
		if err := s.populate(d, first, n); err != nil {
			return err
		}
		first += n
	}
	return nil
}

// groupSize is how many clients share a process.
const groupSize = 1000

// populate starts n clients of a daemon, whose numbers begin at first. Each
// process of them has a source address of its own, so that ports suffice.
func (s *soaking) populate(d *daemon, first, n int) error {
	for n > 0 {
		size := min(n, groupSize)
		g, err := startGroup(orders{
			Addresses: d.addresses, Database: d.database,
			Source: fmt.Sprintf("127.0.1.%d", 1+len(s.groups)),
			First:  first, Clients: size, Postgres: size * s.Postgres / s.Connections,
			Pause: time.Duration(float64(s.Connections) / s.Rate * float64(time.Second)),
			Stay:  s.Stay, Ramp: s.Time / 10,
		})
		if err != nil {
			return err
		}
		s.groups = append(s.groups, g)
		d.groups++
		first, n = first+size, n-size
	}
	return nil
}

// endure lets time pass and starts servers anew meanwhile.
func (s *soaking) endure(ctx context.Context) error {
	order := []int{0, 2, 1}
	began := time.Now()
	for n := range s.Restarts {
		at := s.Time * time.Duration(15+75*n/max(1, s.Restarts)) / 100
		if err := s.sleep(ctx, time.Until(began.Add(at))); err != nil {
			return err
		}
		if err := s.restart(ctx, order[n%len(order)]); err != nil {
			return err
		}
	}
	return s.sleep(ctx, time.Until(began.Add(s.Time)))
}

func (s *soaking) restart(ctx context.Context, server int) error {
	d := down{server: server, from: time.Now()}
	s.say("server %d goes down", server)
	if err := s.servers[server].Restart(ctx); err != nil {
		return err
	}
	d.to = time.Now()
	s.downs = append(s.downs, d)
	return nil
}

// sleep looks after lockfaultd meanwhile.
func (s *soaking) sleep(ctx context.Context, d time.Duration) error {
	end := time.After(d)
	look := time.NewTicker(max(s.Time/20, time.Second))
	defer look.Stop()
	for {
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
		for i, d := range s.daemons {
			u, err := d.usage()
			if err != nil {
				return err
			}
			s.say("lockfaultd %d: %s", i, u)
		}
	}
}

func (s *soaking) say(format string, args ...any) {
	fmt.Fprintf(s.Log, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// conclude ends the clients, then the daemons, and judges.
func (s *soaking) conclude(ctx context.Context) error {
	var sum tally
	var errs []error
	for _, g := range s.groups {
		g.stop()
	}
	for _, g := range s.groups {
		t, err := g.result()
		errs = append(errs, err)
		sum.add(t)
	}
	s.say("%d actions on %d connections, %d lost", sum.Actions, sum.Connections, len(sum.Losses))
	for _, w := range sum.Wrong {
		errs = append(errs, errors.New(w))
	}
	errs = append(errs, s.unexplained(sum.Losses)...)
	if want := s.Connections; sum.Peak < want*95/100 {
		errs = append(errs, fmt.Errorf("%d clients were connected at a time, expected some %d", sum.Peak, want))
	}
	for i, d := range s.daemons {
		text, err := d.end(ctx, s.downs)
		s.say("lockfaultd %d: %s", i, text)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// unexplained lists the connections that were lost while their server was there.
func (s *soaking) unexplained(losses []loss) []error {
	var errs []error
	for _, l := range losses {
		if !slices.ContainsFunc(s.downs, func(d down) bool { return d.explains(l) }) {
			errs = append(errs, fmt.Errorf("%s: server %d was there, and a connection to it was lost: %s", l.At.Format(time.TimeOnly), l.Server, l.Why))
		}
	}
	if n := len(errs); n > 10 {
		errs = append(errs[:10], fmt.Errorf("and %d more", n-10))
	}
	return errs
}

// kill ends what is still there.
func (s *soaking) kill() {
	for _, g := range s.groups {
		_ = g.cmd.Process.Kill()
	}
	for _, d := range s.daemons {
		_ = d.cmd.Process.Kill()
	}
	for _, server := range s.servers {
		server.Stop()
	}
}

// A group is a process of clients.
type group struct {
	cmd    *exec.Cmd
	in     io.Closer
	out    io.ReadCloser
	result func() (tally, error)
}

func startGroup(o orders) (*group, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "clients", string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start clients: %w", err)
	}
	g := &group{cmd: cmd, in: in, out: out}
	g.result = func() (t tally, err error) {
		err = json.NewDecoder(out).Decode(&t)
		return t, errors.Join(err, cmd.Wait())
	}
	return g, nil
}

func (g *group) stop() { g.in.Close() }
