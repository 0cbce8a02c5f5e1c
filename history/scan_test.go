package history_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/history"
)

const headerLine = `{"type":"header","schema":"1.1"}` + "\n"

func endLine(n int) string { return fmt.Sprintf(`{"type":"end","session":%d}`+"\n", n) }

func TestScanHandsOverWhatIsThereWithoutWaitingForMore(t *testing.T) {
	r, w := io.Pipe()
	seen := make(chan history.Entry)
	done := make(chan error)
	go func() {
		done <- history.Scan(r, func(e history.Entry) error { seen <- e; return nil })
	}()
	for _, line := range []string{headerLine, endLine(1), endLine(2)} {
		io.WriteString(w, line)
		if e := <-seen; e == (history.Entry{}) {
			t.Errorf("nothing was handed over for %s", line)
		}
	}
	w.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestScanEndsAtTheErrorOfTake(t *testing.T) {
	r := &counted{Reader: strings.NewReader(headerLine + strings.Repeat(endLine(1), 100_000))}
	enough := errors.New("enough")
	taken := 0
	err := history.Scan(r, func(history.Entry) error {
		if taken++; taken == 3 {
			return enough
		}
		return nil
	})
	read := r.n
	if !errors.Is(err, enough) || taken != 3 {
		t.Errorf("got %v after %d; expected take's own error after 3", err, taken)
	}
	if rest, _ := io.Copy(io.Discard, r); rest == 0 || read == 0 {
		t.Errorf("it read %d bytes and left %d; expected it to stop early", read, rest)
	}
}

func TestScanHandsOverAllBeforeALineThatIsBad(t *testing.T) {
	for _, before := range []int{0, 1, 255, 256, 600} {
		taken := 0
		err := history.Scan(strings.NewReader(headerLine+strings.Repeat(endLine(1), before)+"{}}\n"),
			func(history.Entry) error { taken++; return nil })
		if want := fmt.Sprintf("line %d", before+2); err == nil || !strings.Contains(err.Error(), want) || taken != before+1 {
			t.Errorf("got %v after %d entries; expected %s after %d", err, taken, want, before+1)
		}
	}
}

// A counted reader counts the bytes that were read.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

func TestDecoderTakesTheLinesOfOneRunAfterAnother(t *testing.T) {
	d := history.NewDecoder()
	for range 2 {
		e, err := d.Line([]byte(headerLine))
		if err != nil || e.Header == nil {
			t.Errorf("the header: %+v %v", e, err)
		}
		e, err = d.Line([]byte(endLine(7)))
		if err != nil || e.End == nil || e.End.Session != 7 {
			t.Errorf("an end: %+v %v", e, err)
		}
	}
	if e, err := d.Line([]byte(`{"type":"something new"}`)); err != nil || e != (history.Entry{}) {
		t.Errorf("what is not known: %+v %v", e, err)
	}
	if _, err := d.Line([]byte(`{"type":"op","seq":`)); err == nil {
		t.Error("no error of a line that is cut off")
	}
	if _, err := d.Line([]byte(`{"type":"header","schema":"9.0"}`)); !errors.Is(err, history.ErrNewer) {
		t.Errorf("a newer header: %v", err)
	}
}
