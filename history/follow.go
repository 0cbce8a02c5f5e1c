package history

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A Line is one line of a run as it stands in the history, or a gap in the place of lines that are gone.
type Line struct {
	Run  string // names the run
	N    uint64 // its number there, the header being 0; a gap has that of the last line that is gone
	Text []byte // without the line feed
}

// A Follower reads what is written to a folder by one daemon after another: the parts of a run in their order, then
// the one that grows, then the next run. Of lines that are gone it tells how many as a gap in their place. It is for one
// goroutine.
type Follower struct {
	dir   string
	first string // the run with which it begins; "": the newest
	run   string // "": none yet
	next  uint64 // the number of the line that comes next in it

	file   *os.File // nil: none is open
	in     *bufio.Reader
	header Header
	at     uint64 // the number of the line that in has next
	torn   []byte // of that line what has been written so far
	out    []Line
}

// Follow reads a folder from the oldest part of its newest run on.
func Follow(dir string) *Follower { return &Follower{dir: dir} }

// FollowFrom reads a folder behind line last of a run. If nothing of the run is left it
// tells a gap, and goes on with the oldest history that is there.
func FollowFrom(dir, run string, last uint64) *Follower {
	return &Follower{dir: dir, run: run, next: last + 1}
}

// Close lets the file go that was read last.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// Next returns the lines that have come, max or few more at most. It does not wait: none means that there is nothing more for now.
func (f *Follower) Next(max int) ([]Line, error) {
	f.out = nil
	for len(f.out) < max {
		more, err := f.step(max)
		if err != nil {
			return f.out, fmt.Errorf("follow history: %w", err)
		}
		if !more {
			break
		}
	}
	return f.out, nil
}

// step reads what is left of the open file, or opens the one behind it. It reports whether there may be more.
func (f *Follower) step(max int) (bool, error) {
	if f.file != nil {
		growing := f.growing() // asked first: what does not grow any more is read to its end
		if err := f.read(max); err != nil || growing || len(f.out) >= max {
			return false, err
		}
	}
	behind, ok, err := f.behind()
	if err != nil || !ok {
		return false, err
	}
	return true, f.open(behind)
}

// read takes the lines that are there.
func (f *Follower) read(max int) error {
	for len(f.out) < max {
		text, err := f.in.ReadBytes('\n')
		if len(f.torn) > 0 {
			text = append(f.torn, text...)
		}
		f.torn = text
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if f.at >= f.next {
			f.tell(f.torn[:len(f.torn)-1])
		}
		f.at++
		f.torn = nil
	}
	return nil
}

func (f *Follower) tell(text []byte) {
	f.out = append(f.out, Line{f.run, f.next, text})
	f.next++
}

// gap tells that the lines up to number end are gone.
func (f *Follower) gap(end uint64, at lock.Instant, why string) {
	lost := int(end - f.next + 1)
	f.next = end
	f.tell(fmt.Appendf(nil, `{"type":"gap","at":%d,"lost":%d,"why":%q}`, at, lost, why))
}

// growing reports whether the open file is still the one that is being written.
func (f *Follower) growing() bool {
	now, err := os.Stat(filepath.Join(f.dir, FileName))
	if err != nil {
		return false
	}
	own, err := f.file.Stat()
	return err == nil && os.SameFile(now, own)
}

// behind finds the file to be read next. It looks until it finds the same twice, since files get other
// names while it does.
func (f *Follower) behind() (file, bool, error) {
	found, ok, err := f.choose()
	for range 100 {
		if err != nil || !ok {
			return file{}, false, err
		}
		again, stillThere, err := f.choose()
		if err != nil || !stillThere {
			return file{}, false, err
		}
		if again.header.compare(found.header) == 0 {
			return again, true, nil
		}
		found = again
	}
	return file{}, false, nil
}

func (f *Follower) choose() (file, bool, error) {
	files, err := list(f.dir)
	if err != nil || len(files) == 0 {
		return file{}, false, err
	}
	if f.file != nil {
		c, ok := after(files, f.header)
		return c, ok, nil
	}
	run := cmp.Or(f.run, f.first, files[len(files)-1].header.run())
	return begin(files, run, f.next), true, nil
}

// after returns the file that follows the one with a header.
func after(files []file, h Header) (file, bool) {
	for _, c := range files {
		if c.header.compare(h) > 0 {
			return c, true
		}
	}
	for _, c := range files { // the wall clock may have been set back
		if c.name == FileName && c.header.run() != h.run() {
			return c, true
		}
	}
	return file{}, false
}

// begin returns the file of a run in which a line is, or the first behind it; where nothing of the run is left the first of all.
func begin(files []file, run string, line uint64) file {
	found, best := false, files[0]
	for _, c := range files {
		if c.header.run() != run {
			continue
		}
		if !found || c.header.First <= line {
			found, best = true, c
		}
	}
	return best
}

// open goes on with another file.
func (f *Follower) open(c file) error {
	file, err := os.Open(filepath.Join(f.dir, c.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has another name by now
	}
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(file, 64<<10)
	h, _, err := readHeader(in)
	if err != nil || h.compare(c.header) != 0 { // another has taken its name
		file.Close()
		return nil
	}
	f.leave(h)
	if err := f.Close(); err != nil {
		return err
	}
	f.file, f.in, f.header, f.torn = file, in, h, nil
	f.enter(h)
	return nil
}

// The reasons of gaps.
const (
	partsGone = "parts of the history were removed before they were read"
	runGone   = "what was left of the run was removed before it was read, and it is not known how much that was"
	cutOff    = "the last line is cut off"
)

// leave tells what is missing at the end of a run when a file of another comes.
func (f *Follower) leave(h Header) {
	if f.run == "" || f.run == h.run() {
		return
	}
	if f.file == nil || f.removed() {
		f.gap(f.next, lock.Never, runGone)
	} else if len(f.torn) > 0 && f.at >= f.next {
		f.gap(f.at, lock.Never, cutOff)
	}
}

// removed reports whether parts behind the open one may have been removed unread: it has been, and the oldest go first.
func (f *Follower) removed() bool {
	if f.header.Part == 0 {
		return false // it is all of its run
	}
	own, err := f.file.Stat()
	if err != nil {
		return true
	}
	s, ok := own.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 0
}

// enter begins with a file.
func (f *Follower) enter(h Header) {
	if f.run != h.run() {
		f.run, f.next = h.run(), 0
		f.tell(h.part(0, 0, 0).trimmed())
	}
	f.at = max(h.First, 1)
	if f.next == 0 {
		f.next = 1
	}
	if f.at > f.next {
		f.gap(f.at-1, h.At, partsGone)
	}
}

func (h Header) trimmed() []byte {
	b := h.line()
	return b[:len(b)-1]
}

// OpenRun opens the history of which history.jsonl in a folder is a part, or all, as one. The oldest
// parts may be gone.
func OpenRun(dir string) (io.ReadCloser, error) {
	last, err := look(dir, FileName)
	if err != nil || last.header.Part == 0 {
		return os.Open(filepath.Join(dir, FileName))
	}
	r := &runReader{follower: Follow(dir), run: last.header.run()}
	r.follower.first = r.run
	return r, nil
}

// A runReader reads the parts of a run as one file.
type runReader struct {
	follower *Follower
	rest     []byte
	run      string
	over     bool
}

func (r *runReader) Close() error { return r.follower.Close() }

func (r *runReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && !r.over {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill takes the lines that come next. A last one that is cut off comes as it is.
func (r *runReader) fill() error {
	lines, err := r.follower.Next(batchSize)
	if err != nil {
		return err
	}
	if r.over = len(lines) == 0; r.over {
		r.rest = r.follower.torn
	}
	for _, l := range lines {
		if r.over = l.Run != r.run; r.over {
			return nil
		}
		r.rest = append(append(r.rest, l.Text...), '\n')
	}
	return nil
}
