package history

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// FileName is that of the history that is being written, in its folder.
const FileName = "history.jsonl"

// nextName is that of a part before it takes the place of the one that is full.
const nextName = FileName + ".next"

// closedName matches what a history, or a part of one, is called once it is over.
var closedName = regexp.MustCompile(`^history-\d{8}T\d{6}Z(\.\d+)?(-\d+)?\.jsonl$`)

// ClosedPath returns a path in the folder for a history, or part of one, that is over: by when its
// run began, and which part it is, if it is one. Nothing is there yet.
func ClosedPath(dir string, began time.Time, part int) string {
	name := "history-" + began.UTC().Format("20060102T150405Z")
	if part > 0 {
		name += fmt.Sprintf(".%06d", part)
	}
	path := filepath.Join(dir, name+".jsonl")
	for n := 2; ; n++ {
		if _, err := os.Lstat(path); err != nil {
			return path
		}
		path = filepath.Join(dir, fmt.Sprintf("%s-%d.jsonl", name, n))
	}
}

// A file is one that has a history, or a part of one.
type file struct {
	name   string
	size   int64
	header Header
}

// run names the run of a file; older versions gave it no name.
func (h Header) run() string {
	return cmp.Or(h.Run, strconv.FormatInt(h.Started.UnixNano(), 16))
}

// compare orders headers as they were written.
func (h Header) compare(o Header) int {
	return cmp.Or(h.Started.Compare(o.Started), strings.Compare(h.run(), o.run()), cmp.Compare(h.Part, o.Part))
}

// list returns the files of a folder that have a history, in the order in which they were written. One that
// has no header, as it may be made just now, is left out.
func list(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list histories: %w", err)
	}
	var files []file
	for _, e := range entries {
		name := e.Name()
		if !e.Type().IsRegular() || name != FileName && !closedName.MatchString(name) {
			continue
		}
		if f, err := look(dir, name); err == nil {
			files = append(files, f)
		}
	}
	slices.SortStableFunc(files, func(a, b file) int { return a.header.compare(b.header) })
	return files, nil
}

func look(dir, name string) (file, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return file{}, err
	}
	h, _, err := readHeader(bufio.NewReader(f))
	return file{name, info.Size(), h}, err
}

// readHeader reads the first line, which has to be whole.
func readHeader(r *bufio.Reader) (Header, []byte, error) {
	text, err := r.ReadBytes('\n')
	if err != nil {
		return Header{}, nil, err
	}
	h, err := header(text)
	if err != nil {
		return Header{}, nil, err
	}
	return *h, text, nil
}

// A Keep bounds what stays of histories that are over; the zero one bounds nothing.
type Keep struct {
	Files int   // at most so many; 0: any number
	Bytes int64 // at most so many in all; 0: any number
}

// prune removes the oldest histories of a folder, or parts of them, until what is over fits the bound. What is not
// called as such are is left alone, and so is the one that is being written.
func (k Keep) prune(dir string) error {
	if k == (Keep{}) {
		return nil
	}
	files, err := list(dir)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f file) bool { return f.name == FileName })
	slices.Reverse(files)
	var errs error
	bytes := int64(0)
	for i, f := range files {
		bytes += f.size
		if k.Files > 0 && i >= k.Files || k.Bytes > 0 && bytes > k.Bytes {
			errs = errors.Join(errs, os.Remove(filepath.Join(dir, f.name)))
		}
	}
	return errs
}

// A Parts is a history in a folder, the growing one in history.jsonl. It is cut into parts of a bounded size, if
// that is wanted: one that is full gets another name, and the next begins with a header of its own. Each can be read by
// itself. It buffers: Flush has to come before Close. It is not safe for concurrent use.
//
// Once a write has failed nothing is written any more, and Flush returns the error. What goes wrong with cutting, or with
// removing what is too old, harms no line, and is told by Warn.
type Parts struct {
	dir  string
	opts PartsOptions

	file   *os.File
	out    *bufio.Writer
	header Header
	size   int64  // of the part so far
	lines  uint64 // of the run, with the header
	first  uint64 // the number of the part's first line
	due    int64  // the size at which it is cut
}

// PartsOptions say how a history is kept.
type PartsOptions struct {
	Size   int64 // of a part; 0: it is not cut
	Keep   Keep  // of parts and histories that are over
	Clock  func() lock.Instant
	Failed func(error) // told of the first write that failed
	Warn   func(error) // told of what goes wrong beside
}

// OpenParts begins a history in a folder, over what stands in its history.jsonl.
func OpenParts(dir string, o PartsOptions) (*Parts, error) {
	f, err := os.Create(filepath.Join(dir, FileName))
	if err != nil {
		return nil, err
	}
	p := &Parts{dir: dir, opts: o, file: f, due: o.Size}
	p.out = bufio.NewWriterSize(&watched{f, o.Failed, false}, 64<<10)
	p.prune()
	return p, nil
}

// A watched file tells of its first error, since who writes through a buffer may hear of it much later.
type watched struct {
	io.Writer
	failed func(error)
	told   bool
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil && !w.told {
		w.told = true
		w.failed(err)
	}
	return n, err
}

// Write appends one line, the header first.
func (p *Parts) Write(line []byte) (int, error) {
	switch {
	case p.lines == 0:
		return len(line), p.begin(line)
	case p.opts.Size > 0 && p.lines > p.first && p.size+int64(len(line)) > p.due:
		p.cut()
	}
	n, err := p.out.Write(line)
	p.size += int64(n)
	p.lines++
	return n, err
}

// begin writes the header of the run.
func (p *Parts) begin(text []byte) error {
	h, err := header(text)
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	p.header, p.lines, p.first = *h, 1, 1
	if p.opts.Size > 0 {
		p.header = h.part(1, 1, 0)
		text = p.header.line()
	}
	n, err := p.out.Write(text)
	p.size = int64(n)
	return err
}

// line returns a header as it is written.
func (h Header) line() []byte {
	b, _ := json.Marshal(line{"header", &h}) // nothing in it can fail
	return append(b, '\n')
}

// cut ends the part and begins the next. Where that fails the part grows on, and it is tried again later.
func (p *Parts) cut() {
	if p.out.Flush() != nil {
		return
	}
	h := p.header.part(p.header.Part+1, p.lines, p.opts.Clock())
	next, err := p.replace(h)
	if err != nil {
		p.due = p.size + p.opts.Size
		p.opts.Warn(fmt.Errorf("begin part %d of the history: %w", h.Part, err))
		return
	}
	if err := p.file.Close(); err != nil {
		p.opts.Warn(fmt.Errorf("close part %d of the history: %w", p.header.Part, err))
	}
	p.file, p.header, p.first = next, h, p.lines
	p.size, p.due = int64(len(h.line())), p.opts.Size
	p.out.Reset(&watched{next, p.opts.Failed, false})
	p.prune()
}

// replace makes the file of the next part, which has its header from the moment at which it can be seen.
func (p *Parts) replace(h Header) (next *os.File, err error) {
	path, temporary := filepath.Join(p.dir, FileName), filepath.Join(p.dir, nextName)
	if next, err = os.Create(temporary); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			next.Close()
			_ = os.Remove(temporary)
		}
	}()
	if _, err = next.Write(h.line()); err != nil {
		return nil, err
	}
	closed := ClosedPath(p.dir, p.header.Started, p.header.Part)
	if err = os.Rename(path, closed); err != nil {
		return nil, err
	}
	if err = os.Rename(temporary, path); err != nil {
		return nil, errors.Join(err, os.Rename(closed, path))
	}
	return next, nil
}

func (p *Parts) prune() {
	if err := p.opts.Keep.prune(p.dir); err != nil {
		p.opts.Warn(fmt.Errorf("remove old histories: %w", err))
	}
}

// Flush hands over what is buffered, and returns the first error of all.
func (p *Parts) Flush() error { return p.out.Flush() }

// Close closes the file.
func (p *Parts) Close() error { return p.file.Close() }
