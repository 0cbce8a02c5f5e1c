package admin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

const aRun = "77e0a1c94b25d3f8"

// told is a history that is being written.
type told struct{ *history.Ring }

func (told) Run() string         { return aRun }
func (t told) At(n uint64) int64 { return int64(t.Ring.At(n)) }

// toldOf returns one with room for so many bytes, whose header and lines are there. The n-th line is written at n.
func toldOf(size int, lines ...string) told {
	now := lock.Instant(-1)
	t := told{history.NewRing(size, func() lock.Instant { now++; return now })}
	io.WriteString(t, `{"type":"header","schema":"1.1"}`+"\n")
	for _, l := range lines {
		io.WriteString(t, l+"\n")
	}
	return t
}

// counted is what a tally was told.
type counted struct{ now, most, lost atomic.Int64 }

func (c *counted) Consumers(by int)  { c.most.Store(max(c.most.Load(), c.now.Add(int64(by)))) }
func (c *counted) Lost(lines uint64) { c.lost.Add(int64(lines)) }

func TestEvents(t *testing.T) {
	short := []string{`{"type":"end","session":1}`, `{"type":"op","seq":2}`, `{"type":"vain","at":3}`}
	for _, tt := range []struct {
		name, query, last, accept string
		room                      int
		status                    int
		want                      string
	}{
		{name: "all of it", want: `
{"id":"RUN-0","event":{"type":"header","schema":"1.1"}}
{"id":"RUN-1","event":{"type":"end","session":1}}
{"id":"RUN-2","event":{"type":"op","seq":2}}
{"id":"RUN-3","event":{"type":"vain","at":3}}
`},
		{name: "behind what one has", query: "from=RUN-1", want: `
{"id":"RUN-2","event":{"type":"op","seq":2}}
{"id":"RUN-3","event":{"type":"vain","at":3}}
`},
		{name: "behind the last", query: "from=RUN-3", want: "\n"},
		{name: "a browser that comes again", query: "from=RUN-0", last: "RUN-2", want: `
{"id":"RUN-3","event":{"type":"vain","at":3}}
`},
		{name: "of another run", query: "from=0123456789abcdef-77&types=none", want: `
{"id":"RUN-0","event":{"type":"header","schema":"1.1"}}
`},
		{name: "only some types", query: "types=op,%20vain", want: `
{"id":"RUN-0","event":{"type":"header","schema":"1.1"}}
{"id":"RUN-2","event":{"type":"op","seq":2}}
{"id":"RUN-3","event":{"type":"vain","at":3}}
`},
		{name: "some are gone", room: 25, query: "types=op", want: `
{"id":"RUN-0","event":{"type":"header","schema":"1.1"}}
{"id":"RUN-2","event":{"type":"gap","at":3,"lost":2,"why":"no longer kept when the consumer came"}}
`},
		{name: "some are gone since", room: 25, query: "from=RUN-1", want: `
{"id":"RUN-2","event":{"type":"gap","at":3,"lost":1,"why":"the consumer was slower than the traffic"}}
{"id":"RUN-3","event":{"type":"vain","at":3}}
`},
		{name: "none that one wants is gone", room: 25, query: "from=RUN-2", want: `
{"id":"RUN-3","event":{"type":"vain","at":3}}
`},
		{name: "server-sent", accept: "text/event-stream", query: "from=RUN-1", want: `
id: RUN-2
event: op
data: {"type":"op","seq":2}

id: RUN-3
event: vain
data: {"type":"vain","at":3}

`},
		{name: "one that is yet to come", query: "from=RUN-4", status: 400, want: `
{"error":"from \"RUN-4\": there is no such event yet"}
`},
		{name: "no id", query: "from=4", status: 400, want: `
{"error":"from \"4\": expected the id of an event, RUN-N"}
`},
		{name: "no number", last: "RUN-x", status: 400, want: `
{"error":"from \"RUN-x\": expected the id of an event, RUN-N"}
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			size := tt.room
			if size == 0 {
				size = 1000
			}
			s := toldOf(size, short...)
			s.Close()
			r := httptest.NewRequest("GET", "/v1/events?"+strings.ReplaceAll(tt.query, "RUN", aRun), nil)
			r.Header.Set("Last-Event-ID", strings.ReplaceAll(tt.last, "RUN", aRun))
			r.Header.Set("Accept", tt.accept)
			w := httptest.NewRecorder()
			Events(s, nil).ServeHTTP(w, r)
			status := tt.status
			if status == 0 {
				status = 200
			}
			if got := "\n" + strings.ReplaceAll(w.Body.String(), aRun, "RUN"); got != tt.want || w.Code != status {
				t.Errorf("%d%s\nwant %d%s", w.Code, got, status, tt.want)
			}
			if tt.accept != "" && w.Header().Get("Content-Type") != tt.accept {
				t.Error(w.Header())
			}
		})
	}
}

// A house serves a stream over connections in memory.
type house struct {
	told
	*counted
	server *Server
	pipes  *pipes
}

func openHouse(size int) *house {
	h := &house{told: toldOf(size), counted: &counted{}, pipes: &pipes{conns: make(chan net.Conn), over: make(chan struct{})}}
	h.server = Serve(h.pipes, Handler(Parts{Events: Events(h.told, h.counted)}, ""))
	return h
}

func (h *house) close(t *testing.T) {
	t.Helper()
	h.told.Close()
	if err := h.server.Close(); err != nil {
		t.Error(err)
	}
}

// ask opens a connection and asks for the events behind the one with the number from; -1: for all.
func (h *house) ask(from int) net.Conn {
	here, there := net.Pipe()
	h.pipes.conns <- there
	query := ""
	if from >= 0 {
		query = fmt.Sprintf("?from=%s-%d", aRun, from)
	}
	fmt.Fprintf(here, "GET /v1/events%s HTTP/1.1\r\nHost: localhost\r\n\r\n", query)
	return here
}

// body reads the answer's head, and returns its body.
func body(t *testing.T, c net.Conn) *bufio.Reader {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	return bufio.NewReader(resp.Body)
}

// An event as it came.
type event struct {
	ID    string
	Event struct {
		Type    string
		Session int
		Lost    int
	}
}

func (e event) n() (n int) {
	fmt.Sscanf(e.ID, aRun+"-%d", &n)
	return n
}

// take reads one event, and what keeps silence from being mistaken for an end.
func take(t *testing.T, r *bufio.Reader) (e event, beats int) {
	t.Helper()
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if len(line) == 1 {
			beats++
			continue
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		return e, beats
	}
}

func (h *house) write(from, to int) {
	for n := from; n <= to; n++ {
		fmt.Fprintf(h.told, `{"type":"end","session":%06d}`+"\n", 100000+n)
	}
}

// A consumer that reads nothing holds up neither those that write the history nor other consumers. When it reads again it
// gets each line that was written, or is told exactly how many it did not get.
func TestAStuckConsumerHoldsUpNobody(t *testing.T) {
	const lines = 20_000
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(64 << 10)
		c, other := h.ask(-1), h.ask(-1)
		quick := make(chan int)
		go func() { // a pipe has no room at all: each of its writes waits for this reader
			r, got := body(t, other), 0
			for e := (event{}); e.n() < lines; {
				if e, _ = take(t, r); e.Event.Type == "gap" {
					got += e.Event.Lost
				} else if e.Event.Type == "end" {
					got++
				}
			}
			quick <- got
		}()
		synctest.Wait()
		began := time.Now()
		h.write(1, lines)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the writer waited for %v", waited)
		}
		if got := <-quick; got != lines {
			t.Errorf("the other consumer has %d of %d", got, lines)
		}
		before := h.lost.Load()
		time.Sleep(stuck - time.Second) // it has not been given up
		r, got, lost := body(t, c), 0, 0
		for last := -1; last < lines; {
			e, _ := take(t, r)
			switch e.Event.Type {
			case "gap":
				lost += e.Event.Lost
				if e.n() != last+e.Event.Lost {
					t.Errorf("a gap of %d after %d has the id of %d", e.Event.Lost, last, e.n())
				}
			case "end":
				got++
				fallthrough
			default:
				if e.n() != last+1 {
					t.Fatalf("%d came after %d", e.n(), last)
				}
			}
			last = e.n()
		}
		if lost == 0 || got+lost != lines || h.lost.Load()-before != int64(lost) {
			t.Errorf("%d lines and %d lost, %d of them counted; want %d in all", got, lost, h.lost.Load()-before, lines)
		}
		c.Close()
		other.Close()
		h.close(t)
	})
}

// One that reads nothing for long is given up. When it comes again it is told what it has lost.
func TestAConsumerThatStaysStuckIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(10 * len(`{"type":"end","session":100000}`+"\n"))
		c := h.ask(-1)
		r := body(t, c)
		take(t, r) // the header
		h.write(1, 1)
		time.Sleep(stuck + time.Second)
		if n := h.now.Load(); n != 0 {
			t.Errorf("%d consumers are served", n)
		}
		h.write(2, 25)
		again := h.ask(0)
		r = body(t, again)
		if e, _ := take(t, r); e.Event.Type != "gap" || e.Event.Lost != 15 || e.n() != 15 {
			t.Errorf("it is told %+v, want a gap of 15", e)
		}
		if e, _ := take(t, r); e.n() != 16 {
			t.Errorf("then comes %+v, want line 16", e)
		}
		c.Close()
		again.Close()
		h.close(t)
	})
}

// A stream outlasts what one request may take, and its silence is broken by signs of life.
func TestAStreamLastsAndShowsThatItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(1000)
		c := h.ask(-1)
		r := body(t, c)
		take(t, r)
		go func() {
			time.Sleep(4*heartbeat + time.Second)
			h.write(1, 1)
		}()
		if e, beats := take(t, r); e.n() != 1 || beats != 4 {
			t.Errorf("%+v after %d beats, want line 1 after 4", e, beats)
		}
		h.write(2, 2)
		take(t, r)
		go func() {
			time.Sleep(heartbeat - time.Second)
			h.write(3, 3)
			time.Sleep(heartbeat - time.Second)
			h.write(4, 4)
		}()
		if e, beats := take(t, r); e.n() != 3 || beats != 0 {
			t.Errorf("%+v after %d beats, want line 3 after none", e, beats)
		}
		if e, beats := take(t, r); e.n() != 4 || beats != 0 {
			t.Errorf("%+v after %d beats, want line 4 after none: it has not been silent for so long", e, beats)
		}
		h.told.Close()
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("the end of the run is %v to a consumer, want an orderly end", err)
		}
		h.close(t)
	})
}

// A consumer that hangs up is noticed at once, however long it was there.
func TestWhoHangsUpIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(1000)
		c := h.ask(-1)
		take(t, body(t, c))
		time.Sleep(2 * patience)
		if n := h.now.Load(); n != 1 {
			t.Errorf("%d consumers after a while", n)
		}
		c.Close()
		synctest.Wait()
		if n := h.now.Load(); n != 0 {
			t.Errorf("%d consumers are left", n)
		}
		h.close(t)
	})
}

func TestOnlySoManyConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(1000)
		var all []net.Conn
		for range MostConsumers {
			c := h.ask(-1)
			take(t, body(t, c))
			all = append(all, c)
		}
		c := h.ask(-1)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(text), "32 consumers") {
			t.Errorf("%d %s %s", resp.StatusCode, resp.Header, text)
		}
		all[0].Close()
		synctest.Wait()
		c2 := h.ask(-1)
		take(t, body(t, c2))
		if h.most.Load() != MostConsumers || h.now.Load() != MostConsumers {
			t.Errorf("%d consumers, %d at most", h.now.Load(), h.most.Load())
		}
		for _, c := range append(all, c, c2) {
			c.Close()
		}
		h.close(t)
	})
}

// A HEAD is told nothing and takes no place.
func TestEventsHead(t *testing.T) {
	h := Events(toldOf(1000, `{"type":"header"}`), nil) // which goes on
	for range MostConsumers + 1 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("HEAD", "/v1/events", nil))
		if w.Code != 200 || w.Body.Len() != 0 {
			t.Fatal(w.Code, w.Body)
		}
	}
}
