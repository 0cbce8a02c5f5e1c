package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A disk takes what is written only once it is there.
type disk struct {
	there chan struct{}
	bytes.Buffer
}

func (d *disk) Write(p []byte) (int, error) {
	<-d.there
	return d.Buffer.Write(p)
}

// recording returns a record whose disk is not there yet.
func recording(t *testing.T, full WhenFull) (*Record, *disk) {
	t.Helper()
	d := &disk{there: make(chan struct{})}
	held := &bytes.Buffer{}
	w := history.NewWriter(held, history.Header{}, nil)
	flush := func() error {
		_, err := held.WriteTo(d)
		return err
	}
	return NewRecord(w, flush, engine(t), full, nil), d
}

// finished is an op whose line tells its number.
func finished(n int) *lock.Op {
	at := lock.Instant(n)
	return &lock.Op{Session: 1, Seq: uint64(n), Proto: lock.Redis, Kind: lock.Acquire, Verb: "SET", Key: "k", Outcome: lock.Refused, A: at, F: at, R: at, D: at}
}

// inHistory tells the lines of a history in order, ops that follow each other
// as one.
func inHistory(t *testing.T, text string) []string {
	t.Helper()
	h, err := history.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	from, ops := uint64(0), 0
	told := func() {
		if from != 0 {
			out = append(out, fmt.Sprintf("ops %d-%d", from, h.Ops[ops-1].Seq))
		}
		from = 0
	}
	gaps := 0
	for _, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		switch {
		case strings.Contains(line, `"type":"op"`):
			if ops++; from == 0 {
				from = h.Ops[ops-1].Seq
			}
		case strings.Contains(line, `"type":"gap"`):
			told()
			g := h.Gaps[gaps]
			out = append(out, fmt.Sprintf("gap of %d up to %d: %s", g.Lost, g.At, g.Why))
			gaps++
		default:
			told()
			out = append(out, line)
		}
	}
	told()
	return out
}

// A sidecar's traffic never waits for the disk: what does not fit is dropped
// and counted, and the record says where, and how much.
func TestRecordDropsRatherThanWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := recording(t, Drop)
		synctest.Wait() // the writer waits for the disk, with the header
		for n := 1; n <= queued+7; n++ {
			r.Op(finished(n))
		}
		if r.Lost() != 7 {
			t.Errorf("%d lost, want 7", r.Lost())
		}
		close(d.there)
		synctest.Wait()
		r.Op(finished(queued + 8))
		r.End(1, 5000, 9000)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		want := []string{
			fmt.Sprintf("ops 1-%d", queued),
			fmt.Sprintf("gap of 7 up to %d: %s", queued+7, slow),
			fmt.Sprintf("ops %d-%d", queued+8, queued+8),
			`{"type":"end","session":1,"at":5000,"seq":9000}`,
		}
		if got := inHistory(t, d.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the history has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A gap that nothing follows is told at the end.
func TestRecordTellsAGapAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := recording(t, Drop)
		synctest.Wait()
		for n := 1; n <= queued; n++ {
			r.Op(finished(n))
		}
		r.End(1, 99999, 1)
		closed := make(chan error)
		go func() { closed <- r.Close() }()
		synctest.Wait()
		close(d.there)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		got := inHistory(t, d.String())
		if want := "gap of 1 up to 99999: " + slow; got[len(got)-1] != want {
			t.Errorf("the history ends with %q, want %q", got[len(got)-1], want)
		}
	})
}

// In a run the wire waits for the disk, and nothing is lost.
func TestRecordWaitsRatherThanDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := recording(t, Wait)
		synctest.Wait()
		const most = 3*queued + 5
		passed := 0
		go func() {
			for n := 1; n <= most; n++ {
				r.Op(finished(n))
				passed++
			}
		}()
		synctest.Wait()
		if passed != queued {
			t.Errorf("%d ops passed a disk that is not there, want the %d that may wait", passed, queued)
		}
		close(d.there)
		synctest.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got, want := inHistory(t, d.String()), fmt.Sprintf("ops 1-%d", most); len(got) != 1 || got[0] != want || r.Lost() != 0 {
			t.Errorf("the history has %q and lost %d, want %q alone", got, r.Lost(), want)
		}
	})
}

// What is recorded of an op costs no allocation on the session's goroutine.
func TestRecordingAllocatesNothing(t *testing.T) {
	r, d := recording(t, Drop)
	op := finished(1)
	n := testing.AllocsPerRun(queued/2, func() { r.Op(op) })
	close(d.there)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n != 0 {
		t.Errorf("%v allocations for an op", n)
	}
}

// What the runner records never waits for the disk, since whoever is frozen
// waits for the runner.
func TestRecordOfAnInjectionNeverWaits(t *testing.T) {
	for _, full := range []WhenFull{Wait, Drop} {
		synctest.Test(t, func(t *testing.T) {
			r, d := recording(t, full)
			synctest.Wait() // the writer waits for the disk
			for n := 1; n <= queued; n++ {
				r.Op(finished(n))
			}
			recorded := make(chan struct{})
			go func() {
				defer close(recorded)
				r.Injection(history.Injection{ID: 1, Ended: 6000})
			}()
			synctest.Wait()
			select {
			case <-recorded:
			default:
				t.Error("an injection waits for the disk")
			}
			close(d.there)
			<-recorded
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if got := inHistory(t, d.String()); len(got) != 2 || !strings.Contains(got[1], `"type":"injection"`) {
				t.Errorf("the history has\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

// A disk that fails is told once, whichever of the writer and its buffer heard
// of it.
func TestRecordTellsOfAFailedDiskOnce(t *testing.T) {
	full := errors.New("no space left on device")
	for name, buffered := range map[string]int{"when flushed": 1 << 20, "when written": 16} {
		t.Run(name, func(t *testing.T) {
			b := bufio.NewWriterSize(failing{full}, buffered)
			r := NewRecord(history.NewWriter(b, history.Header{}, nil), b.Flush, engine(t), Drop, nil)
			for n := range 3 {
				r.Op(finished(n + 1))
			}
			err := r.Close()
			if want := "write history: " + full.Error(); !errors.Is(err, full) || err.Error() != want {
				t.Errorf("closed with %q, want %q", err, want)
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// heard has what an observer was told.
type heard []string

func (h *heard) Op(op *lock.Op) { *h = append(*h, fmt.Sprint("op ", op.Seq)) }
func (h *heard) End(session uint64, at lock.Instant) {
	*h = append(*h, fmt.Sprint("end ", session, at))
}
func (h *heard) Injection(in history.Injection) { *h = append(*h, "injection "+in.Rule) }

// An observer is told of what is written, in that order.
func TestRecordTellsItsObserver(t *testing.T) {
	var h heard
	r := NewRecord(history.NewWriter(&bytes.Buffer{}, history.Header{}, nil), func() error { return nil }, engine(t), Drop, &h)
	r.Op(finished(1))
	r.Injection(history.Injection{Rule: "rule"})
	r.Turn(history.Turn{Op: 9})
	r.End(3, 4, 5)
	r.Op(finished(2))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(h, ", "); got != "op 1, injection rule, end 3 4, op 2" {
		t.Errorf("told: %s", got)
	}
}
