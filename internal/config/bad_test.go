package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
)

const (
	rule  = "version: 1\nlocks:\n  - {name: a, key: 'lock:a', protects: [{table: t}, {table: u}]}\n  - {name: b, key: 'lock:b'}\nrules:\n  - "
	locky = "version: 1\nlocks:\n  - "
	proxy = "version: 1\nproxies:\n  "

	proxied = proxy + "redis: {listen: 127.0.0.1:1, upstream: 'a:1', tls: "
)

// bad lists files that must be refused, with the place and the words.
var bad = []struct{ text, want string }{
	{"", `1:1: the file is empty, expected version: 1`},
	{"# nothing\n", `1:1: the file is empty, expected version: 1`},
	{"proxies: {}", `1:1: the field version is missing`},
	{"version: 2", `1:10: unknown version 2, expected 1`},
	{"version: [1]", `1:10: expected a text or a number, found a list`},
	{"- version: 1", `1:1: expected a mapping, found a list`},
	{"version: 1\nversion: 1", `2:1: mapping key "version" already defined at [1:1]`},
	{"version: 1\nrule: []", `2:1: unknown field rule, expected one of version, proxies, locks, rules, invariants, witness`},
	{"version: 1\nrules: {}", `2:8: expected a list, found a mapping`},
	{"version: 1\nrules:", `2:8: expected a list, found nothing`},
	{"version: 1\n---\nversion: 1", `3:1: a second document begins here, expected one`},
	{"version: 1\nrules: [", `2:8: sequence end token ']' not found`},
	{"version: 1\nrules: &x []", `2:8: expected a list, found an anchor or alias, which are not read here`},
	{"version: 1\n\tproxies: {}", `2:1: found character '	' that cannot start any token`},

	{proxy + "redis: 127.0.0.1:6379", `3:10: expected a mapping, found a value`},
	{proxy + "redis: {listen: 127.0.0.1:1}", `3:10: the field upstream is missing`},
	{proxy + "redis: {listen: 127.0.0.1:1, upstream: localhost}", `3:42: expected HOST:PORT, found localhost`},
	{proxy + "redis: {listen: 127.0.0.1:1, upstream: ':6379'}", `3:42: expected a host and a port to connect to, found :6379`},
	{proxy + "redis: {listen: 127.0.0.1:99999, upstream: 'a:1'}", `3:19: expected a port from 0 to 65535, found 99999`},
	{proxy + "cache: {listen: 127.0.0.1:1, upstream: 'a:1'}", `3:3: the name cache tells no protocol, expected one that begins with redis or postgres, or the field protocol`},
	{proxy + "cache: {listen: 127.0.0.1:1, upstream: 'a:1', protocol: mysql}", `3:59: expected one of redis, postgres, found mysql`},
	{proxy + "redis: {listen: 127.0.0.1:1, upstream: 'a:1', auth: true}", `3:49: unknown field auth, expected one of listen, upstream, protocol, tls, proxy_protocol`},
	{proxy + "redis: {listen: 127.0.0.1:1, upstream: 'a:1', proxy_protocol: v2}", `3:65: expected one of true, false, found v2`},
	{proxy + "redis: {listen: 'unix:', upstream: 'a:1'}", `3:19: expected unix:PATH, such as unix:/run/lockfaultd/redis.sock, found no path`},
	{proxy + "redis: {listen: 127.0.0.1:1, upstream: 'a:1', tls: true}", `3:54: expected a mapping, found a value`},
	{proxied + "{server: {}}}", `3:55: unknown field server, expected one of client, upstream`},
	{proxied + "{client: {cert: none.pem}}}", `3:63: the field key is missing`},
	{proxied + "{client: {key: none.pem}}}", `3:63: the field cert is missing`},
	{proxied + "{client: {cert: none.pem, key: none.pem}}}", `3:70: cert: open none.pem: no such file or directory`},
	{proxied + "{client: {cert: rubbish.pem, key: none.pem}}}", `3:70: cert: rubbish.pem holds no certificate in PEM`},
	{proxied + "{client: {cert: cert.pem, key: none.pem}}}", `3:85: key: open none.pem: no such file or directory`},
	{proxied + "{client: {cert: cert.pem, key: cert.pem}}}", `3:85: key: cert.pem, for the certificate cert.pem: tls: found a certificate rather than a key in the PEM for the private key`},
	{proxied + "{client: {cert: cert.pem, key: cert.key, client_ca: ''}}}", `3:106: client_ca is empty, expected a value or no such field`},
	{proxied + "{client: {cert: '', key: cert.key}}}", `3:70: cert is empty, expected a value or no such field`},
	{proxied + "{upstream: {server_name: \"\"}}}", `3:79: server_name is empty, expected a value or no such field`},
	{proxied + "{client: {cert: cert.pem, key: other.key}}}", `3:85: key: other.key, for the certificate cert.pem: tls: private key does not match public key`},
	{proxied + "{client: {cert: cert.pem, key: cert.key, client_ca: none.pem}}}", `3:106: client_ca: open none.pem: no such file or directory`},
	{proxied + "{upstream: {mode: prefer}}}", `3:72: expected one of disable, require, verify-ca, verify-full, found prefer`},
	{proxied + "{upstream: {mode: disable, ca: x.pem}}}", `3:72: mode: disable leaves the upstream leg in plaintext, expected no other field beside it`},
	{proxied + "{upstream: {mode: require, ca: x.pem}}}", `3:85: ca: require trusts any certificate, expected verify-ca or verify-full beside a ca`},
	{proxied + "{upstream: {ca: x.pem}}}", `3:70: ca: open x.pem: no such file or directory`},
	{proxied + "{upstream: {cert: cert.pem}}}", `3:72: cert: expected key beside it`},
	{proxied + "{upstream: {key: cert.key}}}", `3:71: key: expected cert beside it`},
	{proxied + "{upstream: {negotiation: direct}}}", `3:66: unknown field negotiation, expected one of mode, ca, cert, key, server_name`},
	{proxy + "postgres: {listen: 127.0.0.1:1, upstream: 'a:1', tls: {upstream: {negotiation: ssl}}}", `3:82: expected one of postgres, direct, found ssl`},

	{locky + "{key: k}", `3:5: the field name is missing`},
	{locky + "{name: a}", `3:5: the field key is missing`},
	{locky + "{name: a, key: k, purpose: fun}", `3:32: expected one of correctness, efficiency, auto, found fun`},
	{locky + "{name: a, key: k, kind: fair}", `3:29: expected one of exclusive, reentrant, shared, semaphore, auto, found fair`},
	{locky + "{name: a, key: k, quorum: 1}", `3:31: expected how many servers grant the lock together, from 2 to 31, found 1`},
	{locky + "{name: a, key: k, quorum: all}", `3:31: expected how many servers grant the lock together, from 2 to 31, found all`},
	{locky + "{name: a, key: k, ignore: maybe}", `3:31: expected one of true, false, found maybe`},
	{locky + "{name: a, key: k, ignore: true, kind: shared}", `3:43: kind is superfluous, expected a lock that is ignored to say nothing else of itself`},
	{locky + "{name: a, key: k, ignore: true, protects: [{table: t}]}", `3:47: protects is superfluous, expected a lock that is ignored to say nothing else of itself`},
	{locky + "{name: a, key: k, except: k1}", `3:31: expected a list, found a value`},
	{locky + "{name: a, key: k, protects: [counter]}", `3:34: expected a mapping, found a value`},
	{locky + "{name: a, key: k, protects: [{fence: f}]}", `3:34: the field table is missing`},
	{locky + "{name: a, key: k, protects: [{table: 'a b'}]}", `3:42: expected a table, with or without its schema, found a b`},
	{locky + "{name: a, key: k, protects: [{table: t, fence: a.b}]}", `3:52: expected the name of a column, found a.b`},
	{locky + "{name: a, key: k}\n  - {name: a, key: l}", `4:12: the lock a is declared twice, expected a name of its own`},

	{rule + "write", `6:5: expected a mapping, found a value`},
	{rule + "{at: before, do: stall, for: 1s}", `6:5: the field on is missing`},
	{rule + "{on: {}, at: before, do: stall, for: 1s}", `6:10: the field event is missing`},
	{rule + "{on: {event: wite}, at: before, do: stall, for: 1s}", `6:18: unknown event "wite", the nearest known one is write (as a flag: --stall-before wite=1s)`},
	{rule + "{on: {event: 'write#3'}, at: before, do: stall, for: 1s}", `6:18: expected an event alone, such as write, SETNX or tick(1.5s), found write#3`},
	{rule + "{on: {event: 'write(t)'}, at: before, do: stall, for: 1s}", `6:18: expected an event alone, such as write, SETNX or tick(1.5s), found write(t)`},
	{rule + "{on: {event: write, lock: c}, at: before, do: stall, for: 1s}", `6:31: no lock is named c, expected a or b`},
	{rule + "{on: {event: write, lock: a}, at: before, do: stall, for: 1s}", `6:31: the lock a protects 2 tables (t, u), expected the field table and one of them`},
	{rule + "{on: {event: write, lock: b}, at: before, do: stall, for: 1s}", `6:31: the lock b protects no table, expected the field table, or protects in the lock`},
	{rule + "{on: {event: write, key: k}, at: before, do: stall, for: 1s}", `6:30: the event write is about a table, expected table or lock rather than key`},
	{rule + "{on: {event: acquire, table: k}, at: before, do: stall, for: 1s}", `6:34: the event acquire is about a key, expected key or lock rather than table`},
	{rule + "{on: {event: acquire, key: k, lock: a}, at: before, do: stall, for: 1s}", `6:32: lock and key exclude each other, expected one of them`},
	{rule + "{on: {event: BEGIN, table: t}, at: before, do: stall, for: 1s}", `6:32: BEGIN names neither a key nor a table, expected no parentheses (as a flag: --stall-before BEGIN(t)=1s)`},
	{rule + "{on: {event: write, every: 0}, at: before, do: stall, for: 1s}", `6:32: events are counted from 1, expected 1 or more (as a flag: --stall-before write#*/0=1s)`},
	{rule + "{on: {event: write, every: often}, at: before, do: stall, for: 1s}", `6:32: expected a whole number from 1, found often`},
	{rule + "{on: {event: write, every: 2, nth: 3}, at: before, do: stall, for: 1s}", `6:40: every and nth exclude each other, expected one of them`},
	{rule + "{on: {event: write, from: 2}, at: before, do: stall, for: 1s}", `6:31: the field to is missing, expected from and to`},
	{rule + "{on: {event: write, to: 2}, at: before, do: stall, for: 1s}", `6:29: to is superfluous, expected it with from`},
	{rule + "{on: {event: write, from: 6, to: 1}, at: before, do: stall, for: 1s}", `6:38: the range ends at 1 before it begins at 6, expected 6 or more (as a flag: --stall-before write#6-1=1s)`},
	{rule + "{on: {event: write, probability: 0.05}, at: before, do: stall, for: 1s}", `6:38: expected a percentage such as 5%, found 0.05`},
	{rule + "{on: {event: write, probability: 101%}, at: before, do: stall, for: 1s}", `6:38: a chance of 101% is out of range, expected more than 0% and at most 100% (as a flag: --stall-before write@101%=1s)`},
	{rule + "{on: {event: write}, do: stall, for: 1s}", `6:5: the field at is missing, expected at: before or at: after`},
	{rule + "{on: {event: write}, at: during, do: stall, for: 1s}", `6:30: expected one of before, after, found during`},
	{rule + "{on: {event: write}, at: before, do: delay, for: 1s}", `6:42: expected one of stall, freeze, hold, hold-reply, drop-reply, reset, lose-key, kill-backend, found delay`},
	{rule + "{on: {event: write}, do: hold}", `6:5: the field for is missing, expected a duration such as for: 800ms`},
	{rule + "{on: {event: write}, at: before, do: hold, for: 1s}", `6:30: at is superfluous: hold says on which side of the event it is, expected the rule without it`},
	{rule + "{on: {event: write}, do: hold, for: 1s, scope: process}", `6:52: a hold is of one connection, expected the rule without scope=process (as a flag: --hold write=1s,scope=process)`},
	{rule + "{on: {event: write}, do: drop-reply, for: 1s}", `6:47: the effect is superfluous: a drop-reply takes no time, expected the rule without it (as a flag: --drop-reply write=1s)`},
	{rule + "{on: {event: write}, do: reset}", `6:5: the field at is missing, expected at: before or at: after`},
	{rule + "{on: {event: 'tick(1s)'}, do: reset, at: after}", `6:18: a tick holds no message that a reset-after could be about: expected an event such as acquire or write (as a flag: --reset-after tick(1s))`},
	{rule + "{on: {event: write}, at: before, do: stall}", `6:5: the field for is missing, expected a duration such as for: 800ms`},
	{rule + "{on: {event: write}, at: before, do: stall, for: 800}", `6:54: expected a unit after 800: ns, us, ms, s, m or h (as a flag: --stall-before write=800)`},
	{rule + "{name: x, on: {event: write}, at: before, do: stall, for: 800, max: 3}", `6:63: expected a unit after 800: ns, us, ms, s, m or h (as a flag: --stall-before write=800,max=3,name=x)`},
	{rule + "{on: {event: write}, at: before, do: stall, for: '1s,max=3'}", `6:54: expected a value without commas and equals signs, found 1s,max=3`},
	{rule + "{on: {event: acquire}, at: before, do: stall, for: ttl}", `6:56: before an acquire there is no grant, so ttl is unknown: expected a duration such as 800ms, or --stall-after (as a flag: --stall-before acquire=ttl)`},
	{rule + "{on: {event: 'tick(1s)'}, do: freeze, for: ttl}", `6:48: a tick belongs to no lease, so ttl is unknown: expected a duration such as 800ms (as a flag: --freeze-after tick(1s)=ttl)`},
	{rule + "{on: {event: write}, at: before, do: freeze, for: 1s, until: [next-write]}", `6:66: for and until exclude each other, expected one of them`},
	{rule + "{on: {event: write}, at: before, do: freeze, until: [next-wite]}", `6:57: unknown condition "next-wite", the nearest known one is next-write (as a flag: --freeze-before write=until:next-wite)`},
	{rule + "{on: {event: write}, at: before, do: freeze, for: 1s, scope: conn}", `6:66: only a process can be frozen, not a connection: expected scope=process or scope=cgroup, or --stall-before (as a flag: --freeze-before write=1s,scope=conn)`},
	{rule + "{on: {event: write}, at: before, do: freeze, for: 1s, max: 0}", `6:64: max=0 would never fire, expected 1 or more (as a flag: --freeze-before write=1s,max=0)`},
	{rule + "{on: {event: write}, at: before, do: freeze, for: 1s, mode: x}", `6:65: not yet: mode is not built, expected the rule without it (as a flag: --freeze-before write=1s,mode=x)`},
	{rule + "{on: {event: write}, at: before, do: freeze, for: 1s, name: 'a b'}", `6:65: expected a name of letters, digits and _ - . : /, found ' ' (as a flag: --freeze-before write=1s,name=a b)`},
	{rule + "{name: x, on: {event: write}, at: before, do: freeze, for: 1s}\n  - {name: x, on: {event: read}, at: before, do: freeze, for: 1s}", `7:12: another rule is named x, expected a name of its own`},

	{"version: 1\ninvariants:\n  - {name: a, kind: sum, query: SELECT 1}", `3:21: expected one of counter, fence, monotone, found sum`},
	{"version: 1\ninvariants:\n  - {name: a, kind: counter, query: SELECT 1}\n  - {name: a, kind: fence, query: SELECT 2}", `4:12: the name a is taken, expected one of its own`},
	{"version: 1\ninvariants:\n  - {name: '', kind: counter, query: SELECT 1}", `3:12: the name "" is none, expected some text on one line`},
	{"version: 1\ninvariants:\n  - {name: a, kind: counter}", `3:5: the field query is missing`},
	{"version: 1\ninvariants:\n  - {name: a, kind: fence, query: SELECT 1, lock: z}", `3:51: no lock is named z, expected it to be declared under locks`},
}

// beside makes the files that the cases name, in the working folder.
func beside(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	a := testbed.NewAuthority(t, ".")
	a.Issue(t, "cert", "db")
	a.Issue(t, "other", "db")
	if err := os.WriteFile("rubbish.pem", []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBadFiles(t *testing.T) {
	beside(t)
	for _, b := range bad {
		_, err := Parse("x.yaml", []byte(b.text))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", b.text, err)
			continue
		}
		if got := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason); got != b.want {
			t.Errorf("%q:\n got %s\nwant %s", b.text, got, b.want)
		}
	}
}

func TestErrorShowsTheLines(t *testing.T) {
	_, err := Parse("ci.yaml", []byte("version: 1\nrules:\n  - name: x\n    on: {event: write}\n    at: before\n    do: freeze\n    for: 800\n"))
	const want = `ci.yaml:7:10: expected a unit after 800: ns, us, ms, s, m or h (as a flag: --freeze-before write=800,name=x)
    5 |     at: before
    6 |     do: freeze
    7 |     for: 800
                 ^`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestProxyFlag(t *testing.T) {
	const form = "expected LISTEN=UPSTREAM, such as 127.0.0.1:16379=127.0.0.1:6379"
	for text, want := range map[string]string{
		"127.0.0.1:16379=127.0.0.1:6379":            "127.0.0.1:16379 127.0.0.1:6379 plaintext",
		":0=redis:6379":                             ":0 redis:6379 plaintext",
		"[::1]:1=[::1]:2":                           "[::1]:1 [::1]:2 plaintext",
		"a:1=redis://b:2":                           "a:1 b:2 plaintext",
		"a:1=rediss://b:2":                          "a:1 b:2 TLS verify-full b",
		"a:1=rediss://b:2?ssl_cert_reqs=none":       "a:1 b:2 TLS require b",
		"a:1=rediss://b:2?skip_verify=true":         "a:1 b:2 TLS require b",
		"a:1=rediss://b:2?ssl_check_hostname=0":     "a:1 b:2 TLS verify-ca b",
		"127.0.0.1:16379":                           "127.0.0.1:16379: " + form,
		"16379=127.0.0.1:6379":                      "16379=127.0.0.1:6379: listen address: expected HOST:PORT, found 16379",
		"unix:/run/r.sock=b:2":                      "unix:/run/r.sock b:2 plaintext",
		"unix:@name=b:2":                            "unix:@name b:2 plaintext",
		"unix:=b:2":                                 "unix:=b:2: listen address: expected unix:PATH, such as unix:/run/lockfaultd/redis.sock, found no path",
		"unix:" + strings.Repeat("x", 108) + "=b:2": "unix:" + strings.Repeat("x", 108) + "=b:2: listen address: expected a path of at most 107 bytes, found one of 108",
		"a:1=unix:/run/r.sock":                      "a:1=unix:/run/r.sock: upstream address: expected a port from 0 to 65535, found /run/r.sock",
		"a:1=b":                                     "a:1=b: upstream address: expected HOST:PORT, found b",
		"a:1=b:0":                                   "a:1=b:0: upstream address: expected a host and a port to connect to, found b:0",
		"a:x=b:1":                                   "a:x=b:1: listen address: expected a port from 0 to 65535, found x",
		"":                                          `"": ` + form,
		"a:1=rediss://b":                            "a:1=rediss://b: upstream address: expected HOST:PORT, found b",
		"a:1=rediss://u:pw@b:2":                     "a:1=rediss://...@b:2: upstream address: expected HOST:PORT or rediss://HOST:PORT?ssl_ca_certs=FILE, found rediss://...@b:2",
		"a:1=postgres://b:2":                        "a:1=postgres://b:2: upstream address: expected HOST:PORT or rediss://HOST:PORT?ssl_ca_certs=FILE, found postgres://b:2",
		"a:1=rediss://b:2?db=3":                     "a:1=rediss://b:2?db=3: upstream address: unknown option db, expected rediss://HOST:PORT?ssl_ca_certs=FILE",
		"a:1=b:2?ssl_ca_certs=c":                    "a:1=b:2?ssl_ca_certs=c: upstream address: options need rediss://, expected rediss://HOST:PORT?ssl_ca_certs=FILE, found b:2?ssl_ca_certs=c",
		"a:1=redis://b:2?ssl_ca_certs=c":            "a:1=redis://b:2?ssl_ca_certs=c: upstream address: the option ssl_ca_certs needs rediss:// rather than redis://",
		"a:1=redis://b:2?db=3":                      "a:1=redis://b:2?db=3: upstream address: unknown option db, expected rediss://HOST:PORT?ssl_ca_certs=FILE",
		"a:1=rediss://b:2?ssl_cert_reqs=bogus":      "a:1=rediss://b:2?ssl_cert_reqs=bogus: upstream address: ssl_cert_reqs=bogus: expected one of required, cert_required, 2, optional, cert_optional, 1, none, cert_none, 0",
		"a:1=rediss://b:2?skip_verify=yes":          "a:1=rediss://b:2?skip_verify=yes: upstream address: skip_verify=yes: expected one of true, 1, false, 0",
		"a:1=rediss://b:2?ssl_ca_path=/x":           "a:1=rediss://b:2?ssl_ca_path=/x: upstream address: the option ssl_ca_path cannot be kept, expected ssl_cert_reqs, ssl_check_hostname, ssl_ca_certs, ssl_certfile or ssl_keyfile",
		"a:1=rediss://b:2?ssl_ca_certs=/none.pem":   "a:1=rediss://b:2?ssl_ca_certs=/none.pem: upstream TLS: ssl_ca_certs: open /none.pem: no such file or directory",
	} {
		if got := flagged(ParseProxyFlag(lock.Redis, text)); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"a:1=b:2":                                                  "a:1 b:2 plaintext",
		"a:1=b:2?sslmode=disable":                                  "a:1 b:2 plaintext",
		"a:1=b:2?sslmode=require":                                  "a:1 b:2 TLS require b",
		"a:1=b:2?sslmode=verify-ca":                                "a:1 b:2 TLS verify-ca b",
		"a:1=postgres://b:2?sslmode=verify-full":                   "a:1 b:2 TLS verify-full b",
		"a:1=b:2?sslrootcert=system":                               "a:1 b:2 TLS verify-full b",
		"a:1=b:2?sslmode=require&sslnegotiation=direct":            "a:1 b:2 TLS require b direct",
		"a:1=b:2?sslrootcert=c&sslkey=k":                           "a:1=b:2?sslrootcert=c&sslkey=k: upstream address: the option sslkey needs sslmode=require, verify-ca or verify-full",
		"a:1=b:2?sslmode=prefer&sslrootcert=c":                     "a:1=b:2?sslmode=prefer&sslrootcert=c: upstream address: the option sslrootcert needs sslmode=require, verify-ca or verify-full",
		"a:1=b:2?sslmode=require&dbname=x":                         "a:1=b:2?sslmode=require&dbname=x: upstream address: unknown option dbname, expected HOST:PORT?sslmode=verify-full&sslrootcert=FILE",
		"a:1=b:2?sslmode=verify":                                   "a:1=b:2?sslmode=verify: upstream address: sslmode=verify: expected disable, allow, prefer, require, verify-ca or verify-full",
		"a:1=b:2?sslmode=require&sslkey=k":                         "a:1=b:2?sslmode=require&sslkey=k: upstream address: sslkey: expected sslcert beside it",
		"a:1=b:2?sslmode=require&sslcrl=k":                         "a:1=b:2?sslmode=require&sslcrl=k: upstream address: the option sslcrl cannot be kept",
		"a:1=b:2?sslmode=require&channel_binding=require":          "a:1=b:2?sslmode=require&channel_binding=require: upstream address: channel_binding=require cannot be kept where TLS ends at the proxy; expected prefer or disable",
		"a:1=b:2?sslmode=":                                         "a:1=b:2?sslmode=: upstream address: the option sslmode is empty, expected a value or no such option",
		"a:1=b:2?sslmode=require&sslnegotiation=direkt":            "a:1=b:2?sslmode=require&sslnegotiation=direkt: upstream address: sslnegotiation=direkt: expected postgres or direct",
		"a:1=b:2?sslmode=require&ssl=true":                         "a:1=b:2?sslmode=require&ssl=true: upstream address: the options ssl and sslmode are both given, expected one of them",
		"a:1=b:2?sslmode=verify-full&sslmode=require":              "a:1=b:2?sslmode=verify-full&sslmode=require: upstream address: the option sslmode is given more than once",
		"a:1=b:2?sslmode=require&sslcertmode=require":              "a:1=b:2?sslmode=require&sslcertmode=require: upstream address: sslcertmode=require cannot be kept, expected allow",
		"a:1=b:2?sslmode=require&ssl_min_protocol_version=TLSv1.2": "a:1 b:2 TLS require b",
		"a:1=b:2?sslmode=require&ssl_min_protocol_version=TLSv1.3": "a:1=b:2?sslmode=require&ssl_min_protocol_version=TLSv1.3: upstream address: ssl_min_protocol_version=TLSv1.3 cannot be kept, expected TLSv1 or TLSv1.1 or TLSv1.2",
		"a:1=b:2?dbname=x":                                         "a:1=b:2?dbname=x: upstream address: unknown option dbname, expected HOST:PORT?sslmode=verify-full&sslrootcert=FILE",
	} {
		if got := flagged(ParseProxyFlag(lock.Postgres, text)); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func flagged(p Proxy, err error) string {
	if err != nil {
		return err.Error()
	}
	return p.Listen + " " + p.Upstream + " " + trusted(p.TLS)
}

// trusted says what an upstream leg checks.
func trusted(t TLS) string {
	c := t.Upstream
	if c == nil {
		return "plaintext"
	}
	mode := VerifyFull
	switch {
	case c.VerifyConnection != nil:
		mode = VerifyCA
	case c.InsecureSkipVerify:
		mode = Require
	}
	out := "TLS " + mode + " " + c.ServerName
	if t.Direct {
		out += " direct"
	}
	return out
}

func TestLockFlag(t *testing.T) {
	const form = ": expected KEY=TABLE or KEY=TABLE.FENCE, such as lock:counter=counter.fence"
	for text, want := range map[string]string{
		"lock:counter=counter.fence": "{lock:counter counter fence  true} <nil>",
		"lock:counter=counter":       "{lock:counter counter   true} <nil>",
		"a=b=public.counter.fence":   "{a=b public.counter fence  true} <nil>",
		"lock:*=Counter.\"Fence\"":   "{lock:* counter Fence  true} <nil>",
		`k="s.x"`:                    "{k s.x   true} <nil>",
		"k=zähler":                   "{k zähler   true} <nil>",
		"lock:counter":               "{    false} --lock: lock:counter" + form,
		"=counter":                   "{    false} --lock: =counter" + form,
		"k=":                         "{    false} --lock: k=: column 3" + form,
		"k=a.b.c.d":                  "{    false} --lock: k=a.b.c.d: column 3" + form,
		"k=a..b":                     "{    false} --lock: k=a..b: column 3" + form,
		"k=a b":                      "{    false} --lock: k=a b: column 3" + form,
		`k="a`:                       `{    false} --lock: k="a: column 3` + form,
	} {
		d, err := ParseLockFlag(text)
		if got := fmt.Sprintf("{%s %s %s %s %v} %v", d.Key, d.Table, d.FenceColumn, d.Purpose, d.Declared, err); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}
