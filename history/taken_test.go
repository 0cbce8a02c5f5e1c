package history

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAHistoryGrowsWhileItsFolderIsTaken(t *testing.T) {
	dir := t.TempDir()
	current, closed := filepath.Join(dir, FileName), filepath.Join(dir, "history-20260102T030405Z.jsonl")
	for _, path := range []string{current, closed} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	grows := func(path string, want bool) {
		t.Helper()
		if got := Grows(path); got != want {
			t.Fatalf("%s grows: %t", path, got)
		}
	}
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
