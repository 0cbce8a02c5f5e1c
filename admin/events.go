package admin

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Stream is the history of a run while it is written. Its lines are counted from the
// header, which is 0.
type Stream interface {
	// Run names the run.
	Run() string
	// Read returns the lines from a number on, at most max, and the number of the line behind them. Of those asked for, lost
	// are gone. Where there is none yet, more is closed once there is one, or none will come; it is nil where none will.
	Read(from uint64, max int) (lines [][]byte, next uint64, lost uint64, more <-chan struct{})
	// At returns an instant by which a line, and all before it, had been written, in nanoseconds of the run's clock.
	At(n uint64) int64
	// End returns the number that the next line will have.
	End() uint64
}

// A Tally of consumers is told of them as they come and go, and of what they lose. Its methods may be called
// concurrently.
type Tally interface {
	Consumers(by int)
	Lost(lines uint64)
}

// The bounds of the stream: how many may read it at once, how many lines go into one write, how long a write may wait for
// a consumer that does not read, and how long there is silence.
const (
	MostConsumers = 32
	linesAtOnce   = 256
	stuck         = 30 * time.Second
	heartbeat     = 15 * time.Second
)

// Why a stream has a gap: what had gone before the consumer came, and what went while it was served.
const (
	forgotten = "no longer kept when the consumer came"
	slower    = "the consumer was slower than the traffic"
)

// events serves a stream to each that asks.
type events struct {
	stream Stream
	tally  Tally
	places chan struct{} // one for each consumer there may be
}

// Events returns the handler of /v1/events. It holds up nobody but the consumer itself: who does not read loses lines, and
// is told how many. tally may be nil.
func Events(s Stream, t Tally) http.Handler {
	if t == nil {
		t = nobody{}
	}
	return &events{stream: s, tally: t, places: make(chan struct{}, MostConsumers)}
}

type nobody struct{}

func (nobody) Consumers(int) {}
func (nobody) Lost(uint64)   {}

func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	from, err := e.start(r)
	switch {
	case err != nil:
		reply(w, http.StatusBadRequest, refused{err.Error()})
		return
	case r.Method == http.MethodHead:
		return // it is told nothing, and would take a place for as long as its connection lives
	}
	select {
	case e.places <- struct{}{}:
		defer func() { <-e.places }()
	default:
		w.Header().Set("Retry-After", "5")
		reply(w, http.StatusServiceUnavailable, refused{fmt.Sprintf("%d consumers read the events already; expected fewer", MostConsumers)})
		return
	}
	e.tally.Consumers(1)
	defer e.tally.Consumers(-1)
	c := &consumer{events: e, w: w, rc: http.NewResponseController(w), form: formOf(r), at: from, came: from, types: typesOf(r)}
	if from == 0 {
		c.came = e.stream.End()
	}
	c.serve(r)
}

// start returns the number of the first line that a request asks for: behind the one that it has, if that is of this run.
func (e *events) start(r *http.Request) (uint64, error) {
	last := r.Header.Get("Last-Event-ID") // a browser that comes again sends it, with the address that it had at first
	if last == "" {
		last = r.URL.Query().Get("from")
	}
	if last == "" {
		return 0, nil
	}
	i := strings.LastIndexByte(last, '-')
	n, err := strconv.ParseUint(last[i+1:], 10, 63)
	switch {
	case i <= 0 || err != nil:
		return 0, fmt.Errorf("from %q: expected the id of an event, RUN-N", last)
	case last[:i] != e.stream.Run():
		return 0, nil
	case n >= e.stream.End():
		return 0, fmt.Errorf("from %q: there is no such event yet", last)
	}
	return n + 1, nil
}

// typesOf returns the types of line that are wanted; nil: all.
func typesOf(r *http.Request) map[string]bool {
	list := r.URL.Query().Get("types")
	if list == "" {
		return nil
	}
	types := map[string]bool{"header": true, "gap": true} // without which the others cannot be understood
	for _, t := range strings.Split(list, ",") {
		types[strings.TrimSpace(t)] = true
	}
	return types
}

// A consumer is one who reads the stream.
type consumer struct {
	*events
	w     http.ResponseWriter
	rc    *http.ResponseController
	form  form
	at    uint64 // the number of the line that it is to have next
	came  uint64 // the number of the first line that was written when it was there, or that it knows it is owed
	types map[string]bool
	out   bytes.Buffer // for the next write
}

// serve ends when the run does, or the consumer.
func (c *consumer) serve(r *http.Request) {
	c.w.Header().Set("Content-Type", c.form.mime())
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.Header().Set("X-Accel-Buffering", "no") // which proxies that keep answers back go by
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		more := c.fill()
		if c.out.Len() > 0 {
			beat.Reset(heartbeat)
		}
		if c.write() != nil {
			return
		}
		if more == nil {
			if c.over() {
				return
			}
			continue
		}
		select {
		case <-more:
		case <-beat.C:
			c.form.beat(&c.out)
		case <-r.Context().Done():
			return
		}
	}
}

// fill takes what is there, and returns what tells that there is more; nil if that may be now.
func (c *consumer) fill() <-chan struct{} {
	from := c.at
	lines, next, lost, more := c.stream.Read(from, linesAtOnce)
	if lost > 0 {
		from += lost
		why := forgotten
		if late := from - min(from, max(c.came, from-lost)); late > 0 {
			c.tally.Lost(late)
			why = slower
		}
		gap := fmt.Appendf(nil, `{"type":"gap","at":%d,"lost":%d,"why":%q}`, c.stream.At(from), lost, why)
		c.form.event(&c.out, c.id(from-1), "gap", gap)
	}
	for i, line := range lines {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if t := typeOf(line); c.types == nil || c.types[t] {
			c.form.event(&c.out, c.id(from+uint64(i)), t, line)
		}
	}
	c.at = next
	return more
}

func (c *consumer) id(n uint64) string { return c.stream.Run() + "-" + strconv.FormatUint(n, 10) }

// over reports whether there is nothing left, and will be nothing.
func (c *consumer) over() bool {
	lines, _, lost, more := c.stream.Read(c.at, 1)
	return len(lines) == 0 && lost == 0 && more == nil
}

// write hands over what there is, within the time that a consumer has.
func (c *consumer) write() error {
	if err := c.rc.SetWriteDeadline(time.Now().Add(stuck)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := c.w.Write(c.out.Bytes()); err != nil {
		return err
	}
	c.out.Reset()
	return c.rc.Flush()
}

var typeStart = []byte(`{"type":"`)

// typeOf returns the type of a line, with which each begins.
func typeOf(line []byte) string {
	rest, _ := bytes.CutPrefix(line, typeStart)
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}

// A form is how events are written.
type form interface {
	mime() string
	event(b *bytes.Buffer, id, kind string, line []byte)
	beat(b *bytes.Buffer)
}

// formOf returns what a request accepts: lines of JSON unless it says that it takes server-sent events.
func formOf(r *http.Request) form {
	for _, accept := range r.Header.Values("Accept") {
		if strings.Contains(accept, sse{}.mime()) {
			return sse{}
		}
	}
	return ndjson{}
}

type ndjson struct{}

func (ndjson) mime() string { return "application/x-ndjson" }

func (ndjson) event(b *bytes.Buffer, id, _ string, line []byte) {
	b.WriteString(`{"id":"` + id + `","event":`)
	b.Write(line)
	b.WriteString("}\n")
}

func (ndjson) beat(b *bytes.Buffer) { b.WriteByte('\n') }

type sse struct{}

func (sse) mime() string { return "text/event-stream" }

func (sse) event(b *bytes.Buffer, id, kind string, line []byte) {
	b.WriteString("id: " + id + "\nevent: " + kind + "\ndata: ")
	b.Write(line)
	b.WriteString("\n\n")
}

func (sse) beat(b *bytes.Buffer) { b.WriteString(":\n\n") }
