package resp

import (
	"fmt"
	"strings"
	"testing"
)

// What the driver need not feed: all of a large body that is neither kept nor
// withheld, but for the two bytes that close it.
func TestRest(t *testing.T) {
	const size = 1 << 20
	body := strings.Repeat("v", 100)
	head := fmt.Sprintf("$%d\r\n", size)
	for name, s := range map[string]struct {
		before, after string // of the first 100 bytes of the body
		fromClient    bool
		want          int64
	}{
		"plain SET":              {"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n" + head, "", true, size - 100},
		"argument among others":  {"*4\r\n$4\r\nHSET\r\n$1\r\nh\r\n$1\r\nf\r\n" + head, "", true, size - 100},
		"SET that is too large":  {"*6\r\n$3\r\nSET\r\n$1\r\nk\r\n" + head, "", true, size - 100},
		"an argument withheld":   {"*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$10000\r\n", "", true, 0},
		"a script being kept":    {"*4\r\n$4\r\nEVAL\r\n$10000\r\n", "", true, 0},
		"a line":                 {"SET k ", "", true, 0},
		"a reply":                {head, "", false, size - 100},
		"an element of one":      {"*2\r\n:1\r\n*1\r\n" + head, "", false, size - 100},
		"an op's reply, kept":    {"$10000\r\n", "op", false, 0},
		"an op's reply, too big": {fmt.Sprintf("$%d\r\n", 2<<20), "op", false, 2<<20 - 100},
		"an error":               {"-ERR ", "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTracker()
			scan := tr.Client
			if !s.fromClient {
				if tr.Client([]byte(words("GET a")), nil); s.after == "op" {
					tr = newTracker()
					tr.Client([]byte(nx), nil)
				}
				scan = tr.Upstream
			}
			if scan([]byte(s.before+body), nil); tr.Rest(s.fromClient) != s.want {
				t.Errorf("%d bytes to skip, want %d", tr.Rest(s.fromClient), s.want)
			}
			if other := tr.Rest(!s.fromClient); other != 0 {
				t.Errorf("%d bytes to skip of the other direction", other)
			}
		})
	}
}

func TestRestOfWhatIsGivenUp(t *testing.T) {
	tr := newTracker()
	tr.Client([]byte(words("GET a")+words("PSYNC ? -1")), nil)
	if tr.Rest(true) != endless || tr.Rest(false) != 0 {
		t.Errorf("behind PSYNC: %d, %d", tr.Rest(true), tr.Rest(false))
	}
	tr.Upstream([]byte("$-1\r\n"), nil)
	if tr.Rest(false) != endless {
		t.Errorf("behind the last reply: %d", tr.Rest(false))
	}
	tr.Skip(false, 1000)
	if _, clear := tr.Upstream([]byte("abc"), nil); clear != 1008 {
		t.Errorf("clear %d, want 1008", clear)
	}
}
