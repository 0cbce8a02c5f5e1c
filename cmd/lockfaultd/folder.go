package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
)

// A folder is that of --out, taken: no other lockfaultd writes a history there
// until it is closed. One without a dir stands for no --out.
type folder struct {
	dir  string
	lock *os.File
}

// openFolder makes the folder and takes it.
func openFolder(dir string) (*folder, error) {
	if dir == "" {
		return &folder{}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, usagef("--out: cannot make the folder: %v", err)
	}
	f, err := history.Take(dir)
	switch {
	case errors.Is(err, history.ErrTaken):
		return nil, usagef("--out %s: %v; expected a folder that is free", dir, err)
	case err != nil:
		return nil, usagef("--out: cannot open the folder: %v", err)
	}
	return &folder{dir, f}, nil
}

// close lets the folder go, if there is one.
func (f *folder) close() {
	if f != nil && f.lock != nil {
		f.lock.Close()
	}
}

// history names the file, "" where there is to be none.
func (f *folder) history() string {
	if f.dir == "" {
		return ""
	}
	return filepath.Join(f.dir, history.FileName)
}

// keepFormer moves the history that a former lockfaultd left out of the way, and
// returns where to: "" if there was none.
func (f *folder) keepFormer() (string, error) {
	path := f.history()
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return "", nil // whatever is wrong with it is found when it is written
	}
	began, part, err := beginning(path)
	if err != nil {
		return "", usagef("--out: cannot read the former history: %v", err)
	}
	kept := history.ClosedPath(f.dir, began, part)
	if err := os.Rename(path, kept); err != nil {
		return "", usagef("--out: cannot keep the former history: %v", err)
	}
	return kept, nil
}

// beginning tells when a history was begun, and which part of it this is, by its
// header, or else when it was written last.
func beginning(path string) (began time.Time, part int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return began, 0, err
	}
	defer f.Close()
	var h history.Header
	if err := json.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&h); err == nil && !h.Started.IsZero() {
		return h.Started, h.Part, nil
	}
	info, err := f.Stat()
	if err != nil {
		return began, 0, err
	}
	return info.ModTime(), 0, nil
}
