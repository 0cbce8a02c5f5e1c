package resp

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseCommand(t *testing.T) {
	for line, want := range map[string]string{
		`1339518083.107412 [0 127.0.0.1:60866] "set" "a b" "\"x\\\r\n\t\a\b\x00\xff"`: `1339518083107412 0 127.0.0.1:60866 ["set" "a b" "\"x\\\r\n\t\a\b\x00\xff"]`,
		`1339518083.000001 [12 lua] "GET" ""`:                                         `1339518083000001 12 lua ["GET" ""]`,
		`1339518083.107412 [0 unix:/run/redis.sock] "PING"`:                           `1339518083107412 0 unix:/run/redis.sock ["PING"]`,
		`1339518083.107412 [0 [::1]:60866] "PING" "] \""`:                             `1339518083107412 0 [::1]:60866 ["PING" "] \""]`,
		`1339518083.107412 [0 127.0.0.1:60866]`:                                       "",
		`1339518083.107412 [0 127.0.0.1:60866] `:                                      "",
		`1339518083.107412 [0 127.0.0.1:60866] "a`:                                    "",
		`1339518083.107412 [0 127.0.0.1:60866] "a" `:                                  "",
		`1339518083.107412 [0 127.0.0.1:60866] "a"x`:                                  "",
		`1339518083.107412 [0 127.0.0.1:60866] "a" x`:                                 "",
		`1339518083.107412 [x 127.0.0.1:60866] "a"`:                                   "",
		`1339518083.107412 [-1 127.0.0.1:60866] "a"`:                                  "",
		`1339518083.10741 [0 127.0.0.1:60866] "a"`:                                    "",
		`1339518083 [0 127.0.0.1:60866] "a"`:                                          "",
		`-1339518083.107412 [0 127.0.0.1:60866] "a"`:                                  "",
		`99999999999999999.107412 [0 127.0.0.1:60866] "a"`:                            "",
		``: "", `OK`: "", ` [`: "", ` [] "a"`: "", `. [0 a] "a"`: "",
	} {
		got := ""
		if c, ok := ParseCommand([]byte(line)); ok {
			got = fmt.Sprintf("%d %d %s %q", c.At, c.DB, c.Addr, c.Args)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

// Whatever is told of, a shadow knows a bounded number of keys, and a call comes
// to a bounded number of ops.
func FuzzShadow(f *testing.F) {
	for _, text := range []string{
		"SET a 1 NX PX 5\nGET a\nDEL a", "EXISTS h\nHINCRBY h f 1\nPEXPIRE h 5", "HINCRBY h f -1\nDEL h", "ZREMRANGEBYSCORE z -inf 5\nZCARD z\nZADD z 1700000000 tok\nEXPIRE z 9",
		"MSETEX 2 a 1 b 2 NX EX 5", "GETEX a EX 5", "DELEX a IFEQ x\nDELIFEQ a y", "INCR f\nSET k t NX EX 9", "SADD s a b\nSREM s a", "RENAME a b\nSWAPDB 0 1\nFLUSHALL", "GETSET\nSET\nHSET\nZADD\nMGET\nEXPIRE\nDELEX\nMSETEX",
		"SETNX a 1\nEXPIRE a 5\nGETDEL a\nPERSIST a", "GET k\nPEXPIREAT k 1700000000000\nSET k t XX EXAT 1700000000", "ZADD z NX XX GT CH INCR 1 a", "HGET k mode\nHSET k mode read t 1\nEXPIRE k 5",
	} {
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, whole bool) {
		s := NewShadow(testHash, NewScripts())
		if whole {
			s.Whole()
		}
		var inner []Command
		for _, line := range strings.Split(text, "\n") {
			c := Command{At: 1_700_000_000_000_000 + int64(len(line))}
			for _, w := range strings.Split(line, " ") {
				c.Args = append(c.Args, []byte(w))
			}
			inner = append(inner, c)
		}
		c := callOf("x", nil, strings.Fields(text))
		for range 2 {
			e := s.Script(c, inner[0].At, inner)
			for i := range inner {
				s.Run(&inner[i])
			}
			if len(e.Ops) > maxParts+1 {
				t.Errorf("%d ops", len(e.Ops))
			}
			for i := range e.Ops {
				if op := &e.Ops[i]; op.Outcome == "" || op.Kind == "" || op.Evidence == "" {
					t.Errorf("%+v", op)
				}
			}
			for _, r := range e.Unsure {
				s.Settle(&e, c, Sight{Ref: r, State: State{Type: String, Value: testHash.Of([]byte(text))}}, inner[0].At)
			}
		}
	})
}

func TestShadowIsBounded(t *testing.T) {
	s := NewShadow(nil, NewScripts())
	s.Whole()
	s.Run(&Command{Args: [][]byte{[]byte("SET"), []byte("first"), []byte("x")}})
	for i := range 2 * maxShadow {
		s.Run(&Command{Args: [][]byte{[]byte("SET"), []byte(fmt.Sprint(i)), []byte("x")}})
		s.Look(Ref{Key: "first"}, 0)
	}
	if len(s.keys) > maxShadow || s.Look(Ref{Key: "0"}, 0).Type != Unseen || s.Look(Ref{Key: "first"}, 0).Type != String {
		t.Errorf("%d keys; the first is %+v", len(s.keys), s.Look(Ref{Key: "first"}, 0))
	}
}

func BenchmarkShadow(b *testing.B) {
	for name, line := range map[string]string{
		"GET": `1339518083.107412 [0 127.0.0.1:60866] "GET" "key:000000000001"`,
		"SET": `1339518083.107412 [0 127.0.0.1:60866] "SET" "key:000000000001" "xxx"`,
		"NX":  `1339518083.107412 [0 127.0.0.1:60866] "SET" "key:000000000001" "0123456789abcdef" "NX" "PX" "500"`,
	} {
		b.Run(name, func(b *testing.B) {
			s := NewShadow(testHash, NewScripts())
			b.ReportAllocs()
			for b.Loop() {
				c, _ := ParseCommand([]byte(line))
				s.Run(&c)
			}
		})
	}
}
