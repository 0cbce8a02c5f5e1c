package admin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// An api holds what the routes need.
type api struct {
	gates Gates
	token string
}

// Handler returns the API over gates. With a token, each request has to show it.
func Handler(gates Gates, token string) http.Handler {
	a := &api{gates: gates, token: token}
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/signals", a.signals)
	routes.HandleFunc("POST /v1/signals/{name}", a.signal)
	return http.NewCrossOriginProtection().Handler(a.admit(routes))
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
		case a.token != "" && !a.shown(r):
			w.Header().Set("WWW-Authenticate", "Bearer")
			reply(w, http.StatusUnauthorized, refused{"expected the header Authorization: Bearer TOKEN"})
		case a.token == "" && !local(r.Host):
			reply(w, http.StatusForbidden, refused{"expected a request to localhost or a loopback address"})
		default:
			next.ServeHTTP(w, r)
		}
	})
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

// patience bounds how long one client may take, asking how long it may take to say what it wants, and farewell
// how long the end waits for those that are served.
const (
	patience = 5 * time.Second
	asking   = time.Second
	farewell = 250 * time.Millisecond
)

// Serve begins to serve; Close has to follow.
func Serve(ln net.Listener, h http.Handler) *Server {
	s := &Server{http: http.Server{Handler: h, ReadHeaderTimeout: asking, ReadTimeout: patience, WriteTimeout: patience, MaxHeaderBytes: 16 << 10}, done: make(chan error, 1)}
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
