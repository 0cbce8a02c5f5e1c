package service

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// What was told takes a bounded place on the disk; a probe that is started again counts all of it, has the last at hand, says
// that others are not, and begins no episode anew.
func TestRecordsAreSetAside(t *testing.T) {
	dir := t.TempDir()
	s, store := open(t, dir, nil, &mood{})
	s.turnFrom = 8 << 10
	breach := func(n int) Breach {
		return Breach{Thing: fmt.Sprint(n), Code: "LF405", Name: "invariant-broken", Class: check.Harm, Level: check.Proven, Proof: "Let Q be a query."}
	}
	about := s.conf.Watches[0].About()
	const most = 200
	for n := range most { // each ends the one before, but for the first, which goes on
		o := Opinion{State: Broken, Breaches: []Breach{breach(0), breach(n)}[:min(n+1, 2)]}
		if err := s.opine(about, o, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	store.Close()
	var size int64
	for _, name := range []string{toldFile, asideFile} {
		f, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		size += f.Size()
	}
	if size > 20<<10 {
		t.Errorf("%d bytes", size)
	}

	store, kept, err := OpenStore(dir)
	if err != nil || len(kept.Aside) == 0 {
		t.Fatalf("%v, %d set aside", err, len(kept.Aside))
	}
	store.Close()

	s, store = open(t, dir, nil, &mood{})
	groups := s.told.byGroup()
	if len(groups) != 1 || groups[0].Verdicts != most || groups[0].Example.N != 1 || s.told.last != most {
		t.Errorf("%d were told: %+v", s.told.last, groups)
	}
	list, missing := s.told.since(0)
	if oldest := slices.Concat(kept.Aside[0].Verdicts, kept.Aside[1].Verdicts)[0].N; list[0].N != oldest || list[len(list)-1].N != most || !missing {
		t.Errorf("%d at hand, missing %v", len(list), missing)
	}
	for i, v := range list {
		if v.N != list[0].N+uint64(i) {
			t.Fatalf("verdict %d is number %d", i, v.N)
		}
	}
	if err := s.opine(about, Opinion{State: Broken, Breaches: []Breach{breach(0), breach(most - 1)}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if s.told.last != most {
		t.Errorf("told again: %+v", s.told.list[len(s.told.list)-1])
	}
	store.Close()

	// Where the sum cannot be read, those that it stood for are counted again.
	broken := t.TempDir()
	if err := os.CopyFS(broken, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(broken, toldFile))
	if err != nil {
		t.Fatal(err)
	}
	text[0] = '?'
	if err := os.WriteFile(filepath.Join(broken, toldFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	store, spoilt, err := OpenStore(broken)
	if err != nil || len(spoilt.Spoilt) == 0 || len(spoilt.Records) != len(kept.Aside)+len(kept.Records)-1 {
		t.Errorf("%v, spoilt %q: %d records, of %d and %d", err, spoilt.Spoilt, len(spoilt.Records), len(kept.Aside), len(kept.Records))
	}
	store.Close()

	// A kill came when they had been set aside, and none begun.
	if err := os.Rename(filepath.Join(dir, toldFile), filepath.Join(dir, asideFile)); err != nil {
		t.Fatal(err)
	}
	s, store = open(t, dir, nil, &mood{})
	defer store.Close()
	if s.told.last != most || store.next != kept.Records[len(kept.Records)-1].N+1 {
		t.Errorf("%d were told, the next record is number %d", s.told.last, store.next)
	}
	if _, err := os.Stat(filepath.Join(dir, asideFile)); err == nil {
		t.Error("they are aside still")
	}
}

// Where nothing is at hand any more that was told, those who ask hear that it is missing.
func TestNothingAtHandIsMissing(t *testing.T) {
	var told told
	told.restore(Past{Last: 7})
	if list, missing := told.since(3); len(list) != 0 || !missing {
		t.Errorf("%v, missing %v", list, missing)
	}
	if _, missing := told.since(7); missing {
		t.Error("missing behind the last")
	}
}
