package resp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// Whatever is combined, no probe is ever given another's reply, and all of them
// are followed but where a connection may go blind.
func TestRandomModesStayInStep(t *testing.T) {
	server := testbed.Redis(t)
	pool := []string{
		"CLIENT REPLY OFF", "CLIENT REPLY SKIP", "CLIENT REPLY SKIP", "CLIENT REPLY ON", "SUBSCRIBE a b", "SUBSCRIBE b c d", "PSUBSCRIBE *", "SSUBSCRIBE s",
		"UNSUBSCRIBE", "UNSUBSCRIBE a z", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "MULTI", "MULTI", "EXEC", "EXEC", "DISCARD", "WATCH x", "HELLO 3", "HELLO 2", "HELLO",
		"RESET", "MONITOR", "PUBLISH a message", "SPUBLISH s x", "REPLCONF ACK 0", "REPLCONF capa eof ACK 0", "REPLCONF listening-port 1", "PING", "ECHO subscribe", "GET x", "SELECT 0",
		"LRANGE l 0 -1", "NOSUCH", "SET x y", "CLIENT TRACKING ON", "COMMAND DOCS GET", "BLPOP l2 0.001", "WAIT 0 1", "\r\n", "*0\r\n", "P", "P", "P", "P", "P", "P", "P", "P",
	}
	r := rand.New(rand.NewPCG(11, 11))
	admin := newTap(t, server)
	flights, blind, n := 1500, 0, 0
	if testing.Short() {
		flights = 100
	}
	p := newTap(t, server)
	for range flights {
		var b, said strings.Builder
		for range 1 + r.IntN(25) {
			what := pool[r.IntN(len(pool))]
			switch {
			case what == "P":
				n++
				what = fmt.Sprintf("P%d", n)
				b.WriteString(probe(n))
			case strings.HasSuffix(what, "\n"):
				b.WriteString(what)
			default:
				b.WriteString(words(what))
			}
			fmt.Fprintf(&said, "%s; ", what)
		}
		n++
		p.send(b.String(), lines("RESET;RESET"), probe(n))
		p.until(probed(n))
		story := p.story()
		switch {
		case p.tr.told:
			blind++
			if !strings.Contains(p.marks[len(p.marks)-1].Reason, "CLIENT REPLY ON") {
				t.Errorf("blind after %s: %s\n%q", said.String(), p.marks[len(p.marks)-1].Reason, p.all)
			}
			p = newTap(t, server)
			continue
		case !strings.HasSuffix(story, fmt.Sprintf("%d done", n)) || !p.tr.queue.empty() || p.tr.waiting != 0 || p.tr.subs.waiting != 0:
			t.Errorf("after %s: %s\n%+v", said.String(), story, p.tr.queue)
			p = newTap(t, server)
		}
		if t.Failed() {
			t.Fatalf("%s\n%q", said.String(), p.all)
		}
		p.all, p.marks = p.all[:0], p.marks[:0]
		if n%50 == 0 {
			admin.send(words("FLUSHALL"))
			admin.until("OK\r\n")
		}
	}
	if blind > flights/10 {
		t.Errorf("%d of %d flights ended blind", blind, flights)
	}
}
