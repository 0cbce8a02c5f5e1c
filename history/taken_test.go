package history

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestAHistoryGrowsWhileItsFolderIsTaken(t *testing.T) {
	dir := t.TempDir()
	current, closed := filepath.Join(dir, FileName), filepath.Join(dir, "history-20260102T030405Z.jsonl")
	part := filepath.Join(dir, "history-20260202T030405Z.000001.jsonl")
	first := Header{Schema: Schema, Run: "b"}.part(1, 1, 0)
	for path, h := range map[string]Header{closed: {Schema: Schema, Run: "a"}, part: first, current: first.part(2, 9, 7)} {
		if err := os.WriteFile(path, h.line(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	grows := func(path string, want bool) {
		t.Helper()
		if got := GoesOn(path); (got != "") != want {
			t.Fatalf("%s goes on: %q", path, got)
		}
	}
	grows(part, true)
	grows(dir, false)
	f, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	grows(dir, true)
	grows(current, true)
	grows(closed, false)
	if _, err := Take(dir); !errors.Is(err, ErrTaken) {
		t.Fatalf("taken twice: %v", err)
	}
	f.Close()
	grows(dir, false)
	grows(current, false)
	grows(filepath.Join(dir, "none"), false)
}

// Who only looks whether a folder is taken keeps no daemon from taking it.
func TestALookTakesNothing(t *testing.T) {
	dir := t.TempDir()
	looks, err := os.Open(dir)
	if err != nil || locked(looks, syscall.LOCK_SH) {
		t.Fatal("cannot look", err)
	}
	time.AfterFunc(time.Millisecond, func() { looks.Close() })
	f, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
