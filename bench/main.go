// Command bench measures what a hop costs, as ratios.
//
// It starts a Redis and a Postgres of its own, a bare Go proxy that copies
// bytes, and lockfaultd without rules, and runs each workload directly, through
// the copy and through lockfaultd in turn, several interleaved rounds, so that
// whatever else the machine does falls on all of them alike. It prints the
// median rate of each and its ratio to direct.
// The freezer's own latencies are Go benchmarks: go test -bench . ./freezer
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == "copy" {
		fatal(copyBytes(os.Args[2], os.Args[3]))
		return
	}
	rounds := flag.Int("rounds", 5, "interleaved rounds")
	seconds := flag.Int("seconds", 2, "seconds of each pgbench run")
	requests := flag.Int("requests", 100000, "requests of each redis-benchmark run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fatal(run(ctx, *rounds, *seconds, *requests))
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds, seconds, requests int) (err error) {
	dir, err := os.MkdirTemp("", "lockfaultd-bench-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	redis, err := testbed.StartRedis(ctx, dir)
	if err != nil {
		return err
	}
	defer redis.Stop()
	postgres, err := testbed.StartPostgres(ctx, dir)
	if err != nil {
		return err
	}
	defer postgres.Stop()
	ways, stop, err := openWays(ctx, dir, redis.Addr(), postgres.Addr())
	if err != nil {
		return err
	}
	defer stop()
	return measure(ctx, ways, workloads(requests, seconds), rounds)
}

// A way leads to the servers.
type way struct{ name, redis, postgres string }

// openWays starts the two proxies and waits until they answer.
func openWays(ctx context.Context, dir, redis, postgres string) ([]way, func(), error) {
	binary := filepath.Join(dir, "lockfaultd")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/lockfaultd")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, nil, fmt.Errorf("build: %w", err)
	}
	ports, err := freeAddresses(4)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	commands := []*exec.Cmd{
		exec.Command(self, "copy", ports[0], redis),
		exec.Command(self, "copy", ports[1], postgres),
		exec.Command(binary, "--redis", ports[2]+"="+redis, "--postgres", ports[3]+"="+postgres),
	}
	stop := func() {
		for _, c := range commands {
			if c.Process != nil {
				_ = c.Process.Signal(syscall.SIGTERM)
				_ = c.Wait()
			}
		}
	}
	for _, c := range commands {
		if err := c.Start(); err != nil {
			stop()
			return nil, nil, fmt.Errorf("start %s: %w", c.Path, err)
		}
	}
	for _, p := range ports {
		if err := answers(ctx, p); err != nil {
			stop()
			return nil, nil, err
		}
	}
	return []way{{"direct", redis, postgres}, {"copy", ports[0], ports[1]}, {"lockfaultd", ports[2], ports[3]}}, stop, nil
}

func freeAddresses(n int) ([]string, error) {
	var out []string
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		out = append(out, ln.Addr().String())
	}
	return out, nil
}

func answers(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", address, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// measure runs every workload on every way in turn and prints each when done.
func measure(ctx context.Context, ways []way, all []workload, rounds int) error {
	fmt.Printf("%-34s %14s %14s %8s %14s %8s %10s\n", "workload", "direct", "copy", "ratio", "lockfaultd", "ratio", "of copy")
	for _, w := range all {
		rates := make([][]float64, len(ways))
		for range rounds {
			for i, to := range ways {
				r, err := w.run(ctx, to)
				if err != nil {
					return fmt.Errorf("%s %s: %w", w.name, to.name, err)
				}
				rates[i] = append(rates[i], r)
			}
		}
		d, c, l := median(rates[0]), median(rates[1]), median(rates[2])
		fmt.Printf("%-34s %14.0f %14.0f %8.2f %14.0f %8.2f %10.2f\n", w.name, d, c, c/d, l, l/d, l/c)
	}
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// copyBytes is the bare proxy: two goroutines a connection, read and write.
func copyBytes(listen, upstream string) error {
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go relay(c, upstream)
	}
}

func relay(c net.Conn, upstream string) {
	defer c.Close()
	u, err := net.Dial("tcp", upstream)
	if err != nil {
		return
	}
	defer u.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		plainCopy(c, u)
	}()
	plainCopy(u, c)
	<-done
}

// plainCopy reads and writes, without splice: what a proxy that looks at the
// bytes could reach.
func plainCopy(to, from net.Conn) {
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
	if t, ok := to.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
