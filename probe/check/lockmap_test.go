package check

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// mapOf judges a history in words and returns the only entry of its map.
func mapOf(t *testing.T, s *script) MapEntry {
	t.Helper()
	list := Judge(s.in).Map
	if len(list) != 1 {
		t.Fatalf("%d entries: %+v", len(list), list)
	}
	return list[0]
}

// A write that a guard refused was late as well: the lease was over by then, and the
// lifetime that would have sufficed is the one in which it would have come.
func TestMapCountsRefusedWrites(t *testing.T) {
	s, err := readScript("testdata/good/LF201-claim-at-the-read.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := mapOf(t, s)
	// A was granted at 10 ms for 500 ms, and refused at 621 ms.
	if m.Margin.Min > -100*time.Millisecond || m.Suffices < 611*time.Millisecond {
		t.Errorf("left at least %s, %s sufficed; the write was refused 111 ms after the lease", m.Margin.Min, m.Suffices)
	}
}

// sections writes 25 sections that each read a counter, which an invariant names, and
// write it with the statement given, in which %d is what they write.
func sections(t *testing.T, statement string) *script {
	t.Helper()
	s := newScript()
	text := "counter counter.value 0 25\n"
	for n := range 25 {
		at := 10 + 100*n
		text += fmt.Sprintf("A acquire lock:c=t%d %d-%d\n", n, at, at+1)
		text += fmt.Sprintf("A select counter[id=1] value=%d %d-%d\n", n, at+2, at+3)
		text += fmt.Sprintf("A update %s %d-%d\n", strings.NewReplacer("NEW", fmt.Sprint(n+1), "OLD", fmt.Sprint(n)).Replace(statement), at+4, at+5)
		text += fmt.Sprintf("A release lock:c=t%d %d-%d\n", n, at+6, at+7)
	}
	for line := range strings.Lines(text) {
		if err := s.line(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// An invariant that names a column does not make an increment, or a compare-and-set,
// rest on a read.
func TestMapPurpose(t *testing.T) {
	for statement, want := range map[string]string{
		"counter[id=1] value:=NEW":           "correctness",
		"counter[id=1] value+=1":             "efficiency",
		"counter[id=1,value=OLD] value:=NEW": "efficiency",
	} {
		if m := mapOf(t, sections(t, statement)); m.Purpose != want || m.Declared {
			t.Errorf("%s: for %q, declared %v, since %q; want %s", statement, m.Purpose, m.Declared, m.Because, want)
		}
	}
}
