package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/live"
)

var noon = time.Date(2000, 1, 1, 12, 0, 0, 0, time.UTC)

func refusalAt(at time.Time, actor string) live.Mark {
	return live.Mark{At: at, Kind: live.MarkRefusal, Lock: "job", Actor: actor}
}

// However much happens, the last minute takes so much memory, and what was before is forgotten.
func TestMarksAreBounded(t *testing.T) {
	m := newMarks()
	for i := range 3 * mostMarks {
		m.note(refusalAt(noon.Add(time.Duration(i)*time.Millisecond), fmt.Sprint(i)), true)
	}
	if len(m.list) > mostMarks || len(m.last) != len(m.list) {
		t.Errorf("%d marks, %d last ones", len(m.list), len(m.last))
	}
	if got := m.since(noon.Add(time.Hour)); len(got) != 0 || len(m.last) != 0 {
		t.Errorf("%d marks an hour later, %d last ones", len(got), len(m.last))
	}
}

// Refusals right behind each other are one, those of others and later ones are not, and nor is what joins nothing.
func TestMarksJoin(t *testing.T) {
	m := newMarks()
	for i := range 5 {
		m.note(refusalAt(noon.Add(time.Duration(i)*100*time.Millisecond), "A1"), true)
	}
	m.note(refusalAt(noon.Add(time.Second), "A1"), true)
	m.note(refusalAt(noon.Add(time.Second), "A2"), true)
	m.note(live.Mark{At: noon.Add(time.Second), Kind: live.MarkFreeze, Actor: "A1"}, false)
	m.note(live.Mark{At: noon.Add(time.Second), Kind: live.MarkFreeze, Actor: "A1"}, false)
	got := m.since(noon)
	if len(got) != 5 || got[0].Text != "5 times" || !got[0].To.Equal(noon.Add(400*time.Millisecond)) || !got[1].To.IsZero() {
		t.Errorf("%+v", got)
	}
}
