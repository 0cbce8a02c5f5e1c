package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/lock"
)

// A daemon is the admin API of one that has no traffic but what a test makes up.
type daemon struct {
	http *httptest.Server
	mu   sync.Mutex
	run  string
	ring *history.Ring
	open []context.CancelFunc
	hold lock.Instant
	at   lock.Instant
}

type served struct {
	*history.Ring
	run string
}

func (s served) Run() string       { return s.run }
func (s served) At(n uint64) int64 { return int64(s.Ring.At(n)) }
func (d *daemon) handler() http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ring == nil {
		return http.NotFoundHandler()
	}
	return admin.Handler(admin.Parts{Events: admin.Events(served{d.ring, d.run}, nil), Clock: d.clock}, "")
}

func (d *daemon) clock() any {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Tick{Run: d.run, At: d.at, Holding: d.hold}
}

func newDaemon(t *testing.T) *daemon {
	d := &daemon{}
	d.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		d.mu.Lock()
		d.open = append(d.open, cancel)
		d.mu.Unlock()
		d.handler().ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(func() {
		d.cut()
		d.http.Close()
	})
	return d
}

// start begins a run.
func (d *daemon) start(run string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.run, d.ring = run, history.NewRing(1<<20, nil)
}

// cut breaks all connections.
func (d *daemon) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, cancel := range d.open {
		cancel()
	}
	d.open = nil
	d.http.CloseClientConnections()
}

func (d *daemon) write(lines ...string) {
	for _, l := range lines {
		_, _ = d.ring.Write([]byte(l + "\n")) // it never fails
	}
}

func header(run string) string {
	b, _ := json.Marshal(history.Header{Schema: history.Schema, Run: run})
	return `{"type":"header",` + string(b[1:])
}

// A heard is what a source told, in order.
type heard struct {
	mu   sync.Mutex
	list []Message
	more chan struct{}
}

func follow(t *testing.T, src Source, from Position) *heard {
	ctx, cancel := context.WithCancel(t.Context())
	h := &heard{more: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		src.Follow(ctx, from, func(m Message) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.list = append(h.list, m)
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return h
}

// until waits for something to have been heard.
func (h *heard) until(t *testing.T, what string, is func([]Message) bool) []Message {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		list := append([]Message(nil), h.list...)
		h.mu.Unlock()
		if is(list) {
			return list
		}
	}
	t.Fatalf("not heard: %s", what)
	return nil
}

func lastIs(p Position) func([]Message) bool {
	return func(list []Message) bool { return len(list) > 0 && list[len(list)-1].Pos == p }
}

// What is told goes on behind the last line when the connection breaks, and when the daemon is started anew it begins with
// the new run's header.
func TestStreamGoesOn(t *testing.T) {
	const a, b = "00000000000000aa", "00000000000000bb"
	d := newDaemon(t)
	d.start(a)
	d.write(header(a), `{"type":"end","session":1,"at":1}`)
	h := follow(t, Stream{URL: d.http.URL, Client: d.http.Client()}, Position{})
	h.until(t, "the first lines", lastIs(Position{a, 1}))
	d.cut()
	d.write(`{"type":"end","session":2,"at":2}`)
	h.until(t, "the line behind the break", lastIs(Position{a, 2}))
	d.start(b)
	d.cut()
	d.write(header(b), `{"type":"end","session":1,"at":1}`)
	list := h.until(t, "the next run", lastIs(Position{b, 1}))
	var told []string
	for _, m := range list {
		switch {
		case m.Over: // whoever cut the connection may have done so in order
		case m.Up:
			told = append(told, "up")
		case m.Down != "":
			if last := len(told) - 1; last < 0 || told[last] != "down" {
				told = append(told, "down")
			}
		default:
			told = append(told, m.Pos.Run[14:]+"-"+fmt.Sprint(m.Pos.N))
		}
	}
	if got, want := fmt.Sprint(told), "[up aa-0 aa-1 down up aa-2 down up bb-0 bb-1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The end of a run that ends in order is told; a connection that breaks is no such end.
func TestStreamTellsTheEnd(t *testing.T) {
	const a = "00000000000000aa"
	d := newDaemon(t)
	d.start(a)
	d.write(header(a))
	h := follow(t, Stream{URL: d.http.URL, Client: d.http.Client()}, Position{})
	h.until(t, "the header", lastIs(Position{a, 0}))
	d.ring.Close()
	h.until(t, "the end", func(list []Message) bool {
		for _, m := range list {
			if m.Over {
				return true
			}
		}
		return false
	})
}

// A token that the daemon wants is shown, and who does not have it hears why nothing is told.
func TestStreamShowsItsToken(t *testing.T) {
	ring := history.NewRing(1<<20, nil)
	_, _ = ring.Write([]byte(header("00000000000000aa") + "\n"))
	s := httptest.NewServer(admin.Handler(admin.Parts{Events: admin.Events(served{ring, "00000000000000aa"}, nil)}, "secret"))
	defer s.Close()
	h := follow(t, Stream{URL: s.URL, Token: "guess", TokenFrom: "SOME_TOKEN", Client: s.Client()}, Position{})
	list := h.until(t, "a refusal", func(list []Message) bool { return len(list) > 0 })
	if list[0].Down != s.URL+" refuses the token in SOME_TOKEN" {
		t.Errorf("%+v", list[0])
	}
	if _, err := (Stream{URL: s.URL, TokenFrom: "SOME_TOKEN", Client: s.Client()}).open(t.Context(), Position{}); err == nil || err.Error() != s.URL+" wants a token; expected it in SOME_TOKEN" {
		t.Errorf("without one: %v", err)
	}
	ring.Close()
	follow(t, Stream{URL: s.URL, Token: "secret", Client: s.Client()}, Position{}).until(t, "the header", func(list []Message) bool { return len(list) > 1 && list[1].Line != nil })
}
