package admin

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A board has the gates' answers, and what was given.
type board struct{ given []string }

func (b *board) Signals() []string { return []string{"go", "stay"} }

func (b *board) Waiting(name string) (int, bool) { return len(name), name == "go" }

func (b *board) Signal(name string) (heard, opened int) {
	b.given = append(b.given, name)
	if name == "stay" {
		return 0, 0
	}
	return 2, 1
}

func TestRoutes(t *testing.T) {
	for _, tt := range []struct {
		name, method, path, host, origin, auth string
		token                                  string
		status                                 int
		body                                   string
		given                                  string
	}{
		{name: "a signal", method: "POST", path: "/v1/signals/go", status: 200, body: `{"signal":"go","heard":2,"opened":1,"kept":false}`, given: "go"},
		{name: "one that is kept", method: "POST", path: "/v1/signals/stay", status: 200, body: `{"signal":"stay","heard":0,"opened":0,"kept":true}`, given: "stay"},
		{name: "what is waited for", method: "GET", path: "/v1/signals", status: 200, body: `{"signals":[{"signal":"go","waiting":2,"kept":true},{"signal":"stay","waiting":4,"kept":false}]}`},
		{name: "one that nobody waits for", method: "POST", path: "/v1/signals/gone", status: 404, body: `"signals":["go","stay"]`},
		{name: "no name", method: "POST", path: "/v1/signals/", status: 404},
		{name: "another method", method: "GET", path: "/v1/signals/go", status: 405},
		{name: "another path", method: "POST", path: "/v1/nothing", status: 404},
		{name: "another name of this host", method: "POST", path: "/v1/signals/go", host: "evil.example:8474", status: 403, body: "loopback"},
		{name: "localhost", method: "POST", path: "/v1/signals/go", host: "localhost:8474", status: 200, given: "go"},
		{name: "IPv6", method: "POST", path: "/v1/signals/go", host: "[::1]:8474", status: 200, given: "go"},
		{name: "IPv6 without a port", method: "POST", path: "/v1/signals/go", host: "[::1]", status: 200, given: "go"},
		{name: "a page from elsewhere", method: "POST", path: "/v1/signals/go", origin: "http://evil.example", status: 403},
		{name: "one that only asks", method: "GET", path: "/v1/signals", origin: "http://evil.example", status: 200},
		{name: "no token", method: "POST", path: "/v1/signals/go", token: "secret", status: 401, body: "Bearer"},
		{name: "a wrong token", method: "POST", path: "/v1/signals/go", token: "secret", auth: "Bearer guess", status: 401},
		{name: "no bearer", method: "POST", path: "/v1/signals/go", token: "secret", auth: "secret", status: 401},
		{name: "whether it is well, without the token", method: "GET", path: "/healthz", token: "secret", host: "10.0.0.7:8474", status: 200, body: `{"status":"ok"}`},
		{name: "whether it is ready, without the token", method: "GET", path: "/readyz", token: "secret", host: "10.0.0.7:8474", status: 200, body: `{"status":"ok"}`},
		{name: "a part that there is not", method: "GET", path: "/v1/events", status: 404},
		{name: "the token", method: "POST", path: "/v1/signals/go", token: "secret", auth: "Bearer secret", host: "staging:8474", status: 200, given: "go"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &board{}
			r := httptest.NewRequest(tt.method, tt.path, nil)
			if r.Host = tt.host; tt.host == "" {
				r.Host = "127.0.0.1:8474"
			}
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			if tt.auth != "" {
				r.Header.Set("Authorization", tt.auth)
			}
			w := httptest.NewRecorder()
			Handler(Parts{Gates: b}, tt.token).ServeHTTP(w, r)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, tt.status, tt.body)
			}
			if got := strings.Join(b.given, " "); got != tt.given {
				t.Errorf("given: %q, want %q", got, tt.given)
			}
		})
	}
}

// noGates has no rule that waits.
type noGates struct{}

func (noGates) Signals() []string          { return nil }
func (noGates) Waiting(string) (int, bool) { return 0, false }
func (noGates) Signal(string) (int, int)   { return 0, 0 }

// A client that reads the list finds one, not null.
func TestNoSignalsAreAnEmptyList(t *testing.T) {
	for path, method := range map[string]string{"/v1/signals": "GET", "/v1/signals/go": "POST"} {
		r := httptest.NewRequest(method, path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		Handler(Parts{Gates: noGates{}}, "").ServeHTTP(w, r)
		if !strings.Contains(w.Body.String(), `"signals":[]`) {
			t.Error(path, w.Body)
		}
	}
}

func TestOnlyATokenOpensItToOthers(t *testing.T) {
	if _, err := Listen("0.0.0.0:0", ""); !errors.Is(err, ErrOpen) {
		t.Errorf("without a token: %v", err)
	}
	for address, token := range map[string]string{"0.0.0.0:0": "secret", "127.0.0.1:0": "", "localhost:0": ""} {
		ln, err := Listen(address, token)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		ln.Close()
	}
}

func TestServesUntilClosed(t *testing.T) {
	ln, err := Listen("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(ln, Handler(Parts{Gates: &board{}}, ""))
	url := "http://" + ln.Addr().String() + "/v1/signals/go"
	r, err := http.Post(url, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 200 {
		t.Error(r.Status)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if r, err := http.Post(url, "", nil); err == nil {
		r.Body.Close()
		t.Error("it is served still")
	}
}

func TestCloseTellsOfAListenerThatFailed(t *testing.T) {
	ln, err := Listen("127.0.0.1:0", "")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	s := Serve(ln, Handler(Parts{Gates: &board{}}, ""))
	s.done <- <-s.done // it has failed by then
	if err := s.Close(); err == nil {
		t.Error("no error of a listener that was closed before")
	}
}

// pipes is a listener whose connections are in memory, so that time can be the test's.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.over) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// silent serves a client that says nothing.
func silent(t *testing.T) (*Server, net.Conn) {
	p := &pipes{conns: make(chan net.Conn), over: make(chan struct{})}
	s := Serve(p, Handler(Parts{Gates: &board{}}, ""))
	here, there := net.Pipe()
	p.conns <- there
	synctest.Wait()
	return s, here
}

// A client that connects and says nothing neither keeps the end waiting for long nor makes it fail.
func TestCloseDoesNotWaitForTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := silent(t)
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > farewell {
			t.Errorf("it took %v", took)
		}
		if _, err := client.Read(make([]byte, 1)); err == nil {
			t.Error("the client is connected still")
		}
	})
}

// Nor does it keep its place for long.
func TestTheSilentAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := silent(t)
		began := time.Now()
		if _, err := client.Read(make([]byte, 1)); err == nil || time.Since(began) != patience {
			t.Errorf("%v after %v, want an end after %v", err, time.Since(began), patience)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Whoever asks for what is not there is told of what is: by the document that lists it, or where there is none by its names.
func TestElsewhereNamesWhatThereIs(t *testing.T) {
	also := map[string]http.HandlerFunc{"/v1/verdicts": func(http.ResponseWriter, *http.Request) {}, "/v1/report": func(http.ResponseWriter, *http.Request) {}}
	for _, tt := range []struct {
		parts Parts
		want  string
	}{
		{Parts{}, "expected one that /v1/openapi.json lists"},
		{Parts{Also: also}, "expected one of /v1/report, /v1/verdicts"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/nothing", nil)
		r.Host = "localhost"
		Handler(tt.parts, "").ServeHTTP(w, r)
		if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), tt.want+`"`) {
			t.Errorf("%d %s, want %s", w.Code, w.Body, tt.want)
		}
	}
}
