package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
	"github.com/lockfaultd/lockfaultd/report"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// A schedule of which decisions are missing says so, and is not taken for the run's.
func TestScheduleThatWasCut(t *testing.T) {
	rule, err := fault.Parse("stall-before", "DEL=0s")
	if err != nil {
		t.Fatal(err)
	}
	plan, err := fault.NewPlan([]fault.Rule{rule}, 1, fault.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	e := proxy.NewEngine(lock.NewLedger(nil), plan)
	e.Keep(schedule.NewBook(nil))
	c := e.Open(1, proxy.Peer{Owner: &proxy.Owner{Key: "1", PID: 1, Address: "127.0.0.1"}})
	for i := range 1<<14 + 5 {
		e.Request(c, &lock.Op{Session: 1, Proto: lock.Redis, Kind: lock.Release, Verb: "DEL", Key: fmt.Sprint("k", i%7)}, true, lock.Instant(i+1))
	}
	w := &wrapped{daemon: &daemon{engine: e}, setup: &setup{rules: []fault.Rule{rule}}, steps: e.Steps()}
	var out strings.Builder
	if err := w.writeSchedule(&out, report.Run{}); err != nil {
		t.Fatal(err)
	}
	if _, err := schedule.Read([]byte(out.String())); err == nil || !strings.Contains(err.Error(), "cut: 5 decisions of the run are not in the file") {
		t.Errorf("read: %v", err)
	}
}
