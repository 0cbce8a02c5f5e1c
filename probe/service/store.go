package service

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockfaultd/lockfaultd/probe/check"
)

// The files of a state folder.
const (
	lockFile  = "lock"             // held while a probe has the folder
	tailFile  = "tail.jsonl"       // lines of the history that the judge needs again
	toldFile  = "verdicts.jsonl"   // what was told, in order
	asideFile = "verdicts.1.jsonl" // the records before the first of these, which sums them up
	stateFile = "state.json"       // how far the judge and each watch have come
)

// ErrTaken says that another probe has the folder.
var ErrTaken = errors.New("another probe has it")

// A Store is a state folder. It is not safe for concurrent use. Its first error sticks: what is on the disk is not known
// after it, and only opening it anew finds out.
type Store struct {
	dir    string
	lock   *os.File
	tail   *os.File
	told   *os.File
	size   int64 // of the tail
	weight int64 // of what was told
	next   uint64
	last   *Record // the state's
	failed error

	// step is asked before each step on the disk, with how many bytes it is about to write. It says how many it may,
	// and after an error nothing is done any more. nil: everything.
	step func(what string, n int) (int, error)
}

// A Record is one line of verdicts.jsonl: verdicts that were told together, and what is true from then on.
type Record struct {
	N        uint64            `json:"n"` // from 1
	At       time.Time         `json:"at"`
	Verdicts []Verdict         `json:"verdicts,omitempty"`
	Broken   map[string]string `json:"broken,omitempty"` // by watch and thing: the id of the verdict whose episode began
	Whole    []string          `json:"whole,omitempty"`  // things whose episode is over
	Past     *Past             `json:"past,omitempty"`   // of the first of a file: the sum of those before it
}

// A State is how far everything has come. It is written in one piece, with the record that was told by it, so that after a
// kill either both are true or neither is.
type State struct {
	Record  *Record                    `json:"record,omitempty"` // the last one, which need not have come to verdicts.jsonl
	Run     string                     `json:"run,omitempty"`
	N       uint64                     `json:"n"`               // of the last line that is known
	Ended   bool                       `json:"ended,omitempty"` // the run was judged to its end
	Live    check.LiveState            `json:"live"`
	Keeps   [][2]uint64                `json:"keeps,omitempty"` // the lines of the tail that the judge needs, from and to, of those before Live.Next
	Facts   check.Numbers              `json:"facts"`
	Watches map[string]json.RawMessage `json:"watches,omitempty"`
	Gaps    []Gap                      `json:"gaps,omitempty"`
	Missed  int                        `json:"missed,omitempty"` // gaps, also those that are forgotten
	Saved   time.Time                  `json:"saved"`
}

// Kept is what a folder had.
type Kept struct {
	Tail    []Message // lines, with their positions
	Records []Record
	Aside   []Record // those before, which the first of Records sums up
	State   State
	Spoilt  []string // what could not be read, in words
}

// OpenStore takes a folder, which it makes if there is none, and reads what is in it. A line that was cut off by a kill is
// dropped: it was not told.
func OpenStore(dir string) (*Store, Kept, error) { return openStore(dir, nil) }

func openStore(dir string, step func(string, int) (int, error)) (*Store, Kept, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, Kept{}, fmt.Errorf("make the state folder: %w", err)
	}
	s := &Store{dir: dir, step: step, next: 1}
	kept, err := s.open()
	if err != nil {
		return nil, Kept{}, errors.Join(err, s.Close())
	}
	return s, kept, nil
}

func (s *Store) open() (kept Kept, err error) {
	if s.lock, err = os.OpenFile(s.path(lockFile), os.O_CREATE|os.O_RDWR, 0o640); err != nil {
		return kept, fmt.Errorf("open state: %w", err)
	}
	switch err := unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return kept, fmt.Errorf("lock %s: %w", s.dir, ErrTaken)
	case err != nil:
		return kept, fmt.Errorf("lock %s: %w", s.dir, err)
	}
	if err := s.sweep(); err != nil {
		return kept, err
	}
	if s.tail, s.size, err = s.reopen(tailFile, func(line []byte) error {
		m, err := message(line)
		if err == nil {
			kept.Tail = append(kept.Tail, m)
		}
		return err
	}, &kept.Spoilt); err != nil {
		return kept, err
	}
	if err := s.openTold(&kept); err != nil {
		return kept, err
	}
	if err := s.readState(&kept); err != nil {
		return kept, err
	}
	if r := kept.State.Record; r != nil && r.N >= s.next {
		kept.Records = append(kept.Records, *r)
		s.next = r.N + 1
		return kept, s.tellAgain(*r)
	}
	s.last = kept.State.Record
	return kept, nil
}

// sweep removes what a kill has left in the making.
func (s *Store) sweep() error {
	left, err := filepath.Glob(s.path("*.tmp"))
	for _, f := range left {
		err = errors.Join(err, os.Remove(f))
	}
	if err != nil {
		return fmt.Errorf("clean the state folder: %w", err)
	}
	return nil
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// reopen reads the lines of a file, cuts off a last one without an end, and leaves it open to be appended to. A line in
// the middle that cannot be read is passed over, and said.
func (s *Store) reopen(name string, take func([]byte) error, spoilt *[]string) (*os.File, int64, error) {
	f, err := os.OpenFile(s.path(name), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return nil, 0, fmt.Errorf("open state: %w", err)
	}
	var whole int64
	lines := bufio.NewReaderSize(f, 64<<10)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			return f, 0, fmt.Errorf("read %s: %w", name, err)
		}
		whole += int64(len(line))
		if err := take(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			*spoilt = append(*spoilt, fmt.Sprintf("%s line %d: %v", name, n, err))
		}
	}
	if err := f.Truncate(whole); err != nil {
		return f, 0, fmt.Errorf("cut %s: %w", name, err)
	}
	if _, err := f.Seek(whole, io.SeekStart); err != nil {
		return f, 0, fmt.Errorf("seek in %s: %w", name, err)
	}
	return f, whole, nil
}

func (s *Store) readState(kept *Kept) error {
	b, err := os.ReadFile(s.path(stateFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("read state: %w", err)
	}
	if err := json.Unmarshal(b, &kept.State); err != nil {
		kept.State = State{}
		kept.Spoilt = append(kept.Spoilt, fmt.Sprintf("%s: %v", stateFile, err))
	}
	return nil
}

// Close lets go of the folder.
func (s *Store) Close() error {
	var errs []error
	for _, f := range []*os.File{s.tail, s.told, s.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// Append writes lines of the history behind the tail.
func (s *Store) Append(b []byte) error {
	n, err := s.write("append lines", s.tail, b)
	s.size += int64(n)
	return err
}

// Tell writes a record with the state that is true from then on, and returns once that is on the disk. What lines they
// rest on is there before.
func (s *Store) Tell(r Record, state State) error {
	r.N = s.next
	state.Record = &r
	if err := s.Save(state); err != nil {
		return err
	}
	s.next++
	return s.tellAgain(r)
}

// tellAgain appends a record that the state has.
func (s *Store) tellAgain(r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write a record: %w", err)
	}
	s.last = &r
	n, err := s.write("append a record", s.told, append(b, '\n'))
	s.weight += int64(n)
	return err
}

// Save writes the state in one piece.
func (s *Store) Save(state State) error {
	if state.Record == nil {
		state.Record = s.last
	}
	b, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	s.sync("sync lines", s.tail)
	s.sync("sync records", s.told) // the state will not have the last one any more
	return s.replace(stateFile, func(f *os.File) error { _, err := s.write("write the state", f, b); return err })
}

// Trim writes the tail anew with the parts of it that are given, in bytes from and to.
func (s *Store) Trim(parts [][2]int64) error {
	var size int64
	err := s.replace(tailFile, func(f *os.File) error {
		for _, part := range parts {
			b := make([]byte, part[1]-part[0])
			if _, err := s.tail.ReadAt(b, part[0]); err != nil {
				return s.fail(fmt.Errorf("read the tail: %w", err))
			}
			if _, err := s.write("trim the tail", f, b); err != nil {
				return err
			}
			size += part[1] - part[0]
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.size = size
	return s.again(&s.tail, tailFile)
}

// again opens a file that was replaced, in the place of what it was.
func (s *Store) again(file **os.File, name string) error {
	f, err := os.OpenFile(s.path(name), os.O_RDWR|os.O_APPEND, 0o640)
	if err != nil {
		return s.fail(fmt.Errorf("open %s: %w", name, err))
	}
	(*file).Close()
	*file = f
	return nil
}

// replace writes a file anew, so that at any time the old one or the new one is there.
func (s *Store) replace(name string, write func(*os.File) error) error {
	if s.failed != nil {
		return s.failed
	}
	f, err := os.CreateTemp(s.dir, name+".*.tmp")
	if err != nil {
		return s.fail(fmt.Errorf("replace %s: %w", name, err))
	}
	defer os.Remove(f.Name()) // once it has been renamed there is none
	err = write(f)
	if s.sync("sync "+name, f); s.failed == nil && err == nil {
		if _, err = s.may("rename "+name, 0); err == nil {
			err = os.Rename(f.Name(), s.path(name))
		}
	}
	if err == nil && s.failed == nil {
		err = s.settleFolder()
	}
	f.Close()
	if err != nil {
		return s.fail(fmt.Errorf("replace %s: %w", name, err))
	}
	return s.failed
}

// settleFolder has the folder's names on the disk: without that a rename may be lost with the power, though what was
// written after it is not.
func (s *Store) settleFolder() error {
	folder, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

func (s *Store) may(what string, n int) (int, error) {
	if s.failed != nil {
		return 0, s.failed
	}
	if s.step == nil {
		return n, nil
	}
	return s.step(what, n)
}

func (s *Store) write(what string, f *os.File, b []byte) (int, error) {
	n, stop := s.may(what, len(b))
	n, err := f.Write(b[:n])
	if err := errors.Join(stop, err); err != nil {
		return n, s.fail(fmt.Errorf("%s: %w", what, err))
	}
	return n, nil
}

func (s *Store) sync(what string, f *os.File) {
	_, err := s.may(what, 0)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		_ = s.fail(fmt.Errorf("%s: %w", what, err)) // kept
	}
}

func (s *Store) fail(err error) error {
	if s.failed == nil {
		s.failed = err
	}
	return s.failed
}
