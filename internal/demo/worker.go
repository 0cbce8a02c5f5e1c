package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A library is one with a service in matrix/clients, written as its users would.
type library struct {
	name   string
	golang string // its package below clients/go
	node   string // else its file below clients/node
}

func libraries() []library {
	return []library{{name: "redsync 4, pgx", golang: "counter"}, {name: "redlock 5, pg", node: "counter.mjs"}}
}

// workerRows are the rows of a service of which three processes run, told by their environment what to do.
func workerRows(name, command string, heartbeat bool) []gateRow {
	rows := []gateRow{
		{form: "unfenced", rule: "write#1=" + nextWrite, want: loss(), quick: true},
		{form: "write-fenced", rule: "write#1=" + nextWrite, want: refusal()},
		{form: "write-fenced", rule: "write#1=" + nextRead, want: loss(), quick: true},
		{form: "read-claimed", service: "; its claim waits", rule: "write#1=" + nextWrite, want: refusal(), quick: true},
		{form: "read-claimed", service: "; its claim waits", rule: "write#1=" + nextRead, want: refusal()},
		{form: "read-claimed", service: "; its write waits", rule: "write#2=" + nextRead, want: refusal()},
	}
	if heartbeat {
		rows = append(rows,
			gateRow{form: "heartbeat", lease: slowLease, rule: "write#1=" + nextWrite, want: loss()},
			gateRow{form: "heartbeat", service: ", which a stall leaves running", lease: slowLease, flag: "--stall-before", rule: "write#1=" + nextWrite + ",timeout=1s", want: renewed(), quick: true})
	}
	for i, g := range rows {
		rows[i].service, rows[i].worker, rows[i].lease = name+g.of().name+g.service, command, cmp.Or(g.lease, lease)
	}
	return rows
}

func (g gateRow) of() service {
	all := services()
	return all[slices.IndexFunc(all, func(s service) bool { return s.form == g.form })]
}

// rowsOfLibraries are those of each library, whose services are made ready.
func (r *repeated) rowsOfLibraries(ctx context.Context) (out []gateRow, err error) {
	for _, l := range libraries() {
		command, err := l.build(ctx, r.dir)
		if err != nil {
			return nil, err
		}
		out = append(out, workerRows(l.name+": ", command, true)...)
	}
	return out, nil
}

// build returns the command of a library's service.
func (l library) build(ctx context.Context, dir string) (string, error) {
	clients, err := filepath.Abs("matrix/clients")
	if err != nil {
		return "", err
	}
	if l.node != "" {
		if _, err := os.Stat(clients + "/node/node_modules/.lock"); err != nil {
			return "", fmt.Errorf("find the libraries for node: %w; run scripts/need.sh matrix", err)
		}
		return "node " + clients + "/node/" + l.node, nil
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "./"+l.golang)
	cmd.Dir, cmd.Stderr = clients+"/go", os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build service with %s: %w", l.name, err)
	}
	return filepath.Join(dir, l.golang), nil
}

// runWorker runs a row of such a service once.
func (r *repeated) runWorker(ctx context.Context, g gateRow) (o outcome, dir string, err error) {
	s := g.of()
	dir = r.file("gate")
	flags := append([]string{"--out", dir}, strings.SplitN(g.fault(), " ", 2)...)
	if s.fenced != "0" {
		flags = append(flags, "--fence", "SELECT fence FROM counter WHERE id = 1")
	}
	if err := errors.Join(os.RemoveAll(dir), r.servers.forget(ctx)); err != nil {
		return o, dir, err
	}
	of := *r
	of.worker, of.times.lease = g.worker, g.lease
	exit, said, err := of.lockfaultd(ctx, s, "run", flags...)
	if err != nil {
		return o, dir, err
	}
	o.exit = exit
	text, err := os.ReadFile(dir + "/report.json")
	if err == nil {
		err = json.Unmarshal(text, &o.report)
	}
	if err == nil {
		o.load, err = reported(said)
	}
	if err != nil {
		return o, dir, fmt.Errorf("read what came of it: %w\n%s", err, said)
	}
	o.load.Lost = o.load.Writes - o.report.Counter.Change
	return o, dir, nil
}

// reported sums what the three processes believe that they did.
func reported(said string) (sum load, err error) {
	n := 0
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		var one load
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return sum, fmt.Errorf("read a worker's summary: %w", err)
		}
		n++
		sum.Writes += one.Writes
		sum.Rejected += one.Rejected
	}
	if n != 3 {
		return sum, errors.New("not all of the three workers have a summary")
	}
	return sum, nil
}
