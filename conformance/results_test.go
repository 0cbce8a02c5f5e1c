package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/alarm"
	"github.com/lockfaultd/lockfaultd/internal/recorder"
)

func read(into func(results) func(string), text string) results {
	r := results{}
	for line := range strings.Lines(text) {
		into(r)(line)
	}
	return r
}

func TestReadRegress(t *testing.T) {
	got := read(func(r results) func(string) { return r.readRegress }, `(using postmaster on 127.0.0.1, port 5432)
============== running regression test queries        ==============
test tablespace                   ... ok          503 ms
parallel group (20 tests):  boolean char
     boolean                      ... ok           71 ms
     char                         ... FAILED       33 ms
     varchar                      ... failed (ignored)       33 ms
test fuzz                         ... FAILED (test process exited with exit code 2)       12 ms
 1 of 217 tests failed.
`)
	want := results{"tablespace": passed, "boolean": passed, "char": failed, "varchar": failed, "fuzz": failed}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReadTcl(t *testing.T) {
	got := read(func(r results) func(string) { return r.readTcl }, `Starting test server at port 21079
[ready]: 12345
[testing]: unit/type/string
[ok]: SET and GET an item (1 ms)
[ok]: Same name (0 ms)
[ok]: Same name (12 ms)
[ignore]: Not to be tested: tag external:skip
[err]: Blocking XREADGROUP: flushed DB in tests/unit/type/stream-cgroups.tcl
Expected something
[exception]: Executing test client: I/O error.
[1/91 done]: unit/type/string (3 seconds)
`)
	want := results{
		"SET and GET an item": passed, "Same name": passed, "Same name (2)": passed,
		"Not to be tested: tag external:skip": skipped, "Blocking XREADGROUP: flushed DB": failed,
		"Executing test client: I/O error.": failed,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestReadGo(t *testing.T) {
	got := read(func(r results) func(string) { return r.readGo }, `{"Action":"run","Package":"github.com/jackc/pgx/v5","Test":"TestA"}
{"Action":"output","Package":"github.com/jackc/pgx/v5","Test":"TestA","Output":"=== RUN TestA\n"}
{"Action":"pass","Package":"github.com/jackc/pgx/v5","Test":"TestA","Elapsed":0.1}
{"Action":"pass","Package":"github.com/jackc/pgx/v5","Elapsed":1.1}
{"Action":"skip","Package":"github.com/jackc/pgx/v5/pgtype","Test":"TestB/x=/tmp/TestB498707355/001"}
{"Action":"fail","Package":"github.com/jackc/pgx/v5/pgtype","Test":"TestC"}
{"Action":"fail","Package":"github.com/jackc/pgx/v5/pgtype"}
go: downloading something
`)
	want := results{".TestA": passed, "pgtype.TestB/x=/tmp/TestBN/001": skipped, "pgtype.TestC": failed, "pgtype.": failed}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDifferences(t *testing.T) {
	ok, bad := results{"a": passed, "b": passed}, results{"a": passed, "b": failed}
	equal := trace{report: recorder.Report{Conns: 1, Equal: 1}}
	for _, tt := range []struct {
		name    string
		v       verdict
		changed string
		differs bool
	}{
		{"all the same", verdict{runs: map[way]results{direct: ok, plain: ok, armed: ok}}, "", false},
		{"fails behind lockfaultd", verdict{runs: map[way]results{direct: ok, plain: ok, armed: bad}}, "b", true},
		{"does not run behind lockfaultd", verdict{runs: map[way]results{direct: ok, plain: {"a": passed}}}, "b", true},
		{"is skipped behind lockfaultd", verdict{runs: map[way]results{direct: ok, plain: {"a": passed, "b": skipped}}}, "b", true},
		{"fails behind the copy too", verdict{runs: map[way]results{direct: ok, plain: bad, bare: bad}}, "b", false},
		{"passes behind the copy", verdict{runs: map[way]results{direct: ok, plain: bad, bare: ok}}, "b", true},
		{"fails directly too", verdict{runs: map[way]results{direct: bad, plain: bad}}, "", false},
		{"fails, and nothing ran directly", verdict{runs: map[way]results{armed: bad}}, "b", true},
		{"fails behind the copy too, and nothing ran directly", verdict{runs: map[way]results{armed: bad, bare: bad}}, "b", false},
		{"passes, and nothing ran directly", verdict{runs: map[way]results{armed: {"a": passed, "b": skipped}}}, "", false},
		{"fails directly only", verdict{runs: map[way]results{direct: bad, plain: ok}}, "", false},
		{"races", verdict{suite: suite{races: []string{"b"}}, runs: map[way]results{direct: ok, plain: bad}}, "b", false},
		{"other bytes", verdict{runs: map[way]results{direct: ok, plain: ok}, trace: map[way]trace{plain: {report: recorder.Report{Different: []string{"x"}}}}}, "", true},
		{"goes desync", verdict{runs: map[way]results{direct: ok, plain: ok}, trace: map[way]trace{plain: {complaints: []complained{{alarm.Desync, "x"}}}}}, "", true},
		{"stays open", verdict{runs: map[way]results{direct: ok, plain: ok}, trace: map[way]trace{plain: {open: true}}}, "", true},
		{"the same bytes", verdict{runs: map[way]results{direct: ok, plain: ok}, trace: map[way]trace{plain: equal}}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(tt.v.changed(), ","); got != tt.changed {
				t.Errorf("changed: %q, want %q", got, tt.changed)
			}
			if got := tt.v.differs(); got != tt.differs {
				t.Errorf("differs: %v, want %v", got, tt.differs)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	var o options
	if err := o.choose("isolation,redis", "direct,copy", nil); err != nil || len(o.suites) != 2 || len(o.ways) != 2 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, bad := range [][2]string{{"nosuch", "direct"}, {"redis", "sideways"}, {"", "direct"}} {
		if err := new(options).choose(bad[0], bad[1], nil); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	if err := new(options).choose("redis", "direct", []string{"more"}); err == nil {
		t.Error("an argument was taken")
	}
}

func TestSourceEntriesAreMade(t *testing.T) {
	if got := wantSource("# deb x\ndeb http://a b main\ndeb-src http://a b main\n"); got != "# deb x\ndeb-src http://a b main\ndeb http://a b main\ndeb-src http://a b main\n" {
		t.Errorf("got %q", got)
	}
}

func TestPatientClientWaits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "redis.tcl")
	if err := os.WriteFile(file, []byte("proc x {} {\n        if {!$deferred} {\n        }\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := patient(file); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(got), "blpop") || !strings.Contains(string(got), "{after 20}\n        if {!$deferred} {\n") {
		t.Errorf("got %q, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := patient(file); err == nil {
		t.Error("an unknown client was left as it is, without a word")
	}
}

func TestProgramEndsWithWhatItStarted(t *testing.T) {
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	j := job{dir: t.TempDir(), log: log}
	done := make(chan error, 1)
	go func() {
		done <- j.program(ctx, nil, "sh", "-c", fmt.Sprintf("sh -c 'echo on; sleep 1000' >/proc/%d/fd/%d & wait", os.Getpid(), w.Fd()))
	}()
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("it ended well, want it killed")
	}
	w.Close()
	if _, err := io.Copy(io.Discard, r); err != nil { // hangs while the inner one lives
		t.Error(err)
	}
}
