package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A folder of the cache is made again when it is to be made of something else, and
// stays as it was if that fails.
func TestCacheIsRenewed(t *testing.T) {
	c := &cache{dir: t.TempDir()}
	times := 0
	made := func(of string, err error) (string, error) {
		return c.made("x", of, func(dir string) error {
			times++
			return errors.Join(err, os.WriteFile(filepath.Join(dir, "content"), []byte(of), 0o600))
		})
	}
	for _, tt := range []struct {
		of    string
		err   error
		times int
		has   string
	}{
		{"1", nil, 1, "1"},
		{"1", nil, 1, "1"},
		{"2", errors.New("no network"), 2, "1"},
		{"2", nil, 3, "2"},
		{"2", nil, 3, "2"},
		{"1", nil, 4, "1"},
	} {
		dir, err := made(tt.of, tt.err)
		if !errors.Is(err, tt.err) || times != tt.times {
			t.Errorf("%s: %v, made %d times, want %v, %d", tt.of, err, times, tt.err, tt.times)
		}
		if err == nil && dir != filepath.Join(c.dir, "x") {
			t.Errorf("folder %s", dir)
		}
		if got, err := os.ReadFile(filepath.Join(c.dir, "x", "content")); err != nil || string(got) != tt.has {
			t.Errorf("%s: has %q, %v; want %q", tt.of, got, err, tt.has)
		}
	}
}

func TestInstalledVersionComesFirst(t *testing.T) {
	have := []string{"3", "2", "1"}
	for wanted, want := range map[string][]string{"2": {"2", "3", "1"}, "4": have, "": have} {
		if got := preferring(wanted, have); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", wanted, got, want)
		}
	}
}
