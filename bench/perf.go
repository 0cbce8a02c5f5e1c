package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// record starts perf on a proxy. The returned function ends it and writes two
// texts beside the recorded data: which functions of the program the time was
// spent below, and which it was spent in, the kernel's among them.
func record(dir, workload string, to *way) (stop func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of profiles: %w", err)
	}
	base := filepath.Join(dir, fileName(workload, to.name))
	// A virtual machine has no counter of cycles: the processor's clock is
	// sampled instead.
	cmd := exec.Command("perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-g", "-o", base+".data", "-p", strconv.Itoa(to.proxy.cmd.Process.Pid))
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start perf: %w; on Debian: apt-get install linux-perf", err)
	}
	// Threads that begin before perf has found its own are missed.
	time.Sleep(time.Second)
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait() // perf ends with the status of a signal
		report(base, "below", "--children")
		report(base, "in", "--no-children")
	}, nil
}

// ofProgram marks a function that is not the kernel's.
const ofProgram = "[.]"

// report writes what perf says of the recorded data. It needs the program, which
// is gone when the benchmark ends. Everything is below something: there the
// kernel's functions would only repeat what those that called it say.
func report(base, kind, mode string) {
	text, err := exec.Command("perf", "report", "-i", base+".data", "--stdio", "-g", "none", "--sort", "symbol", "--percent-limit", "0.4", mode).Output()
	if err == nil {
		err = os.WriteFile(base+"-"+kind+".txt", lines(text, kind == "below"), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: write profile:", err)
	}
}

func lines(text []byte, programOnly bool) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		entry := len(bytes.TrimSpace(line)) > 0 && line[0] != '#'
		if entry && (!programOnly || bytes.Contains(line, []byte(ofProgram))) {
			out = append(append(out, bytes.TrimRight(line, " -\n")...), '\n')
		}
	}
	return out
}
