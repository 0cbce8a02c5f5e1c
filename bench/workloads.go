package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// A workload measures a way once and returns a rate, in requests a second.
type workload struct {
	name string
	run  func(ctx context.Context, to way) (float64, error)
}

func workloads(requests, seconds int) []workload {
	n := strconv.Itoa(requests)
	return []workload{
		redisLoad("redis GET, 50 clients", "get", "-c", "50", "-n", n),
		redisLoad("redis SET, 50 clients", "set", "-c", "50", "-n", n),
		redisLoad("redis GET, 50 clients, pipeline 16", "get", "-c", "50", "-P", "16", "-n", strconv.Itoa(5*requests)),
		redisLoad("redis SET, 50 clients, pipeline 16", "set", "-c", "50", "-P", "16", "-n", strconv.Itoa(5*requests)),
		redisLoad("redis GET, 1 client", "get", "-c", "1", "-n", strconv.Itoa(requests/4)),
		pgLoad("pgbench -S simple, 8 clients", "simple", seconds),
		pgLoad("pgbench -S prepared, 8 clients", "prepared", seconds),
	}
}

func redisLoad(name, test string, args ...string) workload {
	return workload{name, func(ctx context.Context, to way) (float64, error) {
		host, port, err := net.SplitHostPort(to.redis)
		if err != nil {
			return 0, err
		}
		cmd := exec.CommandContext(ctx, "redis-benchmark", append([]string{"-h", host, "-p", port, "--csv", "-t", test}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return 0, err
		}
		rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
		if err != nil || len(rows) == 0 {
			return 0, fmt.Errorf("read redis-benchmark output %q: %w", out, err)
		}
		return strconv.ParseFloat(rows[len(rows)-1][1], 64)
	}}
}

var tps = regexp.MustCompile(`tps = ([0-9.]+)`)

func pgLoad(name, mode string, seconds int) workload {
	filled := false
	return workload{name, func(ctx context.Context, to way) (float64, error) {
		if !filled {
			if _, err := pgbench(ctx, to, "-i", "-q", "-s", "1"); err != nil {
				return 0, err
			}
			filled = true
		}
		out, err := pgbench(ctx, to, "-S", "-n", "-c", "8", "-M", mode, "-T", strconv.Itoa(seconds))
		if err != nil {
			return 0, err
		}
		m := tps.FindStringSubmatch(out)
		if m == nil {
			return 0, fmt.Errorf("no tps in %q", out)
		}
		return strconv.ParseFloat(m[1], 64)
	}}
}

func pgbench(ctx context.Context, to way, args ...string) (string, error) {
	host, port, err := net.SplitHostPort(to.postgres)
	if err != nil {
		return "", err
	}
	program := "pgbench"
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench"); len(found) > 0 {
		program = found[len(found)-1]
	}
	cmd := exec.CommandContext(ctx, program, append(args, "-h", host, "-p", port, "-U", "postgres", "postgres")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	return string(out), nil
}
