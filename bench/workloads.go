package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A workload sends the same number of requests on every way. What the load tool
// is asked for depends on nothing else.
type workload struct {
	name   string
	share  float64 // of -requests
	budget float64 // most processor time, as a ratio to copy's
	bytes  int     // of one request's payload; 0: small, and counted by request
	run    func(ctx context.Context, to *way, requests int) (result, error)
}

// A result is what a load tool says of one run; 0 is what it does not say.
type result struct {
	requests int
	rate     float64 // requests a second
	p50, p99 float64 // ms
}

const (
	mebibyte = 1 << 20
	rowBytes = 1000
	copyRows = 200_000 // 200 MB
)

// budgets of docs/performance.md
const (
	usual   = 1.15
	batched = 1.25
)

var workloads = []workload{
	{"redis GET 50c", 1, usual, 0, redisLoad(50, 1, "GET", "bench:small")},
	{"redis SET 50c", 1, usual, 0, redisLoad(50, 1, "SET", "bench:small", "xxx")},
	{"redis GET 50c P16", 8, batched, 0, redisLoad(50, 16, "GET", "bench:small")},
	{"redis SET 50c P16", 8, batched, 0, redisLoad(50, 16, "SET", "bench:small", "xxx")},
	{"redis GET 1c", 0.2, usual, 0, redisLoad(1, 1, "GET", "bench:small")},
	{"redis GET 1MB 8c", 0.02, usual, mebibyte, redisLoad(8, 1, "GET", "bench:big")},
	{"redis SET 1MB 8c", 0.02, usual, mebibyte, bigSet},
	{"pgbench simple 8c", 0.4, usual, 0, pgLoad(8, "simple")},
	{"pgbench prepared 8c", 0.4, batched, 0, pgLoad(8, "prepared")},
	{"pgbench simple 1c", 0.08, usual, 0, pgLoad(1, "simple")},
	{"COPY OUT 200MB", 0, usual, rowBytes, copyOut},
}

// fill puts in what the workloads read.
func fill(ctx context.Context, w *way) error {
	for key, size := range map[string]int{"bench:small": 3, "bench:big": mebibyte} {
		if err := redisSet(ctx, w.redis, key, size); err != nil {
			return err
		}
	}
	_, err := pgbench(ctx, w, "", "-i", "-q", "-s", "1")
	return err
}

func redisSet(ctx context.Context, address, key string, size int) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "redis-cli", "-h", host, "-p", port, "-x", "SET", key)
	cmd.Stdin = bytes.NewReader(bytes.Repeat([]byte("x"), size))
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "OK" {
		return fmt.Errorf("redis-cli SET %s: %w %s", key, err, out)
	}
	return nil
}

func redisLoad(clients, pipeline int, command ...string) func(context.Context, *way, int) (result, error) {
	return func(ctx context.Context, to *way, requests int) (result, error) {
		args := []string{"-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipeline), "-n", strconv.Itoa(requests)}
		return redisBenchmark(ctx, to.redis, requests, append(args, command...))
	}
}

// bigSet uses the tool's own SET test, which makes a value of a size.
func bigSet(ctx context.Context, to *way, requests int) (result, error) {
	return redisBenchmark(ctx, to.redis, requests, []string{"-c", "8", "-n", strconv.Itoa(requests), "-d", strconv.Itoa(mebibyte), "-t", "set"})
}

func redisBenchmark(ctx context.Context, address string, requests int, args []string) (result, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return result{}, err
	}
	cmd := exec.CommandContext(ctx, "redis-benchmark", append([]string{"-h", host, "-p", port, "--csv"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("redis-benchmark: %w", err)
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[1]) != 8 {
		return result{}, fmt.Errorf("read output of redis-benchmark %q: %w", out, err)
	}
	r := result{requests: requests}
	// test, rps, avg, min, p50, p95, p99, max
	for _, f := range []struct {
		to     *float64
		column int
	}{{&r.rate, 1}, {&r.p50, 4}, {&r.p99, 6}} {
		if *f.to, err = strconv.ParseFloat(rows[1][f.column], 64); err != nil {
			return result{}, fmt.Errorf("read output of redis-benchmark: %w", err)
		}
	}
	return r, nil
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

func pgLoad(clients int, mode string) func(context.Context, *way, int) (result, error) {
	return func(ctx context.Context, to *way, requests int) (result, error) {
		dir, err := os.MkdirTemp("", "lockfaultd-bench-log-")
		if err != nil {
			return result{}, fmt.Errorf("make folder: %w", err)
		}
		defer os.RemoveAll(dir)
		each := requests / clients
		out, err := pgbench(ctx, to, dir, "-S", "-n", "-c", strconv.Itoa(clients), "-M", mode,
			"-t", strconv.Itoa(each), "-l", "--sampling-rate=0.2")
		if err != nil {
			return result{}, err
		}
		m := tps.FindStringSubmatch(out)
		if m == nil {
			return result{}, fmt.Errorf("no tps in %q", out)
		}
		r := result{requests: each * clients}
		if r.rate, err = strconv.ParseFloat(m[1], 64); err != nil {
			return result{}, fmt.Errorf("read output of pgbench: %w", err)
		}
		r.p50, r.p99, err = latencies(dir)
		return r, err
	}
}

// latencies reads pgbench's log of transactions: client, number, microseconds ...
func latencies(dir string) (p50, p99 float64, err error) {
	files, _ := filepath.Glob(filepath.Join(dir, "pgbench_log.*")) // the pattern is well-formed
	var all []float64
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return 0, 0, fmt.Errorf("read log of pgbench: %w", err)
		}
		for line := range strings.Lines(string(b)) {
			var client, number int
			var us float64
			if _, err := fmt.Sscan(line, &client, &number, &us); err != nil {
				return 0, 0, fmt.Errorf("read log of pgbench: %w", err)
			}
			all = append(all, us/1000)
		}
	}
	if len(all) == 0 {
		return 0, 0, fmt.Errorf("no transactions in the log of pgbench")
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], nil
}

func pgbench(ctx context.Context, to *way, dir string, args ...string) (string, error) {
	host, port, err := net.SplitHostPort(to.postgres)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, postgresProgram("pgbench"), append(args, "-h", host, "-p", port, "-U", "postgres", "postgres")...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PGSSLMODE=disable")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	return string(out), nil
}

// postgresProgram finds a program in Debian's folders first: what is in PATH
// may be a wrapper.
func postgresProgram(name string) string {
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1]
	}
	return name
}

// copyOut lets psql fetch rows and counts the rows as requests.
func copyOut(ctx context.Context, to *way, _ int) (result, error) {
	host, port, err := net.SplitHostPort(to.postgres)
	if err != nil {
		return result{}, err
	}
	sql := fmt.Sprintf("COPY (SELECT repeat('x', %d) FROM generate_series(1, %d)) TO STDOUT", rowBytes-1, copyRows)
	cmd := exec.CommandContext(ctx, postgresProgram("psql"), "-X", "-q", "-h", host, "-p", port, "-U", "postgres", "-c", sql, "postgres")
	cmd.Env = append(os.Environ(), "PGSSLMODE=disable")
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("psql: %w", err)
	}
	return result{requests: copyRows, rate: copyRows / time.Since(start).Seconds()}, nil
}
