package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/history"
)

// smallestPart keeps a folder from being filled with headers.
const smallestPart = 64 << 10

// addKeeping reads how the history is kept.
func (o *options) addKeeping(s *setup) error {
	if o.out == "" && (o.rotate != "" || o.keep != "") {
		return errors.New("--rotate and --keep: no history is kept in files; expected --out DIR")
	}
	var err error
	if o.rotate != "" {
		if s.part, err = size(o.rotate); err != nil {
			return fmt.Errorf("--rotate %s: %w", o.rotate, err)
		}
		if s.part < smallestPart {
			return fmt.Errorf("--rotate %s: expected 64KiB at least", o.rotate)
		}
	}
	if o.keep != "" {
		if s.keep, err = bound(o.keep); err != nil {
			return fmt.Errorf("--keep %s: %w", o.keep, err)
		}
	}
	return nil
}

// bound reads a number of files, or a size of them all.
func bound(text string) (history.Keep, error) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return history.Keep{Files: n}, nil
	}
	n, err := size(text)
	if err != nil {
		return history.Keep{}, fmt.Errorf("expected a number of files or a size, such as 20 or 2GiB")
	}
	return history.Keep{Bytes: n}, nil
}

// units are those of sizes, the longer ones before those that end like them.
var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"k", 1 << 10}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}, {"T", 1 << 40},
}

// size reads a number of bytes with its unit.
func size(text string) (int64, error) {
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		if n, err := strconv.ParseFloat(digits, 64); err == nil && n > 0 && n*float64(u.bytes) < 1<<62 {
			return int64(n * float64(u.bytes)), nil
		}
		break
	}
	return 0, errors.New("expected a size, such as 64MiB or 1GB")
}

// shortestKey is how many bytes the file of a key has at least.
const shortestKey = 16

// addHistoryKey reads the key of the hashes; without one it is drawn anew for each start.
func (o *options) addHistoryKey(s *setup) error {
	if o.key == "" {
		return nil
	}
	text, err := os.ReadFile(o.key)
	if err != nil {
		return fmt.Errorf("--history-key: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) < shortestKey {
		return fmt.Errorf("--history-key %s: it has %d bytes; expected %d at least, such as openssl rand -hex 32 makes", o.key, len(text), shortestKey)
	}
	sum := sha256.Sum256(text)
	s.key = sum[:]
	return nil
}
