package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

// A plan has a few rules, and keeps what was asked of it.
type plan struct{ asked []string }

var aRule = Rule{Name: "pause", Text: "--freeze-before write=1s", Origin: "flag", Armed: true, Left: 3, Until: time.Unix(9, 0), Barred: map[string]int{"max": 2}}

func (p *plan) List() []Rule { return []Rule{aRule} }

func (p *plan) Add(n NewRule) (Rule, error) {
	p.asked = append(p.asked, fmt.Sprintf("add %q %s %q off %t %v %d", n.Text, n.Fields, n.Name, n.Off, n.For, n.Times))
	if n.Name == "pause" {
		return Rule{}, fmt.Errorf("another rule has the name: %w", ErrConflict)
	}
	if n.Text == "bad" {
		return Rule{}, fmt.Errorf("expected another")
	}
	return aRule, nil
}

func (p *plan) on(what, name string) (Rule, error) {
	p.asked = append(p.asked, what+" "+name)
	switch name {
	case "pause":
		return aRule, nil
	case "fixed":
		return Rule{}, fmt.Errorf("a schedule is repeated: %w", ErrConflict)
	}
	return Rule{}, fmt.Errorf("no rule: %w", ErrUnknown)
}

func (p *plan) Remove(name string) (Rule, error) { return p.on("remove", name) }
func (p *plan) Disarm(name string) (Rule, error) { return p.on("disarm", name) }
func (p *plan) Arm(name string, b Bounds) (Rule, error) {
	return p.on(fmt.Sprintf("arm for %v, %d times,", b.For, b.Times), name)
}

// ward has one of everything, and freezes.
type ward struct{ plan }

func (w *ward) Locks() []Lock {
	margin, fence := 12.5, int64(7)
	return []Lock{
		{Name: "job", Key: "lock:job", Held: true, Holders: []Holder{{Actor: "A1", Session: 1, Since: time.Unix(1, 0), TTL: 500, EndsFrom: time.Unix(2, 0), EndsTo: time.Unix(3, 0), Fence: &fence}}, Waiters: []string{"A2"}, Margin: &margin},
		{Name: "free", Key: "free", DB: 2, Upstream: "r2", Holders: []Holder{}, Waiters: []string{}},
	}
}

func (w *ward) Actors() []Actor {
	return []Actor{{Label: "A1", State: "frozen", Until: time.Unix(2, 0), By: "pause", PID: 4, Address: "10.0.0.1", Freezable: true, Sessions: 1, Holds: []string{"job"}}}
}

func (w *ward) Sessions() []Session {
	return []Session{{ID: 1, Protocol: "pg", Upstream: "db:5432", Actor: "A1", Address: "10.0.0.1", Since: time.Unix(1, 0), Held: true}}
}

func (w *ward) Freeze(_ context.Context, actor, scope string, length time.Duration) (Frozen, error) {
	w.asked = append(w.asked, fmt.Sprintf("freeze %s %s %v", actor, scope, length))
	switch actor {
	case "A9":
		return Frozen{}, fmt.Errorf("no process: %w", ErrUnknown)
	case "A2":
		return Frozen{}, fmt.Errorf("it is frozen already: %w", ErrConflict)
	}
	return Frozen{Actor: actor, Until: time.Unix(9, 0), Injection: 3}, nil
}

func (w *ward) Thaw(actor string) (int, error) {
	w.asked = append(w.asked, fmt.Sprintf("thaw %q", actor))
	if actor == "A9" {
		return 0, fmt.Errorf("no process: %w", ErrUnknown)
	}
	return 2, nil
}

func (w *ward) Stop() Stopped {
	w.asked = append(w.asked, "stop")
	return Stopped{Rules: 1, Held: 2}
}

func text(kind string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte("text"))
	})
}

// whole has every part.
func whole(w *ward) Parts {
	return Parts{
		Gates: &board{}, Rules: w, Seen: w, Freezing: w, Stopping: w, Events: text("application/x-ndjson"), Metrics: text("text/plain"), Page: text("text/html"),
		State: func() any { return map[string]any{"now": time.Unix(1, 0), "name": "lockfaultd"} },
		Clock: func() any { return map[string]any{"run": "00000000000000aa", "at": 7, "holding": 3} },
	}
}

// Who asks whether it is ready hears no reason, which may not be for everybody.
func TestNotReady(t *testing.T) {
	r := httptest.NewRequest("GET", "/readyz", nil)
	w := httptest.NewRecorder()
	Handler(Parts{Ready: func() error { return fmt.Errorf("secret") }}, "token").ServeHTTP(w, r)
	if w.Code != 503 || strings.TrimSpace(w.Body.String()) != `{"status":"not ready"}` {
		t.Error(w.Code, w.Body)
	}
}

// The page is served to who shows no token, and nothing else is.
func TestOnlyThePageNeedsNoToken(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		status       int
	}{{"GET", "/", 200}, {"GET", "/page/live.js", 200}, {"POST", "/", 401}, {"GET", "/metrics", 401}, {"GET", "/v1/state", 401}, {"GET", "/v1/openapi.json", 401}, {"GET", "/pages", 401}, {"POST", "/v1/stop", 401}} {
		r := httptest.NewRequest(tt.method, tt.path, nil)
		w := httptest.NewRecorder()
		Handler(whole(&ward{}), "token").ServeHTTP(w, r)
		if w.Code != tt.status {
			t.Errorf("%s %s: %d", tt.method, tt.path, w.Code)
		}
	}
}

func documented(t *testing.T) validator.Validator {
	t.Helper()
	doc, err := libopenapi.NewDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return v
}

func TestTheDocumentIsValid(t *testing.T) {
	v := documented(t)
	if ok, errs := v.ValidateDocument(); !ok {
		for _, e := range errs {
			t.Error(e, e.SchemaValidationErrors)
		}
	}
}

// What is served is documented, and the reverse.
func TestTheDocumentHasTheRoutes(t *testing.T) {
	doc, err := libopenapi.NewDocument(document)
	if err != nil {
		t.Fatal(err)
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for path, item := range model.Model.Paths.PathItems.FromOldest() {
		for method := range item.GetOperations().FromOldest() {
			said = append(said, strings.ToUpper(method)+" "+path)
		}
	}
	served := []string{"GET /healthz", "GET /readyz", "GET /"} // these are no routes behind the token, or the page's
	for _, r := range (&api{parts: whole(&ward{})}).routes() {
		served = append(served, r.method+" "+r.path)
	}
	slices.Sort(said)
	slices.Sort(served)
	if !slices.Equal(said, served) {
		t.Errorf("documented: %q\nserved: %q", said, served)
	}
}

// Every answer is as the document has it, and every route is asked for what it cannot do.
func TestEveryRoute(t *testing.T) {
	v := documented(t)
	large := `{"name":"` + strings.Repeat("x", mostBody) + `"}`
	tried := map[string]bool{} // by route, and whether it was done
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string // in the answer
		asked              string // of a part
	}{
		{"GET", "/healthz", "", 200, `{"status":"ok"}`, ""},
		{"GET", "/readyz", "", 200, `{"status":"ok"}`, ""},
		{"GET", "/v1/signals", "", 200, `"signal":"go"`, ""},
		{"POST", "/v1/signals", "", 405, `expected GET`, ""},
		{"POST", "/v1/signals/go", "", 200, `"heard":2`, ""},
		{"POST", "/v1/signals/none", "", 404, `"signals":["go","stay"]`, ""},
		{"GET", "/v1/rules", "", 200, `"name":"pause"`, ""},
		{"GET", "/v1/rules", "", 200, `"barred":{"max":2}`, ""},
		{"POST", "/v1/rules", `{"rule":"--freeze-before write=1s"}`, 201, `"name":"pause"`, `add "--freeze-before write=1s"  "" off false 0s 0`},
		{"POST", "/v1/rules", `{"rule":{"on":{"event":"write"}},"name":"a","for":"10m","times":5}`, 201, `"name":"pause"`, `add "" {"on":{"event":"write"}} "a" off false 10m0s 5`},
		{"POST", "/v1/rules", `{"rule":"x","armed":false}`, 201, `"name":"pause"`, `add "x"  "" off true 0s 0`},
		{"POST", "/v1/rules", `{"rule":"x","armed":true}`, 201, `"name":"pause"`, `add "x"  "" off false 0s 0`},
		{"POST", "/v1/rules", `{"rule":"x","name":"pause"}`, 409, `another rule has the name`, `add "x"  "pause" off false 0s 0`},
		{"POST", "/v1/rules", `{"rule":"bad"}`, 400, `expected another`, `add "bad"  "" off false 0s 0`},
		{"POST", "/v1/rules", ``, 400, `rule: expected a text such as`, ""},
		{"POST", "/v1/rules", `{}`, 400, `rule: expected a text such as`, ""},
		{"POST", "/v1/rules", `{"rule":7}`, 400, `rule: expected a text such as`, ""},
		{"POST", "/v1/rules", `[]`, 400, `expected a JSON object`, ""},
		{"POST", "/v1/rules", `{"rule":"x"`, 400, `no JSON: it ends too soon`, ""},
		{"POST", "/v1/rules", `{"rule":"x"}{}`, 400, `nothing behind it`, ""},
		{"POST", "/v1/rules", `{"rule":x}`, 400, `no JSON, at byte 9`, ""},
		{"POST", "/v1/rules", `{"rule":"x","mane":"y"}`, 400, `unknown field \"mane\"`, ""},
		{"POST", "/v1/rules", `{"rule":"x","name":7}`, 400, `name: expected a text, found a JSON number`, ""},
		{"POST", "/v1/rules", `{"rule":"x","armed":"no"}`, 400, `armed: expected true or false, found a JSON string`, ""},
		{"POST", "/v1/rules", `{"rule":"x","for":"soon"}`, 400, `for: expected a duration such as 10m or 800ms, found \"soon\"`, ""},
		{"POST", "/v1/rules", `{"rule":"x","for":"-1s"}`, 400, `for: expected a duration`, ""},
		{"POST", "/v1/rules", `{"rule":"x","for":10}`, 400, `for: expected a text, found a JSON number`, ""},
		{"POST", "/v1/rules", `{"rule":"x","times":0}`, 400, `times: expected a whole number from 1`, ""},
		{"POST", "/v1/rules", `{"rule":"x","times":1.5}`, 400, `times: expected a whole number, found a JSON number`, ""},
		{"POST", "/v1/rules", `{"rule":"x","times":1,"armed":false}`, 400, `for and times say how far`, ""},
		{"POST", "/v1/rules", large, 413, `at most 65536 bytes`, ""},
		{"PUT", "/v1/rules", `{}`, 405, `expected GET or POST`, ""},
		{"DELETE", "/v1/rules/pause", "", 200, `"name":"pause"`, "remove pause"},
		{"DELETE", "/v1/rules/a%2Fb", "", 404, `"expected":["pause"]`, "remove a/b"},
		{"DELETE", "/v1/rules/fixed", "", 409, `a schedule is repeated`, "remove fixed"},
		{"DELETE", "/v1/rules/pause", `{"for":"1s"}`, 400, `unknown field`, ""},
		{"GET", "/v1/rules/pause", "", 405, `expected DELETE`, ""},
		{"POST", "/v1/rules/pause/arm", "", 200, `"armed":true`, "arm for 0s, 0 times, pause"},
		{"POST", "/v1/rules/pause/arm", `{"for":"1m","times":2}`, 200, `"armed":true`, "arm for 1m0s, 2 times, pause"},
		{"POST", "/v1/rules/none/arm", `{}`, 404, `"expected":["pause"]`, "arm for 0s, 0 times, none"},
		{"POST", "/v1/rules/fixed/arm", `{}`, 409, `a schedule is repeated`, "arm for 0s, 0 times, fixed"},
		{"POST", "/v1/rules/pause/arm", `{"for":"1"}`, 400, `for: expected a duration`, ""},
		{"POST", "/v1/rules/pause/arm", `{"times":-1}`, 400, `times: expected a whole number from 1`, ""},
		{"POST", "/v1/rules/pause/arm", `{"till":"1s"}`, 400, `unknown field`, ""},
		{"POST", "/v1/rules/pause/disarm", "", 200, `"name":"pause"`, "disarm pause"},
		{"POST", "/v1/rules/none/disarm", "", 404, `"expected":["pause"]`, "disarm none"},
		{"POST", "/v1/rules/pause/disarm", `{"times":1}`, 400, `unknown field`, ""},
		{"GET", "/v1/rules/pause/disarm", "", 405, `expected POST`, ""},
		{"GET", "/v1/locks", "", 200, `"margin_ms":12.5`, ""},
		{"GET", "/v1/actors", "", 200, `"state":"frozen"`, ""},
		{"GET", "/v1/sessions", "", 200, `"protocol":"pg"`, ""},
		{"POST", "/v1/locks", "", 405, `expected GET`, ""},
		{"POST", "/v1/actors", "", 405, `expected GET`, ""},
		{"POST", "/v1/sessions", "", 405, `expected GET`, ""},
		{"POST", "/v1/freeze", `{"actor":"A1","for":"2s"}`, 200, `"injection":3`, "freeze A1 process 2s"},
		{"POST", "/v1/freeze", `{"actor":"A1","for":"2s","scope":"cgroup"}`, 200, `"actor":"A1"`, "freeze A1 cgroup 2s"},
		{"POST", "/v1/freeze", `{"actor":"A9","for":"2s"}`, 404, `"expected":["A1"]`, "freeze A9 process 2s"},
		{"POST", "/v1/freeze", `{"actor":"A2","for":"2s"}`, 409, `it is frozen already`, "freeze A2 process 2s"},
		{"POST", "/v1/freeze", `{"actor":"A1"}`, 400, `for: expected a duration`, ""},
		{"POST", "/v1/freeze", `{"for":"1s"}`, 400, `actor: expected the label`, ""},
		{"POST", "/v1/freeze", `{"actor":"A1","for":"1s","scope":"thread"}`, 400, `scope: expected one of process, tree, cgroup, found \"thread\"`, ""},
		{"POST", "/v1/freeze", ``, 400, `actor: expected the label`, ""},
		{"POST", "/v1/freeze", `{"pid":1}`, 400, `unknown field`, ""},
		{"POST", "/v1/thaw", `{"actor":"A1"}`, 200, `{"thawed":2}`, `thaw "A1"`},
		{"POST", "/v1/thaw", ``, 200, `{"thawed":2}`, `thaw ""`},
		{"POST", "/v1/thaw", `{"actor":""}`, 400, `actor: expected the label`, ""},
		{"POST", "/v1/thaw", `{"actor":"A9"}`, 404, `"expected":["A1"]`, `thaw "A9"`},
		{"POST", "/v1/thaw", `{"all":true}`, 400, `unknown field`, ""},
		{"POST", "/v1/stop", ``, 200, `{"rules":1,"held":2}`, "stop"},
		{"POST", "/v1/stop", `{"now":true}`, 400, `unknown field`, ""},
		{"GET", "/v1/stop", ``, 405, `expected POST`, ""},
		{"GET", "/v1/events", "", 200, "text", ""},
		{"GET", "/v1/state", "", 200, `"name":"lockfaultd"`, ""},
		{"POST", "/v1/state", "", 405, `expected GET`, ""},
		{"GET", "/v1/clock", "", 200, `"holding":3`, ""},
		{"POST", "/v1/clock", "", 405, `expected GET`, ""},
		{"GET", "/v1/openapi.json", "", 200, `"openapi": "3.1.0"`, ""},
		{"POST", "/v1/openapi.json", "", 405, `expected GET`, ""},
		{"GET", "/metrics", "", 200, "text", ""},
		{"POST", "/metrics", "", 405, `expected GET`, ""},
		{"GET", "/", "", 200, "text", ""},
		{"POST", "/", "", 404, "nothing at this path", ""},
		{"GET", "/v1/nothing", "", 404, "nothing at this path", ""},
	} {
		t.Run(tt.method+" "+tt.path+" "+tt.body[:min(len(tt.body), 60)], func(t *testing.T) {
			w := &ward{}
			r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
			r.Host = "127.0.0.1:8474"
			rec := httptest.NewRecorder()
			Handler(whole(w), "").ServeHTTP(rec, r)
			if rec.Code != tt.status || !strings.Contains(rec.Body.String(), tt.want) {
				t.Errorf("%d %s, want %d %s", rec.Code, rec.Body, tt.status, tt.want)
			}
			if got := strings.Join(w.asked, "; "); got != tt.asked {
				t.Errorf("asked: %s, want %s", got, tt.asked)
			}
			if tt.status == 405 && rec.Header().Get("Allow") == "" {
				t.Error("a 405 without Allow")
			}
			tried[fmt.Sprint(routeOf(tt.path), tt.status < 300)] = true
			if rec.Code == 405 || strings.HasPrefix(tt.want, "nothing at") {
				return
			}
			answer := rec.Result()
			if tt.path == "/v1/events" || tt.path == "/metrics" || tt.path == "/" {
				return // which are no JSON
			}
			if ok, errs := v.ValidateHttpResponse(httptest.NewRequest(tt.method, "http://127.0.0.1:8474"+tt.path, nil), answer); !ok {
				for _, e := range errs {
					t.Error(e, e.SchemaValidationErrors)
				}
			}
		})
	}
	for _, r := range (&api{parts: whole(&ward{})}).routes() {
		if !tried[fmt.Sprint(r.path, true)] || r.path != "/v1/events" && !tried[fmt.Sprint(r.path, false)] {
			t.Errorf("%s %s is not tried, or not for what it cannot do", r.method, r.path)
		}
	}
}

// routeOf returns the path of the route of a request.
func routeOf(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 3 {
		parts[3] = "{name}"
	}
	return strings.Join(parts, "/")
}
