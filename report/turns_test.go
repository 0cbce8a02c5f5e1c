package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/history"
)

func behindGates(r *Run) {
	id := r.Injections[0].ID
	r.Turns = []history.Turn{
		{Injection: id, Op: 8, Session: 3, Actor: "A2", At: 10 * ms, Ended: 14 * ms},
		{Injection: id, Op: 9, Session: 4, Actor: "A3", At: 10 * ms, Ended: 22 * ms, Cut: "lease"},
		{Injection: id, Op: 10, Session: 5, Actor: "A3", At: 10 * ms, Ended: 11 * ms, Cut: "lease"},
		{Injection: 4711, Op: 11, Session: 5, Actor: "A3", At: 10 * ms, Ended: 99 * ms, Cut: "timeout"},
	}
}

// What the order behind a gate kept waiting is told with its rule, in one line.
func TestTurnsAreTold(t *testing.T) {
	got := strings.Join(strings.Fields(text(t, with(lost(), behindGates))), " ")
	want := "the order behind its gates: 3 requests of others waited for the answer, 12ms at most; 2 of them went on before it: lease"
	if !strings.Contains(got, want+" ") || strings.Contains(got, want+",") {
		t.Errorf("%q is not in:\n%s", want, got)
	}
	if without := text(t, lost()); strings.Contains(without, "the order behind") {
		t.Errorf("an order without turns:\n%s", without)
	}
}

func TestTurnsInJSON(t *testing.T) {
	var b strings.Builder
	if err := JSON(&b, with(lost(), behindGates)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Injections struct{ Turns []map[string]any }
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if n := len(got.Injections.Turns); n != 4 || got.Injections.Turns[1]["cut"] != "lease" || got.Injections.Turns[1]["ended_ns"] != float64(22*ms) {
		t.Errorf("%+v", got.Injections.Turns)
	}
}
