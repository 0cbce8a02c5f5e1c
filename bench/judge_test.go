package main

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/lockfaultd/lockfaultd/report/html"
)

// What a million ops may take to be judged: memory in MiB, and twice and more the
// processor time in which two processors do it in 10 s, for a machine that is busy
// makes each second of it do less. What grows faster than the history takes far more.
const (
	judgeSeconds = 50
	judgeMemory  = 200
)

var judgeTook = regexp.MustCompile(`(\d+\.\d+) s of processor time, at most (\d+) MiB`)

var pageTook = regexp.MustCompile(`a page of (\d+) bytes`)

// TestAMillionOps asks the command, since the race detector would more than double
// what is measured.
func TestAMillionOps(t *testing.T) {
	if testing.Short() {
		t.Skip("judges a million ops, five times")
	}
	program, err := build(t.Context(), t.TempDir(), "bench")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-shape", "mixed"}, {"-shape", "mixed", "-file"}, {"-shape", "one"}, {"-shape", "broken"}, {"-shape", "broken", "-file", "-page"}} {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"judge", "-ops", "1000000"}, args...)...).CombinedOutput()
		m := judgeTook.FindSubmatch(out)
		if err != nil || m == nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		t.Logf("%s", out)
		if m := pageTook.FindSubmatch(out); m != nil {
			if size, _ := strconv.Atoi(string(m[1])); size > html.Limit {
				t.Errorf("%v: a page of %d bytes, at most %d", args, size, html.Limit)
			}
		}
		seconds, _ := strconv.ParseFloat(string(m[1]), 64)
		if memory, _ := strconv.Atoi(string(m[2])); memory > judgeMemory || seconds > judgeSeconds {
			t.Errorf("%v: %v s of processor time and %d MiB; at most %d and %d", args, seconds, memory, judgeSeconds, judgeMemory)
		}
	}
}
