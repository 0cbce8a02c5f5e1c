package freezer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A record is one freeze as the journal keeps it: enough to end it, and to know
// whether it still is this one's to end.
type record struct {
	Schema   int       `json:"schema"`
	Boot     string    `json:"boot_id"`
	PIDSpace string    `json:"pid_namespace"` // in which the pids below mean something
	Daemon   Process   `json:"daemon"`
	Deadline time.Time `json:"deadline"` // for people; a replay does not wait for it
	Target   note      `json:"target"`
}

const (
	recordSchema = 1
	recordSuffix = ".freeze.json"
	draftSuffix  = ".draft"
)

// A journal is a directory with one file for each freeze that may be in force.
type journal struct {
	dir  string
	self record // with what is the same in every record of this daemon
}

// openJournal makes the directory. It must be the daemon's alone to write,
// since a replay acts on what it finds there.
func openJournal(dir string) (*journal, error) {
	dir, err := ownDir(dir)
	if err != nil {
		return nil, err
	}
	self, err := identity()
	if err != nil {
		return nil, err
	}
	s, err := readStat(os.Getpid())
	if err != nil {
		return nil, err
	}
	self.Daemon = Process{PID: s.pid, Start: s.start, Comm: s.comm}
	return &journal{dir: dir, self: self}, nil
}

func ownDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("open journal: no directory given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("open journal: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("open journal: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", fmt.Errorf("open journal %s: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o022 != 0 || int(st.Uid) != os.Geteuid() {
		return "", fmt.Errorf("open journal %s: it must be a directory that nobody but uid %d can write to", dir, os.Geteuid())
	}
	return dir, nil
}

// identity reads which boot and which pid namespace this is.
func identity() (record, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return record{}, fmt.Errorf("read boot id: %w", err)
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return record{}, fmt.Errorf("read pid namespace: %w", err)
	}
	return record{Schema: recordSchema, Boot: strings.TrimSpace(string(boot)), PIDSpace: space}, nil
}

// write records a freeze before it happens, and returns the file's path. The
// file appears whole or not at all; a machine that goes down thaws everything
// itself, so nothing is synced.
func (j *journal) write(id uint64, t note, deadline time.Time) (string, error) {
	r := j.self
	r.Target, r.Deadline = t, deadline
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("write journal: %w", err)
	}
	name := filepath.Join(j.dir, fmt.Sprintf("%d-%d-%d%s", r.Daemon.PID, r.Daemon.Start, id, recordSuffix))
	if err := os.WriteFile(name+draftSuffix, b, 0o600); err != nil {
		return "", fmt.Errorf("write journal: %w", err)
	}
	if err := os.Rename(name+draftSuffix, name); err != nil {
		return "", fmt.Errorf("write journal: %w", err)
	}
	return name, nil
}

// erase takes a freeze out of the journal. That it has gone is no error: the
// guard may have been faster.
func erase(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove from journal: %w", err)
	}
	return nil
}

// Replay thaws what dead daemons have left frozen, and takes it out of the
// journal. n is how many freezes were in force and were ended. A record of
// another boot is removed, one of a living daemon or of another pid namespace
// is left alone, and so is one whose process or cgroup is now another. A
// record that cannot be acted on does not keep the others; the error names it.
// A directory that is not there holds nothing. log may be nil.
func Replay(dir string, log *slog.Logger) (n int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("replay journal: %w", err)
	}
	if dir, err = ownDir(dir); err != nil {
		return 0, err
	}
	here, err := identity()
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(strings.TrimSuffix(e.Name(), draftSuffix), recordSuffix) {
			continue
		}
		ended, err := replayFile(filepath.Join(dir, e.Name()), here)
		if err != nil {
			errs = append(errs, fmt.Errorf("replay %s: %w", e.Name(), err))
		}
		if ended {
			n++
			logger(log).Warn("thawed what a dead daemon had left frozen", "record", e.Name())
		}
	}
	return n, errors.Join(errs...)
}

func replayFile(name string, here record) (ended bool, err error) {
	if strings.HasSuffix(name, draftSuffix) {
		return false, eraseDraft(name)
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return false, fmt.Errorf("parse record: %w", err)
	}
	switch {
	case r.Schema != recordSchema:
		return false, fmt.Errorf("record has schema %d, expected %d", r.Schema, recordSchema)
	case r.Boot != here.Boot:
		return false, erase(name)
	case r.PIDSpace != here.PIDSpace, lives(r.Daemon):
		return false, nil
	}
	ended, err = r.Target.end()
	if err != nil {
		return ended, err
	}
	return ended, erase(name)
}

// eraseDraft removes a record that was being written when its daemon died; its
// freeze had not begun.
func eraseDraft(name string) error {
	var pid int
	var start uint64
	if _, err := fmt.Sscanf(filepath.Base(name), "%d-%d-", &pid, &start); err != nil {
		return nil
	}
	if lives(Process{PID: pid, Start: start}) {
		return nil
	}
	return erase(name)
}

// lives reports whether a recorded process is still there, and not a zombie.
func lives(p Process) bool {
	s, err := readStat(p.PID)
	return err == nil && s.start == p.Start && !s.ended()
}

// end thaws what a note names, if that is still there and still frozen.
func (n note) end() (ended bool, err error) {
	t, err := n.reopen()
	if err != nil {
		return false, err
	}
	defer t.close()
	if t.group != nil {
		ended = t.group.thawedByOthers() == ""
		return ended, t.thaw()
	}
	for _, p := range t.procs {
		if _, stopped, _ := p.firstStopped(); stopped {
			ended = true
		}
	}
	return ended, t.thaw()
}

// reopen takes hold of what a note names, leaving out what has gone or is now
// something else.
func (n note) reopen() (target, error) {
	if n.Version != "" {
		return n.reopenGroup()
	}
	var t target
	for _, was := range n.Processes {
		p, err := openProcess(was.PID)
		if vanished(err) {
			continue
		}
		if err != nil {
			t.close()
			return target{}, err
		}
		if p.Start != was.Start {
			closeAll([]Process{p})
			continue
		}
		t.procs = append(t.procs, p)
	}
	return t, nil
}

func (n note) reopenGroup() (target, error) {
	if n.Version != v1 && n.Version != v2 {
		return target{}, fmt.Errorf("unknown kind of cgroup %q", n.Version)
	}
	c, err := openCgroup(place{version: n.Version, dir: n.Dir})
	if errors.Is(err, fs.ErrNotExist) {
		return target{}, nil
	}
	if err != nil {
		return target{}, err
	}
	if c.inode != n.Inode {
		c.close()
		return target{}, nil
	}
	return target{group: c}, nil
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
