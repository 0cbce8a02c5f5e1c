package history

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
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
	if locked(f, syscall.LOCK_EX) {
		f.Close()
		return nil, ErrTaken
	}
	return f, nil
}

// Grows reports whether a daemon still writes the history that is named by its file, or its
// folder. Of one that was copied, that cannot be opened, or whose file system knows no locks,
// that is not known.
func Grows(path string) bool {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return false
	case !info.IsDir() && filepath.Base(path) != FileName:
		return false // it is over, or none of a daemon's
	case !info.IsDir():
		path = filepath.Dir(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return locked(f, syscall.LOCK_SH)
}

// locked reports whether another has a lock that excludes this one, which is taken otherwise.
func locked(f *os.File, how int) bool {
	return errors.Is(syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
