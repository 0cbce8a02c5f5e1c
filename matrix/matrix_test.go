package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

func TestDocsHaveTheTable(t *testing.T) {
	doc, err := os.ReadFile("../docs/matrix.md")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	writeMarkdown(&want)
	if !strings.Contains(string(doc), want.String()) {
		t.Errorf("docs/matrix.md has not the table that `go run ./matrix -markdown` prints:\n%s", want.String())
	}
}

func TestEachLibraryHasAService(t *testing.T) {
	for _, l := range subjects() {
		file := "clients/go/" + l.golang + "/main.go"
		if l.golang == "" {
			file = "clients/" + l.argv[1]
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", l.name, err)
		}
		for _, r := range l.quick {
			if _, has := l.rows[r]; !has {
				t.Errorf("%s: make test runs a row that it has not: %s", l.name, r)
			}
		}
	}
}

// The versions that are told are those that are installed.
func TestVersionsAreTrue(t *testing.T) {
	for file, like := range map[string]*regexp.Regexp{
		"clients/go/go.mod":         regexp.MustCompile(`(redsync|redislock|rueidis|go-redis|asynq|river|migrate|goose|pgx)(?:/v\d+)? v([^\s]+)\n`),
		"clients/node/package.json": regexp.MustCompile(`"(redlock|ioredis|bullmq)": "([^"]+)"`),
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range like.FindAllStringSubmatch(string(b), -1) {
			told := regexp.MustCompile(`(?:^|[ /])` + regexp.QuoteMeta(m[1]) + `(?:lock)? (\d[^ ,]*)`)
			for _, l := range subjects() {
				if v := told.FindStringSubmatch(l.versions); v != nil && strings.Trim(v[1], ",") != m[2] {
					t.Errorf("%s is said to be run with %s %s; %s has %s", l.name, m[1], v[1], file, m[2])
				}
			}
		}
	}
}

func TestTally(t *testing.T) {
	lib := subject{keys: "lock:*"}
	token := lock.Value{Hash: "00aa"}
	c, evidence := tally(lib, []*lock.Op{
		{Kind: lock.Acquire, Key: "lock:a", Outcome: lock.Granted, Evidence: lock.FromMonitor},
		{Kind: lock.Acquire, Key: "lock:a", Outcome: lock.Refused},
		{Kind: lock.Acquire, Key: "other", Outcome: lock.Granted},
		{Kind: lock.Renew, Key: "lock:a", Outcome: lock.Done},
		{Kind: lock.Renew, Key: "lock:a", Outcome: lock.Failed},
		{Kind: lock.Release, Key: "lock:a", Outcome: lock.NotHeld},
		{Kind: lock.Release, Key: "lock:a", Outcome: lock.Done, Depth: 1},
		{Kind: lock.Store, Key: "lock:b", Outcome: lock.Done, Token: token},
		{Kind: lock.Store, Key: "lock:c", Outcome: lock.Done, Token: token},
		{Kind: lock.Release, Key: "lock:b", Outcome: lock.Done, Token: token, Guarded: true},
	})
	want := counts{Granted: 2, Refused: 1, Renewed: 1, Unreleased: 1, Released: 1}
	if c != want || evidence != "wire 5 monitor 1" {
		t.Errorf("got %s (%s), want %s", c, evidence, want)
	}
}

func TestCleanRowsAreEqual(t *testing.T) {
	said := counts{Granted: 2, Refused: 3, Released: 2, Wrote: 2}
	for _, c := range []struct {
		name  string
		lib   subject
		seen  counts
		wrong int
	}{
		{"as counted", subject{}, counts{Granted: 2, Refused: 3, Released: 2}, 0},
		{"a grant too many", subject{}, counts{Granted: 3, Refused: 3, Released: 2}, 1},
		{"a renewal from nowhere", subject{}, counts{Granted: 2, Refused: 3, Renewed: 1, Released: 2}, 1},
		{"renewed by itself", subject{alone: true}, counts{Granted: 2, Refused: 3, Renewed: 1, Released: 2}, 0},
		{"cleaned up", subject{cleansUp: true}, counts{Granted: 2, Refused: 3, Released: 2, Unreleased: 3}, 0},
		{"three keys", subject{each: 3}, counts{Granted: 6, Refused: 3, Released: 6}, 0},
		{"two of three keys", subject{each: 3}, counts{Granted: 5, Refused: 3, Released: 4, Unreleased: 1}, 0},
		{"one of three keys", subject{each: 3}, counts{Granted: 3, Refused: 3, Released: 3}, 1},
		{"a key that is kept", subject{each: 3}, counts{Granted: 6, Refused: 3, Released: 5}, 1},
	} {
		c.lib.rows = map[string]expected{clean: {}}
		o := outcome{trial: trial{subject: c.lib, row: clean, sections: 1}, a: said, seen: c.seen}
		o.compare()
		if len(o.wrong) != c.wrong {
			t.Errorf("%s: %q", c.name, o.wrong)
		}
	}
}

func TestForeignLocksAreTold(t *testing.T) {
	o := outcome{trial: trial{subject: subject{keys: "lock:*"}, row: clean, sections: 1}}
	r := report{}
	r.Facts.Locks = []lockFact{{Lock: "lock:counter"}, {Lock: "lock:counter db 2"}, {Lock: "cache:7"}, {Lock: "once:7", Marker: true}}
	o.judged(r)
	if len(o.wrong) != 1 || !strings.Contains(o.wrong[0], "cache:7") {
		t.Errorf("got %q", o.wrong)
	}
}

// Only what the looks at the keys say that they have missed is excused.
func TestWhatAWitnessMisses(t *testing.T) {
	said := counts{Granted: 2, Released: 2, Renewed: 5}
	const log = `level=DEBUG msg=witnesses counts="map[late:1 told:212 unseen:1]"`
	for _, c := range []struct {
		witness, log string
		each         int
		seen         counts
		wrong        int
	}{
		{"probe", log, 3, counts{Granted: 6, Released: 4}, 0},
		{"probe", log, 3, counts{Granted: 6, Released: 3}, 1},
		{"probe", log, 3, counts{Granted: 2, Released: 2}, 0},
		{"probe", log, 3, counts{Granted: 1, Released: 1}, 1},
		{"monitor", log, 3, counts{Granted: 6, Released: 4}, 1},
		{"probe", "", 0, counts{Granted: 2, Released: 2, Renewed: 5}, 0},
		{"probe", log, 0, counts{Granted: 2, Released: 2, Renewed: 3}, 0},
		{"probe", log, 0, counts{Granted: 1, Released: 2, Renewed: 4}, 0},
		{"probe", log, 0, counts{Granted: 1, Released: 1, Renewed: 4}, 1},
		{"probe", log, 0, counts{Granted: 3, Released: 2, Renewed: 5}, 1},
		{"probe", "told:5", 0, counts{Granted: 2, Released: 2, Renewed: 4}, 1},
		{"monitor", log, 0, counts{Granted: 2, Released: 2, Renewed: 4}, 1},
	} {
		lib := subject{rows: map[string]expected{clean: {}}, each: c.each}
		o := outcome{trial: trial{subject: lib, row: clean, effects: c.witness}, a: said, seen: c.seen, missed: missedIn(c.log)}
		o.compare()
		if len(o.wrong) != c.wrong {
			t.Errorf("by %s, %q, %s: %q", c.witness, c.log, c.seen.String(), o.wrong)
		}
	}
}

// Of a history that lacks ops only what is proven counts.
func TestVerdictsOfWhatAWitnessMisses(t *testing.T) {
	for _, c := range []struct {
		witness string
		missed  int
		found   string
		want    string
	}{
		{"probe", 1, "LF305 LIKELY, LF402", ""},
		{"probe", 1, "LF101, LF104 POSSIBLE", "LF101"},
		{"probe", 0, "LF305 LIKELY", "LF305 LIKELY"},
		{"monitor", 1, "LF305 LIKELY", "LF305 LIKELY"},
	} {
		o := outcome{trial: trial{effects: c.witness}, missed: c.missed}
		if got := o.certain(c.found); got != c.want {
			t.Errorf("%+v: got %q", c, got)
		}
	}
	asynq := subject{name: "asynq"}
	if !(trial{subject: asynq, effects: "probe"}).tolerates("asynq:servers:{vm}") || (trial{subject: asynq, effects: "monitor"}).tolerates("asynq:servers:{vm}") {
		t.Error("what looks at the keys of asynq take for locks is known of these alone")
	}
}
