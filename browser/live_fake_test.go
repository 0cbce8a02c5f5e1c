package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/live"
)

// A fake is a daemon that shows what it is told to.
type fake struct {
	*httptest.Server
	mutex  sync.Mutex
	show   func(now time.Time) live.Snapshot
	token  string
	orders []string
	refuse string // why orders are refused
	asked  int    // how often
	held   bool   // nothing is answered, until it is let go
	wait   int    // how many wait for that
}

func serve(t *testing.T, show func(time.Time) live.Snapshot) *fake {
	f := &fake{show: show}
	mux := http.NewServeMux()
	mux.Handle("GET /", live.Page("lockfaultd"))
	mux.HandleFunc("GET /v1/state", f.state)
	mux.HandleFunc("POST /v1/", f.order)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// hold leaves questions without an answer, or with false lets them have theirs again.
func (f *fake) hold(held bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.held = held
}

// waiting is how many questions have no answer yet.
func (f *fake) waiting() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.wait
}

// guard has the API want a token from now on.
func (f *fake) guard(token string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.token = token
}

func (f *fake) change(show func(time.Time) live.Snapshot) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.show = show
}

func (f *fake) deny(why string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.refuse = why
}

// take returns what it was told since it was last asked.
func (f *fake) take() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	told := f.orders
	f.orders = nil
	return told
}

// count is how often the state was asked for.
func (f *fake) count() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.asked
}

func (f *fake) admits(w http.ResponseWriter, r *http.Request) bool {
	if f.token == "" || r.Header.Get("Authorization") == "Bearer "+f.token {
		return true
	}
	answer(w, http.StatusUnauthorized, map[string]string{"error": "expected the header Authorization: Bearer TOKEN"})
	return false
}

func (f *fake) state(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	f.wait++
	for f.held && r.Context().Err() == nil {
		f.mutex.Unlock()
		time.Sleep(10 * time.Millisecond)
		f.mutex.Lock()
	}
	defer f.mutex.Unlock()
	f.wait--
	if f.admits(w, r) {
		f.asked++
		answer(w, http.StatusOK, f.show(time.Now()))
	}
}

func (f *fake) order(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.admits(w, r) {
		return
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	if f.refuse != "" {
		answer(w, http.StatusConflict, map[string]string{"error": f.refuse})
		return
	}
	f.orders = append(f.orders, fmt.Sprintf("%s %v", r.URL.EscapedPath(), body))
	answer(w, http.StatusOK, map[string]any{})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
