package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// record starts perf on a proxy. The returned function ends it and writes,
// beside the recorded data, what perf makes of it as text.
func record(dir, workload string, to *way) (stop func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of profiles: %w", err)
	}
	base := filepath.Join(dir, fileName(workload, to.name))
	// A virtual machine has no cycle counter: the clock of the processor is
	// sampled instead.
	cmd := exec.Command("perf", "record", "-q", "-e", "cpu-clock", "-F", "997", "-g", "-o", base+".data", "-p", strconv.Itoa(to.proxy.cmd.Process.Pid))
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start perf: %w; on Debian: apt-get install linux-perf", err)
	}
	return func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait() // perf ends with the status of a signal
		text, err := exec.Command("perf", "report", "-i", base+".data", "--no-children", "-g", "none", "--percent-limit", "0.5", "--stdio").Output()
		if err == nil {
			err = os.WriteFile(base+".txt", text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench: write profile:", err)
		}
	}, nil
}
