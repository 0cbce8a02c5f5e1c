package resp

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// asked returns which keys a request's rules were asked about, and the keys of
// its ops, fed whole, cut, and as an array and as a line.
func asked(t *testing.T, name string, request string) (about, keys []string) {
	t.Helper()
	for i, cut := range []cutter{uncut, bytewise, at(len(request) / 2)} {
		var a, k []string
		o := testOptions(name)
		o.Could = func(string) func([]byte) bool {
			return func(key []byte) bool { a = append(a, string(key)); return string(key) != "boring" }
		}
		tr := NewTracker(o)
		for b := []byte(request); len(b) > 0; {
			n := cut(len(b))
			marks, _ := tr.Client(b[:n], nil)
			for _, m := range marks {
				k = append(k, m.Op.Key)
			}
			b = b[n:]
		}
		a = slices.Compact(a)
		if i > 0 && (!slices.Equal(a, about) || !slices.Equal(k, keys)) {
			t.Errorf("%.80q, cut %d: asked about %q, ops %q; want %q, %q", request, i, a, k, about, keys)
		}
		about, keys = a, k
	}
	return about, keys
}

// The key that rules are asked about is the request's, not what happens to
// stand where others have theirs.
func TestKeysOfEveryForm(t *testing.T) {
	long := strings.Repeat("k", 3000)
	for request, want := range map[string]string{ // the op's key; "-": no op
		"GET": "", "GET boring": "-", "GET a": "a", "OBJECT HELP": "", "OBJECT ENCODING a": "a", "OBJECT ENCODING boring": "-", "LASTSAVE": "",
		"GET " + long: "", "SET " + long + " v": "", "GET " + long[:2048]: long[:2048],
		"FCALL f 0": "", "FCALL f 0 secret": "", "FCALL f 1 a secret": "a", "FCALL f 1 boring": "-", "FCALL f x a": "", "FCALL f -1 a": "", "FCALL_RO f 0 secret": "",
		"EVAL x 0 secret": "", "EVAL_RO x 0 secret": "", "EVALSHA " + sha("x") + " 0 secret": "", "EVALSHA_RO x 1 a": "a",
		"XREAD STREAMS a $": "a", "XREAD COUNT 1 BLOCK 0 STREAMS boring 0": "-", "XREADGROUP GROUP streams c COUNT 9 BLOCK 9 NOACK STREAMS a b > >": "a",
		"XREADGROUP GROUP g streams STREAMS boring >": "-", "XREAD COUNT STREAMS streams a 0": "a", "XREAD STREAMS": "", "XREAD COUNT": "", "XREADGROUP GROUP": "",
		"LMPOP 1 a LEFT": "a", "LMPOP 2 boring a LEFT": "-", "ZMPOP 1 a MIN": "a", "BLMPOP 0 1 a LEFT": "a", "BZMPOP 0 1 boring MIN": "-",
		"SINTERCARD 2 a b": "a", "ZINTERCARD 1 a": "a", "ZUNION 1 a": "a", "ZINTER 1 boring": "-", "ZDIFF 1 a": "a", "ZUNIONSTORE a 1 b": "a", "MSETEX 1 a v": "a",
		"XINFO STREAM a": "a", "XGROUP CREATE boring g 0": "-", "MEMORY USAGE a": "a", "BITOP AND a b": "a", "PUBLISH boring x": "",
	} {
		name, _, _ := strings.Cut(request, " ")
		t.Run(fmt.Sprintf("%.40s", request), func(t *testing.T) {
			for _, form := range []string{words(request), request + "\r\n"} {
				about, keys := asked(t, name, form)
				got := "-"
				if len(keys) > 0 {
					got = keys[0]
				}
				if got != want || slices.Contains(about, "secret") || want != "" && want != "-" && !slices.Equal(about, []string{want}) {
					t.Errorf("%.60q: key %.20q, asked about %.60q; want %.20q", form, got, about, want)
				}
			}
		})
	}
}

// A frame that is declined at once goes to the scanner, whatever was hopped
// over before it.
func TestADeclinedRequestIsNotTriedAgain(t *testing.T) {
	n := 0
	o := testOptions("GET")
	o.Could = func(string) func([]byte) bool {
		return func(key []byte) bool {
			if string(key) == "x" {
				n++
			}
			return string(key) == "x"
		}
	}
	if NewTracker(o).Client([]byte(words("GET a")+words("GET b")+words("GET x")), nil); n != 2 {
		t.Errorf("asked %d times, want once for either way to read it", n)
	}
}
