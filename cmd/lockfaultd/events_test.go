package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// A toldEvent is one of the stream's.
type toldEvent struct {
	ID    string
	Event struct {
		Type, Run, Key, Token string
		Lost                  int
	}
}

// nextEvent reads one that is no clock's, of a stream in which all have to follow each other: last is the number of the one before.
func nextEvent(t *testing.T, in *bufio.Reader, run string, last *int) toldEvent {
	t.Helper()
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		if len(line) == 1 { // a sign of life
			continue
		}
		var e toldEvent
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if run == "" {
			run = e.Event.Run
		}
		if *last++; e.ID != fmt.Sprintf("%s-%d", run, *last) {
			t.Fatalf("%s came behind %d of %s", e.ID, *last-1, run)
		}
		if e.Event.Type != "clock" {
			return e
		}
	}
}

// adminOf returns the URL of a daemon's API, which it tells behind where its proxies listen.
func adminOf(t *testing.T, said func() string) string {
	t.Helper()
	return awaitMatch(t, said, regexp.MustCompile(`lockfaultd: admin (http\S+)\n`))
}

func openEvents(t *testing.T, url string) *bufio.Reader {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	return bufio.NewReader(resp.Body)
}

// A daemon that keeps no history in a file tells what it sees by its API; who has seen some comes again for what is
// behind it, and its end is told in order.
func TestSidecarTellsWhatItSees(t *testing.T) {
	redis := testbed.Redis(t)
	cmd, address, said := sidecar(t, "--admin", "127.0.0.1:0", "--redis", "127.0.0.1:0="+redis.Addr())
	url := adminOf(t, said) + "/v1/events"
	in := openEvents(t, url)
	last := -1
	header := nextEvent(t, in, "", &last)
	if header.Event.Type != "header" {
		t.Fatalf("the first is %+v", header)
	}
	run := header.Event.Run
	manyLocks(t, address, 2)
	var types []string
	var ids []string
	for range 4 {
		e := nextEvent(t, in, run, &last)
		if e.Event.Token == "token" {
			t.Errorf("a token is told: %+v", e)
		}
		types, ids = append(types, e.Event.Type+e.Event.Key), append(ids, e.ID)
	}
	if got := strings.Join(types, " "); got != "actor oplock0 oplock1 end" {
		t.Errorf("told: %s", got)
	}
	if _, err := fmt.Sscanf(ids[1], run+"-%d", &last); err != nil {
		t.Fatal(err)
	}
	if e := nextEvent(t, openEvents(t, url+"?from="+ids[1]), run, &last); e.Event.Key != "lock1" {
		t.Errorf("behind %s came %+v", ids[1], e)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		t.Errorf("the end is told as %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A consumer that reads nothing holds up no client: every one of these has its replies while it does not. Then it
// has each line that was written, or a gap in its place.
func TestAStuckConsumerHoldsUpNoClient(t *testing.T) {
	redis := testbed.Redis(t)
	_, address, said := sidecar(t, "--admin", "127.0.0.1:0", "--redis", "127.0.0.1:0="+redis.Addr())
	c, err := net.Dial("tcp", strings.TrimPrefix(adminOf(t, said), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	manyLocks(t, address, manyMore)

	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	in, ops, lost, last, run := bufio.NewReader(resp.Body), 0, 0, -1, ""
	for ops+lost < manyMore+1 { // and the end of their connection
		switch e := nextEvent(t, in, run, &last); e.Event.Type {
		case "header":
			run = e.Event.Run
		case "op", "end":
			ops++
		case "gap":
			lost += e.Event.Lost
		}
	}
	t.Logf("%d lines and %d lost", ops, lost)
}
