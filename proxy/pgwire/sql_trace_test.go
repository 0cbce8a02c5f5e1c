package pgwire

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

const traceID = "5bd66ef5095369c7b0d1f8f4bd33716a"

func TestTraceOf(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT 1 /*traceparent='00-" + traceID + "-c532cb4098ac3dd2-01',tracestate='x%3Dy'*/": traceID,
		"/*action='a',traceparent=%2700-" + traceID + "-c532cb4098ac3dd2-01%27*/ SELECT 1;":    traceID,
		"SELECT 1 /* traceparent:00-" + traceID + "-c532cb4098ac3dd2-01 */ ;\n":                traceID,
		"SELECT 1 /*application:App,controller:users,request_id:27ab-9*/":                      "27ab-9",
		"SELECT 1 /*application='App',trace_id='7'*/":                                          "7",
		"SELECT 1 /*controller:users*/":                                                        "",
		"SELECT 1 /*traceparent='00-abc-c532cb4098ac3dd2-01'*/":                                "",
		"SELECT 1 /*request_id:" + strings.Repeat("x", 65) + "*/":                              "",
		"SELECT '/*request_id:5*/'":                                                            "",
		"SELECT 1 -- /*request_id:5*/":                                                         "",
		"SELECT /*request_id:5*/ 1":                                                            "",
		"SELECT 1 /* a /*request_id:5*/ */":                                                    "",
		"/*request_id:5*/":                                                                     "5",
		"/*":                                                                                   "",
		"/*/":                                                                                  "", "*/": "",
		"": "",
	} {
		if got := traceOf([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A comment at an end is no part of what a text says, and what looks like one and
// is none stays.
func TestCommented(t *testing.T) {
	for text, want := range map[string]string{
		"/* a */ select 1 /* b */ ;":            "select 1",
		"select 1 -- /*\n; delete from t -- */": "select 1 -- /*\n; delete from t -- */",
		"select '/*'; delete from t /* x */":    "select '/*'; delete from t /* x */",
		"/* a /* b */ */ delete from t":         "/* a /* b */ */ delete from t",
		"select 1 /* a */ , 2 /* b */":          "select 1 /* a */ , 2 /* b */",
		"/*/ delete from t /*/":                 "/*/ delete from t /*/",
		"select 1 */":                           "select 1 */",
	} {
		if rest, _, _ := commented([]byte(text)); string(rest) != want {
			t.Errorf("%s: %q, want %q", text, rest, want)
		}
	}
}

// Each statement has the trace of its own text, though what was read of it is
// shared.
func TestTraceOfStatements(t *testing.T) {
	cache := NewCache()
	tr := newTracker()
	tr.opt.Statements = cache
	pl := newPlayer(t, tr).play(encode(t, append(started[:2:2],
		fe{q("update t set a = 1; delete from t /*request_id:1*/")}, be{c("UPDATE 1"), c("DELETE 1"), z('I')},
		fe{q("update t set a = 1; delete from t /*request_id:2*/")}, be{c("UPDATE 1"), c("DELETE 1"), z('I')},
		fe{p("", "delete from t /*request_id:3*/"), b("", ""), e(""), syn}, be{parsed, boundOK, c("DELETE 1"), z('I')},
		fe{p("", "delete from t /*request_id:4*/"), b("", ""), e(""), syn}, be{parsed, boundOK, c("DELETE 1"), z('I')},
		fe{p("", "delete from t"), b("", ""), e(""), syn}, be{parsed, boundOK, c("DELETE 1"), z('I')})), 0)
	var got []string
	for _, m := range pl.marks {
		if m.Kind == wire.Request {
			got = append(got, m.Op.SQL.Trace)
		}
	}
	if s := strings.Join(got, " "); s != "1 1 2 2 3 4 " {
		t.Errorf("traces %q", s)
	}
	if n := len(cache.texts.young) + len(cache.texts.old); n != 2 {
		t.Errorf("%d texts are kept, want 2: a comment makes none of its own", n)
	}
}
