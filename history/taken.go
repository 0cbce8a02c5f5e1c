package history

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// ErrTaken is the error of [Take] where another daemon has the folder.
var ErrTaken = errors.New("another lockfaultd writes its history there")

// Take takes a folder for a daemon that writes its histories there, until the file is
// closed or the process is over. On a file system that knows no locks it takes nothing.
func Take(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for range 50 { // who only looks whether it is taken holds it for a moment
		if !locked(f, syscall.LOCK_EX) {
			return f, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	return nil, ErrTaken
}

// GoesOn says why a history that is named by its file, or its folder, may lack what its run has
// forwarded; "" where nothing says so. Of one that was copied, that cannot be opened, or whose file
// system knows no locks, that is not known.
func GoesOn(path string) (why string) {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	dir := path
	if !info.IsDir() {
		dir = filepath.Dir(path)
		if name := filepath.Base(path); name != FileName {
			return laterPart(dir, name)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		return ""
	}
	defer f.Close()
	if locked(f, syscall.LOCK_SH) {
		return "its lockfaultd still writes this history"
	}
	return ""
}

// laterPart says that a file is a part of a run, and not the last.
func laterPart(dir, name string) (why string) {
	files, err := list(dir)
	at := slices.IndexFunc(files, func(f file) bool { return f.name == name })
	if err != nil || at < 0 {
		return ""
	}
	h := files[at].header
	if slices.ContainsFunc(files, func(f file) bool { return f.header.run() == h.run() && f.header.Part > h.Part }) {
		return "the run goes on in later parts"
	}
	return ""
}

// locked reports whether another has a lock that excludes this one, which is taken otherwise.
func locked(f *os.File, how int) bool {
	return errors.Is(syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
