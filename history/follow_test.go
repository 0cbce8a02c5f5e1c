package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

// sessions reads on and tells what came: for each run the numbers of its lines, in stretches without a hole, and gaps. It
// checks that each line is the one that its number says.
func sessions(t testing.TB, f *Follower) string {
	t.Helper()
	var out []string
	var from, last Line
	stretch := func() {
		if from.Run != "" {
			out = append(out, fmt.Sprintf("%s:%d-%d", from.Run, from.N, last.N))
		}
		from = Line{}
	}
	d := NewDecoder()
	for {
		lines, err := f.Next(7)
		if err != nil {
			t.Fatal(err)
		}
		if len(lines) == 0 {
			stretch()
			return strings.Join(out, " ")
		}
		for _, l := range lines {
			e, err := d.Line(l.Text)
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Gap != nil:
				stretch()
				at := fmt.Sprint(e.Gap.At)
				if e.Gap.At == lock.Never {
					at = "the end"
				}
				out = append(out, fmt.Sprintf("gap(%s:%d lost %d by %s)", l.Run, l.N, e.Gap.Lost, at))
				continue
			case e.Header != nil:
				if e.Header.Run != l.Run || l.N != 0 || e.Header.Part != 0 {
					t.Errorf("header %+v as line %d of %s", e.Header, l.N, l.Run)
				}
			case e.End == nil || e.End.Session != l.N:
				t.Errorf("line %d of %s is %s", l.N, l.Run, l.Text)
			}
			if from.Run != "" && (l.Run != last.Run || l.N != last.N+1) {
				stretch()
			}
			if from.Run == "" {
				from = l
			}
			last = l
		}
	}
}

func wants(t *testing.T, f *Follower, want string) {
	t.Helper()
	if got := sessions(t, f); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// following follows a folder until the test is over.
func following(t *testing.T, dir string) *Follower {
	f := Follow(dir)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestFollowsWhatGrows(t *testing.T) {
	dir := t.TempDir()
	f := following(t, dir)
	wants(t, f, "")
	w := writingTo(t, dir, "aaaa", began, 400, Keep{})
	wants(t, f, "aaaa:0-0")
	wants(t, f, "")
	w.lines(3)
	wants(t, f, "aaaa:1-3")
	w.lines(30) // through several parts
	wants(t, f, "aaaa:4-33")
	w.lines(5)
	w.lines(20)
	wants(t, f, "aaaa:34-58")
	w.end()
	wants(t, f, "")
	w = writingTo(t, dir, "bbbb", began.Add(time.Minute), 400, Keep{})
	w.lines(12)
	wants(t, f, "bbbb:0-12")
	w.end()
}

func TestFollowsAnUncutHistory(t *testing.T) {
	dir := t.TempDir()
	w := writingTo(t, dir, "aaaa", began, 0, Keep{}).lines(9)
	f := following(t, dir)
	wants(t, f, "aaaa:0-9")
	w.lines(1).end()
	wants(t, f, "aaaa:10-10")
	writingTo(t, dir, "bbbb", began.Add(time.Minute), 0, Keep{}).lines(2).end()
	wants(t, f, "bbbb:0-2")
}

// A run that begins while nobody looks, and one after it, are read in their order.
func TestFollowsThroughRunsThatItDidNotSee(t *testing.T) {
	dir := t.TempDir()
	a := writingTo(t, dir, "aaaa", began, 400, Keep{}).lines(2)
	f := following(t, dir)
	wants(t, f, "aaaa:0-2")
	a.lines(20).end()
	writingTo(t, dir, "bbbb", began.Add(time.Minute), 400, Keep{}).lines(20).end()
	writingTo(t, dir, "cccc", began.Add(2*time.Minute), 400, Keep{}).lines(4).end()
	wants(t, f, "aaaa:3-22 bbbb:0-20 cccc:0-4")
}

// The wall clock of the machine may be set back between two runs.
func TestFollowsARunThatBeganBeforeItsFormer(t *testing.T) {
	dir := t.TempDir()
	writingTo(t, dir, "aaaa", began, 400, Keep{}).lines(20).end()
	f := following(t, dir)
	wants(t, f, "aaaa:0-20")
	writingTo(t, dir, "bbbb", began.Add(-time.Hour), 0, Keep{}).lines(4).end()
	wants(t, f, "bbbb:0-4")
	wants(t, f, "")
}

func TestFollowBeginsWithTheNewestRun(t *testing.T) {
	dir := t.TempDir()
	writingTo(t, dir, "aaaa", began, 400, Keep{}).lines(20).end()
	writingTo(t, dir, "bbbb", began.Add(time.Minute), 400, Keep{}).lines(20).end()
	f := following(t, dir)
	wants(t, f, "bbbb:0-20")
}

func TestFollowGoesOnBehindALine(t *testing.T) {
	dir := t.TempDir()
	writingTo(t, dir, "aaaa", began, 400, Keep{}).lines(25).end()
	b := writingTo(t, dir, "bbbb", began.Add(time.Minute), 400, Keep{}).lines(25)
	for _, tt := range []struct {
		run  string
		last uint64
		want string
	}{
		{"aaaa", 0, "aaaa:1-25 bbbb:0-25"},
		{"aaaa", 12, "aaaa:13-25 bbbb:0-25"},
		{"aaaa", 25, "bbbb:0-25"},
		{"aaaa", 40, "bbbb:0-25"}, // it was heard of otherwise, and did not come into the file
		{"bbbb", 24, "bbbb:25-25"},
		{"bbbb", 25, ""},
		{"xxxx", 3, "gap(xxxx:4 lost 1 by the end) aaaa:0-25 bbbb:0-25"},
	} {
		f := FollowFrom(dir, tt.run, tt.last)
		if got := sessions(t, f); got != tt.want {
			t.Errorf("behind %s-%d came %q, want %q", tt.run, tt.last, got, tt.want)
		}
		f.Close()
	}
	f := FollowFrom(dir, "bbbb", 27) // the file has yet to have these
	defer f.Close()
	wants(t, f, "")
	b.lines(30).end()
	wants(t, f, "bbbb:28-55")
}

// Parts that are gone before they were read are a gap, of as many lines as they had.
func TestFollowTellsWhatIsGone(t *testing.T) {
	dir := t.TempDir()
	w := writingTo(t, dir, "aaaa", began, 400, Keep{Files: 1}).lines(5)
	f := following(t, dir)
	wants(t, f, "aaaa:0-5")
	w.lines(45)
	// The part that was open is read to its end all the same.
	wants(t, f, "aaaa:6-8 gap(aaaa:36 lost 28 by 37000) aaaa:37-50")
	w.end()
	late := following(t, dir)
	wants(t, late, "aaaa:0-0 gap(aaaa:36 lost 36 by 37000) aaaa:37-50")
	writingTo(t, dir, "bbbb", began.Add(time.Minute), 400, Keep{Files: 1}).lines(30).end()
	behind := FollowFrom(dir, "aaaa", 44)
	defer behind.Close()
	wants(t, behind, "gap(aaaa:45 lost 1 by the end) bbbb:0-0 gap(bbbb:22 lost 22 by 23000) bbbb:23-30")
}

// What was left of a run is gone with the part that is open, when all of the run was removed before the next was seen.
func TestFollowTellsThatTheRestOfARunIsGone(t *testing.T) {
	for _, tt := range []struct {
		size       int64
		more, next int
		want       string
	}{
		{400, 45, 30, "aaaa:6-8 gap(aaaa:9 lost 1 by the end) bbbb:0-0 gap(bbbb:22 lost 22 by 23000) bbbb:23-30"},
		{400, 45, 3, "aaaa:6-8 gap(aaaa:43 lost 35 by 44000) aaaa:44-50 bbbb:0-3"}, // its last part is there still
		{0, 45, 30, "aaaa:6-50 bbbb:0-30"}, // its only file has been read to its end
	} {
		dir := t.TempDir()
		w := writingTo(t, dir, "aaaa", began, tt.size, Keep{Files: 1}).lines(5)
		f := following(t, dir)
		wants(t, f, "aaaa:0-5")
		w.lines(tt.more).end()
		writingTo(t, dir, "bbbb", began.Add(time.Minute), tt.size, Keep{Files: 1}).lines(tt.next).end()
		if tt.size == 0 {
			removeOf(t, dir, "aaaa")
		}
		wants(t, f, tt.want)
	}
}

// removeOf removes the files of a run.
func removeOf(t *testing.T, dir, run string) {
	t.Helper()
	files, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range files {
		if c.header.run() != run {
			continue
		}
		if err := os.Remove(filepath.Join(dir, c.name)); err != nil {
			t.Fatal(err)
		}
	}
}

// The last line of a daemon that was killed is cut off. It is no line, and a gap once it is clear that its rest will
// not come.
func TestFollowWaitsForTheRestOfALine(t *testing.T) {
	dir := t.TempDir()
	w := writingTo(t, dir, "aaaa", began, 0, Keep{}).lines(3)
	f := following(t, dir)
	half := func(text string) {
		if _, err := w.file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	half(`{"type":"end","ses`)
	wants(t, f, "aaaa:0-3")
	half(`sion":4,"at"`)
	wants(t, f, "")
	half(`:9}` + "\n" + `{"type":"end"`)
	wants(t, f, "aaaa:4-4")
	w.end()
	writingTo(t, dir, "bbbb", began.Add(time.Minute), 0, Keep{}).lines(1).end()
	wants(t, f, "gap(aaaa:5 lost 1 by the end) bbbb:0-1")
	had := FollowFrom(dir, "aaaa", 5) // by the API it was whole
	defer had.Close()
	wants(t, had, "bbbb:0-1")
}

// Whatever is written, cut and removed while it is followed, each line comes once, in order, or is counted.
func TestFollowWhileItIsCutAndRemoved(t *testing.T) {
	dir := t.TempDir()
	const runs, each = 4, 3000
	w := writingTo(t, dir, "r0", began, 2000, Keep{Files: 3}) // there is something before it is followed
	over := make(chan struct{})
	go func() {
		defer close(over)
		for run := range runs {
			for range each / 10 {
				w.lines(10)
			}
			w.end()
			if run < runs-1 {
				w = writingTo(t, dir, fmt.Sprintf("r%d", run+1), began.Add(time.Duration(run+1)*time.Minute), 2000, Keep{Files: 3})
			}
		}
	}()
	f := following(t, dir)
	d := NewDecoder()
	var run string
	var next, got, lost uint64
	for ended := false; ; {
		lines, err := f.Next(50)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			e, err := d.Line(l.Text)
			switch {
			case err != nil:
				t.Fatal(err)
			case e.Header != nil:
				run, next = l.Run, 1
				continue
			case l.Run != run:
				t.Fatalf("a line of %s came in %s", l.Run, run)
			case e.Gap != nil:
				lost += uint64(e.Gap.Lost)
				if l.N+1 != next+uint64(e.Gap.Lost) {
					t.Fatalf("a gap of %d up to %d, where %d is next", e.Gap.Lost, l.N, next)
				}
			default:
				if got++; e.End == nil || e.End.Session != l.N || l.N != next {
					t.Fatalf("line %d of %s is %s, where %d is next", l.N, l.Run, l.Text, next)
				}
			}
			next = l.N + 1
		}
		if len(lines) > 0 {
			continue
		}
		if ended {
			break
		}
		select {
		case <-over:
			ended = true
		default:
		}
	}
	if run != fmt.Sprintf("r%d", runs-1) || next != each+1 || got == 0 {
		t.Errorf("it ended with line %d of %s, after %d lines and %d that were gone", next-1, run, got, lost)
	}
	t.Logf("%d lines, and %d that were gone", got, lost)
}

// Between a look at the folder and the opening of a file its name may have gone to another.
func TestFollowOpensNoOther(t *testing.T) {
	dir := t.TempDir()
	w := writingTo(t, dir, "aaaa", began, 400, Keep{}).lines(3)
	defer w.end()
	f := following(t, dir)
	seen, err := look(dir, FileName)
	if err != nil {
		t.Fatal(err)
	}
	w.lines(20)
	for _, c := range []file{seen, {name: "history-20260801T120000Z.000099.jsonl", header: seen.header}} {
		if err := f.open(c); err != nil || f.file != nil {
			t.Errorf("%s of part %d: %v, %v", c.name, c.header.Part, err, f.file)
		}
	}
	wants(t, f, "aaaa:0-23")
}

func TestARunIsReadAsOne(t *testing.T) {
	dir := t.TempDir()
	writingTo(t, dir, "aaaa", began, 400, Keep{}).lines(25).end()
	w := writingTo(t, dir, "bbbb", began.Add(time.Minute), 400, Keep{}).lines(25)
	fmt.Fprint(w.file, `{"type":"end","ses`)
	w.end()
	read := func() *History {
		r, err := OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		h, err := Read(r)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := read()
	if len(h.Ends) != 25 || h.Header.Run != "bbbb" || len(h.Gaps) != 1 || h.Gaps[0].Why != cutOff {
		t.Errorf("%d lines of %s, gaps %v", len(h.Ends), h.Header.Run, h.Gaps)
	}
	if err := os.Remove(filepath.Join(dir, "history-20260801T120100Z.000001.jsonl")); err != nil {
		t.Fatal(err)
	}
	if h = read(); len(h.Ends) != 17 || len(h.Gaps) != 2 || h.Gaps[0].Lost != 8 {
		t.Errorf("without its first part: %d lines, gaps %v", len(h.Ends), h.Gaps)
	}
	if _, err := OpenRun(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of an empty folder: %v", err)
	}
	writingTo(t, dir, "cccc", began.Add(-time.Hour), 0, Keep{}).lines(3).end()
	if h = read(); len(h.Ends) != 3 || h.Header.Run != "cccc" {
		t.Errorf("one that is not cut: %d lines of %s", len(h.Ends), h.Header.Run)
	}
}
