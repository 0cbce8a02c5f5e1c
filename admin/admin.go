package admin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Parts are what the API is made of. What is nil is not served.
type Parts struct {
	Gates    Gates
	Rules    Rules
	Seen     Seen
	Freezing Freezing
	Stopping Stopping
	Events   http.Handler // the stream of the history
	Metrics  http.Handler
	Page     http.Handler
	State    func() any                  // what the page shows
	Clock    func() any                  // the time of the history
	Also     map[string]http.HandlerFunc // by path: what else may be asked for
	Ready    func() error                // why traffic is not served; nil: as soon as the API is
}

// An api holds what the routes need.
type api struct {
	parts Parts
	token string
}

// Handler returns the API over its parts. With a token, each request has to show it, but for those that ask only
// whether the daemon is well.
func Handler(p Parts, token string) http.Handler {
	a := &api{parts: p, token: token}
	routes, all := http.NewServeMux(), http.NewServeMux()
	list := a.routes()
	for _, r := range list {
		routes.HandleFunc(r.method+" "+r.path, r.serve)
	}
	routes.HandleFunc("/", a.elsewhere(list))
	all.HandleFunc("GET /healthz", a.healthy)
	all.HandleFunc("GET /readyz", a.ready)
	all.Handle("/", http.NewCrossOriginProtection().Handler(a.admit(routes)))
	return all
}

// A route is one that is behind the token.
type route struct {
	method, path string
	serve        http.HandlerFunc
}

// routes lists those of the parts that there are.
func (a *api) routes() (list []route) {
	p := a.parts
	add := func(method, path string, serve http.HandlerFunc) { list = append(list, route{method, path, serve}) }
	if p.Gates != nil {
		add("GET", "/v1/signals", a.signals)
		add("POST", "/v1/signals/{name}", a.signal)
	}
	if p.Rules != nil {
		add("GET", "/v1/rules", a.rules)
		add("POST", "/v1/rules", a.addRule)
		add("DELETE", "/v1/rules/{name}", a.removeRule)
		add("POST", "/v1/rules/{name}/arm", a.armRule)
		add("POST", "/v1/rules/{name}/disarm", a.disarmRule)
	}
	if p.Seen != nil {
		add("GET", "/v1/locks", a.locks)
		add("GET", "/v1/actors", a.actors)
		add("GET", "/v1/sessions", a.sessions)
	}
	if p.Freezing != nil {
		add("POST", "/v1/freeze", a.freeze)
		add("POST", "/v1/thaw", a.thaw)
	}
	if p.Stopping != nil {
		add("POST", "/v1/stop", a.stop)
	}
	if p.Events != nil {
		add("GET", "/v1/events", p.Events.ServeHTTP)
	}
	if p.State != nil {
		add("GET", "/v1/state", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, p.State()) })
	}
	if p.Clock != nil {
		add("GET", "/v1/clock", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, p.Clock()) })
	}
	for path, serve := range p.Also {
		add("GET", path, serve)
	}
	if p.Metrics != nil {
		add("GET", "/metrics", p.Metrics.ServeHTTP)
	}
	if p.Also == nil { // the document knows of nothing else
		add("GET", "/v1/openapi.json", openAPI)
	}
	return list
}

// elsewhere serves the page, and refuses what is no route.
func (a *api) elsewhere(list []route) http.HandlerFunc {
	allowed := map[string][]string{} // methods by path
	mux := http.NewServeMux()
	for _, r := range list {
		if allowed[r.path] == nil {
			mux.HandleFunc(r.path, func(http.ResponseWriter, *http.Request) {})
		}
		allowed[r.path] = append(allowed[r.path], r.method)
	}
	expected := "expected one that /v1/openapi.json lists"
	if allowed["/v1/openapi.json"] == nil {
		expected = "expected one of " + strings.Join(slices.Sorted(maps.Keys(allowed)), ", ")
	}
	return func(w http.ResponseWriter, r *http.Request) {
		_, path := mux.Handler(r)
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case path != "":
			w.Header().Set("Allow", strings.Join(allowed[path], ", "))
			reply(w, http.StatusMethodNotAllowed, refused{"expected " + strings.Join(allowed[path], " or ")})
		case a.parts.Page != nil && reads && !strings.HasPrefix(r.URL.Path, "/v1/"):
			a.parts.Page.ServeHTTP(w, r)
		default:
			reply(w, http.StatusNotFound, refused{"there is nothing at this path; " + expected})
		}
	}
}

// well is the answer to who asks whether the daemon is.
type well struct {
	Status string `json:"status"`
}

func (a *api) healthy(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, well{"ok"}) }

func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	if a.parts.Ready != nil && a.parts.Ready() != nil {
		reply(w, http.StatusServiceUnavailable, well{"not ready"})
		return
	}
	reply(w, http.StatusOK, well{"ok"})
}

// refused is the answer to what is not let in.
type refused struct {
	Error string `json:"error"`
}

// admit lets in who shows the token; without one, who speaks to this machine by an address of it, since
// a page from elsewhere can have its own name lead here.
func (a *api) admit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case a.token != "" && !a.shown(r) && !a.isPage(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			reply(w, http.StatusUnauthorized, refused{"expected the header Authorization: Bearer TOKEN"})
		case a.token == "" && !local(r.Host):
			reply(w, http.StatusForbidden, refused{"expected a request to localhost or a loopback address"})
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// isPage reports whether a request is for the page, which asks for the token itself and has nothing secret in it.
func (a *api) isPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return a.parts.Page != nil && reads && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/page/"))
}

func (a *api) shown(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) == 1
}

// local reports whether a host, which may have a port, is this machine by its loopback.
func local(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever has gone cannot be told
}

// ErrOpen says that an address can be reached from elsewhere and nothing guards it.
var ErrOpen = errors.New("it is no loopback address, and there is no token")

// Listen opens the API's listener. Without a token the address has to be one of loopback.
func Listen(address, token string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("listen on %s: expected HOST:PORT, such as 127.0.0.1:8474", address)
	}
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if token == "" && !local(ln.Addr().String()) {
		ln.Close()
		return nil, ErrOpen
	}
	return ln, nil
}

// A Server serves the API on one listener.
type Server struct {
	http http.Server
	done chan error
}

// patience bounds how long one client may take, also to say what it wants: browsers connect some time before they do.
// farewell is how long the end waits for those that are served.
const (
	patience = 5 * time.Second
	farewell = 250 * time.Millisecond
)

// Serve begins to serve; Close has to follow.
func Serve(ln net.Listener, h http.Handler) *Server {
	s := &Server{http: http.Server{Handler: h, ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: 16 << 10}, done: make(chan error, 1)}
	go func() { s.done <- s.http.Serve(ln) }()
	return s
}

// Close stops serving, waits a little for requests that are being answered, ends the connections that are left,
// and returns why it had ended before.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // whoever is connected and silent is owed nothing
		err = s.http.Close()
	}
	if served := <-s.done; !errors.Is(served, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", served)
	}
	if err != nil {
		return fmt.Errorf("shut down: %w", err)
	}
	return nil
}
