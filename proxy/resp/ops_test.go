package resp

import (
	"strings"
	"testing"
)

func TestDirectOps(t *testing.T) {
	tests := []struct{ request, reply, want string }{
		{"SETNX k tok", ":1", `SETNX acquire db0 "k" nx T granted`},
		{"setnx k tok", ":0", `SETNX acquire db0 "k" nx T refused`},
		{"SET k tok NX PX 500", "+OK", `SET acquire db0 "k" nx T ttl=500ms granted`},
		{"SET k tok PX 500 NX", "+OK", `SET acquire db0 "k" nx T ttl=500ms granted`},
		{"set k tok ex 8 nx", "$-1", `SET acquire db0 "k" nx T ttl=8s refused`},
		{"SET k tok nX", "_", `SET acquire db0 "k" nx T refused`},
		{"SET k tok NX PXAT 99999999999999", "+OK", `SET acquire db0 "k" nx T granted until`},
		{"SET k tok EXAT 99999999999 NX", "+OK", `SET acquire db0 "k" nx T granted until`},
		{"SET k tok NX GET PX 5", "$-1", `SET acquire db0 "k" nx T ttl=5ms granted`},
		{"SET k tok NX GET PX 5", "$3\r\nold", `SET acquire db0 "k" nx T ttl=5ms refused`},
		{"SET k tok NX GET PX 5", "$2\r\nOK", `SET acquire db0 "k" nx T ttl=5ms refused`},
		{"SET k tok NX KEEPTTL", "+OK", `SET acquire db0 "k" nx T granted`},
		{"SET k tok NX PX 99999999999999999", "+OK", `SET acquire db0 "k" nx T ttl=2562047h47m16.854775807s granted`},
		{"SET k tok NX PX soon", "-ERR value is not an integer", `SET acquire db0 "k" nx T failed err=ERR`},
		{"SET k tok NX PX 500", "-MOVED 1 h:1", `SET acquire db0 "k" nx T ttl=500ms failed err=MOVED`},
		{"SET k tok NX PX 500", "!9\r\nREADONLY ", `SET acquire db0 "k" nx T ttl=500ms failed err=READONLY`},
		{"SET k tok", "+OK", ""},
		{"SET k tok KEEPTTL", "+OK", ""},
		{"SET k tok XX", "+OK", ""},
		{"SET k tok PX 500", "+OK", `SET store db0 "k" T ttl=500ms done`},
		{"SET k tok EX 1 GET", "$1\r\nx", `SET store db0 "k" T ttl=1s done`},
		{"SETEX k 2 tok", "+OK", `SETEX store db0 "k" T ttl=2s done`},
		{"PSETEX k 2 tok", "+OK", `PSETEX store db0 "k" T ttl=2ms done`},
		{"SET k tok XX PX 500", "+OK", `SET renew db0 "k" T ttl=500ms done`},
		{"SET k tok XX PX 500", "$-1", `SET renew db0 "k" T ttl=500ms not-held`},
		{"SET k tok XX PX 500 GET", "$-1", `SET renew db0 "k" T ttl=500ms not-held`},
		{"SET k new IFEQ tok PX 500", "+OK", `SET renew db0 "k" guarded T ttl=500ms done`},
		{"SET k tok IFEQ tok PX 500", "$-1", `SET renew db0 "k" guarded T ttl=500ms not-held`},
		{"DEL k", ":1", `DEL release db0 "k" done`},
		{"UNLINK k", ":0", `UNLINK release db0 "k" not-held`},
		{"DEL a b", ":2", `DEL release db0 "a" done|DEL release db0 "b" done`},
		{"DEL a b", ":1", `DEL release db0 "a" unknown|DEL release db0 "b" unknown`},
		{"DEL a b", ":0", `DEL release db0 "a" not-held|DEL release db0 "b" not-held`},
		{"PEXPIRE k 500", ":1", `PEXPIRE renew db0 "k" ttl=500ms done`},
		{"EXPIRE k 5", ":0", `EXPIRE renew db0 "k" ttl=5s not-held`},
		{"EXPIRE k 5 GT", ":0", `EXPIRE renew db0 "k" ttl=5s failed`},
		{"EXPIRE k 0", ":1", `EXPIRE release db0 "k" done`},
		{"PEXPIRE k -1", ":0", `PEXPIRE release db0 "k" not-held`},
		{"PEXPIREAT k 99999999999999", ":1", `PEXPIREAT renew db0 "k" done until`},
		{"DELEX k IFEQ tok", ":1", `DELEX release db0 "k" guarded T done`},
		{"DELEX k IFNE tok", ":1", `DELEX release db0 "k" done`},
		{"DELEX k IFDEQ 5f0e", ":1", `DELEX release db0 "k" done`},
		{"DELEX k IFDNE 5f0e", ":0", `DELEX release db0 "k" not-held`},
		{"DELEX k IFEQ", "-ERR x", ""},
		{"DELEX k ALWAYS tok", "-ERR x", ""},
		{"DELEX k", ":1", `DELEX release db0 "k" done`},
		{"DELIFEQ k tok", ":0", `DELIFEQ release db0 "k" guarded T not-held`},
		{"INCR f", ":42", `INCR fence db0 "f" fencekey=f fence=42 done`},
		{"INCR f", "-WRONGTYPE x", `INCR fence db0 "f" fencekey=f failed err=WRONGTYPE`},
		{"INCRBY f 2", ":44", `INCRBY fence db0 "f" fencekey=f fence=44 done`},
		{"INCRBY f -2", ":44", ""},
		{"GET k", "$3\r\ntok", ""},
		{"GETDEL k", "$3\r\ntok", `GETDEL release db0 "k" done`},
		{"GETDEL k", "$-1", `GETDEL release db0 "k" not-held`},
		{"GETEX k", "$3\r\ntok", ""},
		{"GETEX k PERSIST", "$3\r\ntok", ""},
		{"GETEX k PX 500", "$3\r\ntok", `GETEX renew db0 "k" ttl=500ms done`},
		{"GETEX k EXAT 99999999999", "$-1", `GETEX renew db0 "k" not-held until`},
		{"SET k tok IFNE old PX 500", "+OK", `SET acquire db0 "k" T ttl=500ms granted`},
		{"SET k tok IFNE tok", "$-1", `SET acquire db0 "k" T refused`},
		{"SET k tok IFNE old GET", "$3\r\nold", `SET acquire db0 "k" T unknown`},
		{"SET k tok IFDEQ 5f0e PX 500", "+OK", `SET renew db0 "k" guarded T ttl=500ms done`},
		{"SET k tok IFDNE 5f0e", "_", `SET acquire db0 "k" T refused`},
		{"MSETNX a tok b tok", ":1", `MSETNX acquire db0 "a" nx T granted|MSETNX acquire db0 "b" nx T granted`},
		{"MSETNX a tok b tok", ":0", `MSETNX acquire db0 "a" nx T refused|MSETNX acquire db0 "b" nx T refused`},
		{"MSETEX 2 a tok b tok NX PX 500", ":1", `MSETEX acquire db0 "a" nx T ttl=500ms granted|MSETEX acquire db0 "b" nx T ttl=500ms granted`},
		{"MSETEX 2 a tok b tok PXAT 99999999999999 nx", ":0", `MSETEX acquire db0 "a" nx T refused until|MSETEX acquire db0 "b" nx T refused until`},
		{"MSETEX 1 NX tok NX", ":1", `MSETEX acquire db0 "NX" nx T granted`},
		{"MSETEX 1 a tok XX EX 5", ":1", `MSETEX renew db0 "a" T ttl=5s done`},
		{"MSETEX 1 a tok EX 5", ":1", `MSETEX store db0 "a" T ttl=5s done`},
		{"MSETEX 1 a tok", ":1", ""},
		{"MSETEX 2 a tok NX", "-ERR x", ""},
		{"MSETEX 0 a tok NX", "-ERR x", ""},
		{"MSETEX x a tok NX", "-ERR x", ""},
		{"HSETNX k tok me", ":1", `HSETNX store db0 "k" nx T done member`},
		{"HSETNX k tok me", ":0", `HSETNX store db0 "k" nx T not-held member`},
		{"SADD k tok", ":1", `SADD store db0 "k" nx T done member`},
		{"SADD k tok other", ":2", ""},
		{"ZADD k NX 5 tok", ":1", `ZADD store db0 "k" nx T done member`},
		{"ZADD k XX 5 tok", ":1", ""},
		{"ZADD k 5 tok", ":1", ""},
		{"HDEL k tok", ":1", ""},
		{"SETNX k 1700000000", ":1", `SETNX acquire db0 "k" nx S granted until`},
		{"SETNX k 1700000000.25", ":0", `SETNX acquire db0 "k" nx F refused until`},
		{"SETNX k 1700000000250", ":1", `SETNX acquire db0 "k" nx M granted until`},
		{"SETNX k 17000000002", ":1", `SETNX acquire db0 "k" nx L granted`},
		{"SET k 1700000000 NX", "+OK", `SET acquire db0 "k" nx S granted until`},
		{"SET k 1700000000 NX PX 500", "+OK", `SET acquire db0 "k" nx S ttl=500ms granted`},
		{"GETSET k 1700000000", "$-1", `GETSET acquire db0 "k" S granted until`},
		{"GETSET k 1700000000", "$10\r\n1600000000", `GETSET acquire db0 "k" S unknown until`},
		{"GETSET k 1700000000", "$3\r\ntok", `GETSET acquire db0 "k" S unknown until`},
		{"GETSET k tok", "$3\r\nold", ""},
		{"EXPIREAT k 99999999999", ":1", `EXPIREAT renew db0 "k" done until`},
		{"EXPIREAT k 5", ":1", `EXPIREAT release db0 "k" done`},
		{"PEXPIREAT k 5", ":0", `PEXPIREAT release db0 "k" not-held`},
		{"HSET k f v", ":1", ""},
		{"FCALL f 1 k tok", ":1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.request+" "+tt.reply, func(t *testing.T) {
			want := inWords.Replace(tt.want)
			for _, request := range []string{words(tt.request), tt.request + "\r\n", tt.request + "\n"} {
				got := strings.Join(exchange(t, newTracker(), request, tt.reply+"\r\n"), "|")
				if got != want {
					t.Errorf("%q: got  %s\nwant %s", request, got, want)
				}
			}
		})
	}
}

// inWords puts tokens in place of their names.
var inWords = strings.NewReplacer(" T", " "+tok("tok"), " S", " "+tok("1700000000"), " F", " "+tok("1700000000.25"), " M", " "+tok("1700000000250"), " L", " "+tok("17000000002"))

func TestOpIsOfItsConnection(t *testing.T) {
	marks, _ := newTracker().Client([]byte(words("SETNX k v")), nil)
	op := marks[0].Op
	if op.Session != 7 || op.Upstream != "redis" || op.Proto != "redis" || op.Outcome != "" || op.Token.Hash == "" {
		t.Errorf("got %+v", op)
	}
}
