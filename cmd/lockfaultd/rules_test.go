package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/admin"
	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/live"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// An api is that of a daemon that runs.
type api struct {
	t   *testing.T
	url string
}

// ask wants an answer of a status, and decodes it.
func (a api) ask(method, path, body string, status int, into any) {
	a.t.Helper()
	r, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		a.t.Fatalf("%s %s: %s: %s, %v", method, path, answer.Status, b, err)
	}
	if into != nil {
		if err := json.Unmarshal(b, into); err != nil {
			a.t.Fatalf("%s %s: %v: %s", method, path, err, b)
		}
	}
}

// until asks for a path until what is decoded is as it should be.
func until[T any](a api, path string, is func(T) bool) T {
	a.t.Helper()
	for n := 0; ; n++ {
		var got T
		a.ask("GET", path, "", 200, &got)
		if is(got) {
			return got
		}
		if n > 1000 {
			a.t.Fatalf("%s stays %+v", path, got)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A line is a connection on which commands are typed.
type line struct {
	net.Conn
	in *bufio.Reader
}

func dialLine(t *testing.T, address string) line {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return line{c, bufio.NewReader(c)}
}

func (l line) say(t *testing.T, command string) {
	t.Helper()
	if _, err := fmt.Fprintf(l, "%s\r\n", command); err != nil {
		t.Fatal(err)
	}
}

func (l line) hear(t *testing.T, want string) {
	t.Helper()
	if got, err := l.in.ReadString('\n'); err != nil || strings.TrimSpace(got) != want {
		t.Fatalf("%q, %v; want %s", got, err, want)
	}
}

// A rule that the API adds holds an op on a connection that was there before, the state tells of it, and a stop lets it go.
func TestRulesComeByTheAPI(t *testing.T) {
	redis := testbed.Redis(t)
	_, address, said := sidecar(t, "--admin", "127.0.0.1:0", "--redis", "127.0.0.1:0="+redis.Addr())
	a, c := api{t, adminOf(t, said)}, dialLine(t, address)
	const get = "*2\r\n$3\r\nGET\r\n$5\r\nquiet" // as libraries write it
	for range 3 {                                // which nobody cares about, until somebody does
		c.say(t, get)
		c.hear(t, "$-1")
	}
	var added admin.Rule
	a.ask("POST", "/v1/rules", `{"rule":"--stall-before GET(quiet)=1ms","name":"heard"}`, 201, &added)
	c.say(t, get)
	c.hear(t, "$-1")
	a.ask("DELETE", "/v1/rules/heard", "", 200, &added)
	if added.Fired != 1 {
		t.Errorf("a command that came before is not heard: %+v", added)
	}
	added = admin.Rule{}
	a.ask("POST", "/v1/rules", `{"rule":"--stall-before SETNX(api:*)=20s","name":"pause","times":5}`, 201, &added)
	if added.Name != "pause" || !added.Armed || added.Left != 5 || added.Origin != "api" {
		t.Errorf("%+v", added)
	}
	added = admin.Rule{}
	a.ask("POST", "/v1/rules", `{"rule":{"on":{"event":"GET","key":"x*"},"at":"before","do":"stall","for":"1h"},"armed":false}`, 201, &added)
	if added.Name != "rule-3" || added.Armed || added.Text != `--stall-before GET(x*)=1h` {
		t.Errorf("%+v", added)
	}
	for body, status := range map[string]int{
		`{"rule":"--stall-before SETNX=1s","name":"pause"}`:                       409,
		`{"rule":"--stall-before SETNX=1s,name=other","name":"pause2"}`:           400,
		`{"rule":"--stall-before SETNX"}`:                                         400,
		`{"rule":"--stall-sideways SETNX=1s"}`:                                    400,
		`{"rule":"nothing"}`:                                                      400,
		`{"rule":{"on":{"event":"SETNX"},"do":"stall","for":"1s"}}`:               400,
		`{"rule":{"on":{"event":"SETNX","key":1},"at":"before","do":"stall"}}`:    400,
		`{"rule":"--freeze-before write=1h"}`:                                     400,
		`{"rule":{"on":{"event":"write","lock":"x"},"at":"before","do":"stall"}}`: 400,
		`{"rule":"--stall-before SETNX=1s","name":"not a name, but a long text"}`: 400,
	} {
		var said struct{ Error string }
		a.ask("POST", "/v1/rules", body, status, &said)
		if said.Error == "" {
			t.Errorf("%s: no reason", body)
		}
	}
	c.say(t, "SETNX api:1 token")
	s := until(a, "/v1/state", func(s live.Snapshot) bool { return len(s.Actors) == 1 && s.Actors[0].State == live.Stalled })
	if s.Actors[0].By != "pause" || s.Name != "lockfaultd" || !s.Control || len(s.Sources) != 1 || !s.Sources[0].Up || s.Rules[0].Fired != 1 || *s.Rules[0].Left != 4 {
		t.Errorf("%+v", s)
	}
	if i := len(s.Marks) - 1; i < 0 || s.Marks[i].Kind != live.MarkStall || !s.Marks[i].Open {
		t.Errorf("marks: %+v", s.Marks)
	}
	var stopped admin.Stopped
	a.ask("POST", "/v1/stop", "", 200, &stopped)
	if stopped != (admin.Stopped{Rules: 1, Held: 1}) {
		t.Errorf("%+v", stopped)
	}
	c.hear(t, ":1")
	c.say(t, "SETNX api:1 other")
	c.hear(t, ":0")
	locks := until(a, "/v1/locks", func(l struct{ Locks []admin.Lock }) bool { return len(l.Locks) == 1 && len(l.Locks[0].Waiters) == 1 })
	if l := locks.Locks[0]; l.Key != "api:1" || !l.Held || l.Holders[0].Actor != s.Actors[0].Label {
		t.Errorf("%+v", l)
	}
	until(a, "/v1/state", func(s live.Snapshot) bool {
		kinds := map[string]bool{}
		for _, m := range s.Marks {
			kinds[m.Kind] = true
		}
		return kinds[live.MarkSection] && kinds[live.MarkRefusal] && kinds[live.MarkStall]
	})
	added = admin.Rule{}
	a.ask("POST", "/v1/rules/pause/arm", `{"for":"1h"}`, 200, &added)
	if !added.Armed || added.Until.Before(time.Now().Add(59*time.Minute)) || added.Left != 0 {
		t.Errorf("%+v", added)
	}
	a.ask("POST", "/v1/rules/pause/disarm", "", 200, &added)
	a.ask("DELETE", "/v1/rules/pause", "", 200, &added)
	a.ask("DELETE", "/v1/rules/pause", "", 404, nil)
	var left struct{ Rules []admin.Rule }
	a.ask("GET", "/v1/rules", "", 200, &left)
	if len(left.Rules) != 1 || left.Rules[0].Name != "rule-3" {
		t.Errorf("%+v", left)
	}
	a.ask("GET", "/", "", 200, nil)
	a.ask("POST", "/v1/freeze", `{"actor":"nobody","for":"1s"}`, 404, nil)
	a.ask("POST", "/v1/thaw", `{}`, 200, nil)
}

// What cannot be done now is a conflict to who asks the API for it.
func TestConflicts(t *testing.T) {
	for _, err := range []error{proxy.ErrFixed, proxy.ErrScheduled, proxy.ErrOver, fault.ErrTaken, errKept} {
		if !errors.Is(refusing(err), admin.ErrConflict) {
			t.Errorf("%v is none", err)
		}
	}
}
