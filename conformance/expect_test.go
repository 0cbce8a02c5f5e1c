package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/recorder"
)

const (
	syncLine    = `level=WARN msg="desync: passed on unread from here on" session=974 proxy=redis reason="request at byte 0: SYNC: the replication stream is passed on unread"`
	garbageLine = `level=WARN msg="desync: passed on unread from here on" session=29 proxy=redis reason="request at byte 23: length \"b\" of argument 2, expected 0 to 536870912 (byte 44)"`
	strangeLine = `level=WARN msg="desync: passed on unread from here on" session=30 proxy=redis reason="reply at byte 23: it answers no request"`
	floodLine   = `time=t level=WARN msg="desync: passed on unread from here on" session=11 proxy=pg reason="at byte 68414067: client's message 'D': 3145728 requests are unanswered, with 1048576 KiB of ops and names, expected fewer"`
	refusedLine = `level=WARN msg="client refused" proxy=redis client=127.0.0.1:9 err=EOF`
	errorLine   = `level=ERROR msg="upstream cannot be reached" proxy=redis upstream=127.0.0.1:1 err="connection refused"`
)

// saw returns what a chain reads of a log and a history.
func saw(t *testing.T, log, history string) trace {
	t.Helper()
	dir := t.TempDir()
	c := chain{log: filepath.Join(dir, "lockfaultd.log"), out: dir}
	for file, text := range map[string]string{c.log: log, filepath.Join(dir, "history.jsonl"): history} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tr := trace{report: recorder.Report{Conns: 1, Equal: 1}}
	if err := c.readLog(&tr); err != nil {
		t.Fatal(err)
	}
	if err := c.readHistory(&tr); err != nil {
		t.Fatal(err)
	}
	return tr
}

// What lockfaultd says of itself fails a run, with the line, unless the suite
// calls for it.
func TestLogFailsARun(t *testing.T) {
	for _, tt := range []struct {
		name, suite, log, history string
		wrong                     string // "": nothing
	}{
		{"nothing", "isolation", "lockfaultd: no rule is armed\nlevel=INFO msg=\"session ended\"\n", `{"type":"op"}` + "\n", ""},
		{"a refused client", "isolation", refusedLine + "\n", "", ""},
		{"a desync", "isolation", strangeLine + "\n", "", "desync: " + strangeLine},
		{"a desync that another suite calls for", "pgx", garbageLine + "\n", "", "desync: " + garbageLine},
		{"those that the suite calls for", "redis", strings.Repeat(syncLine+"\n", 40) + strings.Repeat(garbageLine+"\n", 11), "", ""},
		{"one too many", "redis", strings.Repeat(garbageLine+"\n", 12), "", "desync, expected 11 at most: " + garbageLine},
		{"another among them", "redis", syncLine + "\n" + strangeLine + "\n", "", "desync: " + strangeLine},
		{"an error", "redis", errorLine + "\n", "", "error: " + errorLine},
		{"a panic", "redis", "panic: runtime error\n\ngoroutine 1 [running]:\n", "", "panic: panic: runtime error"},
		{"a gap in the history", "redis", "", `{"type":"op"}` + "\n" + `{"type":"gap","lost":3}` + "\n", `gap: {"type":"gap","lost":3}`},
		{"a gap that a flood explains", "libpq_pipeline", "", `{"type":"gap","lost":3,"why":"the disk was slower than the traffic"}` + "\n", ""},
		{"a flood that nobody answers", "libpq_pipeline", floodLine + "\n", "", ""},
		{"a flood in another suite", "pgx", floodLine + "\n", "", "desync: " + floodLine},
		{"a gap that the log tells of", "redis", "lockfaultd: the history lacks 3 entries, since\n", "", "gap: lockfaultd: the history lacks 3 entries, since"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var o options
			if err := o.choose(tt.suite, "plain", nil); err != nil {
				t.Fatal(err)
			}
			v := verdict{suite: o.suites[0], runs: map[way]results{plain: {"a": passed}}, trace: map[way]trace{plain: saw(t, tt.log, tt.history)}}
			wrong, _ := v.suite.judge(v.trace[plain].complaints)
			if got := strings.Join(wrong, "\n"); got != tt.wrong {
				t.Errorf("wrong: %q, want %q", got, tt.wrong)
			}
			if v.differs() != (tt.wrong != "") {
				t.Errorf("fails: %v", v.differs())
			}
			var out strings.Builder
			row(&out, &v, plain, 0)
			if strings.Contains(out.String(), "complaint: "+tt.wrong) != (tt.wrong != "") {
				t.Errorf("the table does not show it:\n%s", out.String())
			}
		})
	}
}

// The table says what was expected, how often it came and why.
func TestTableShowsWhatIsExpected(t *testing.T) {
	var o options
	if err := o.choose("redis", "plain", nil); err != nil {
		t.Fatal(err)
	}
	v := verdict{suite: o.suites[0], runs: map[way]results{plain: {}}, trace: map[way]trace{plain: saw(t, syncLine+"\n"+garbageLine+"\n"+garbageLine+"\n", "")}}
	var out strings.Builder
	row(&out, &v, plain, 0)
	for _, want := range []string{"expected: 1 times desync: a test reads", "expected: 2 times desync, at most 11: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
