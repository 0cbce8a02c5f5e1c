package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/internal/testbed"
	"github.com/lockfaultd/lockfaultd/lock"
)

const designed = `
version: 1
proxies:
  redis:    {listen: 127.0.0.1:16379, upstream: 127.0.0.1:6379}
  postgres: {listen: 127.0.0.1:15432, upstream: 127.0.0.1:5432}
locks:
  - {name: counter, key: "lock:counter", protects: [{table: counter, fence: fence}]}
rules:
  - {name: pause, on: {event: write, lock: counter, every: 20}, at: before, do: freeze, for: 800ms}
invariants:
  - {name: counter, kind: counter, query: "SELECT value FROM counter WHERE id = 1", lock: counter}
  - {name: fence,   kind: fence,   query: "SELECT fence FROM counter WHERE id = 1"}
`

func TestParse(t *testing.T) {
	got, err := Parse("x.yaml", []byte(designed))
	if err != nil {
		t.Fatal(err)
	}
	pause, err := fault.Parse("freeze-before", "write(counter)#*/20=800ms,name=pause")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Proxies: []Proxy{
			{Name: "redis", Protocol: lock.Redis, Listen: "127.0.0.1:16379", Upstream: "127.0.0.1:6379"},
			{Name: "postgres", Protocol: lock.Postgres, Listen: "127.0.0.1:15432", Upstream: "127.0.0.1:5432"},
		},
		Locks: []lock.Declaration{{Key: "lock:counter", Table: "counter", FenceColumn: "fence", Declared: true}},
		Rules: []fault.Rule{pause},
		Invariants: []Invariant{
			{Name: "counter", Kind: "counter", Query: "SELECT value FROM counter WHERE id = 1", Lock: "lock:counter"},
			{Name: "fence", Kind: "fence", Query: "SELECT fence FROM counter WHERE id = 1"},
		},
		known: locks{"counter": {key: "lock:counter", tables: []string{"counter"}}},
	}
	want.Names = []Name{{"counter", want.Locks[0]}}
	var places []string
	for i := range got.Invariants {
		places = append(places, got.Invariants[i].Place())
		got.Invariants[i].at = nil
	}
	if err := got.Misfit(0, errors.New("it is no good")); !strings.HasPrefix(err.Error(), "x.yaml:9:5: it is no good\n") {
		t.Error(err)
	}
	got.rules = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if fmt.Sprint(places) != "[x.yaml:11:43 x.yaml:12:43]" {
		t.Errorf("the queries stand at %v", places)
	}
}

func TestTLS(t *testing.T) {
	beside(t)
	for yaml, want := range map[string]string{
		"{}":                          "plaintext, plaintext",
		"{upstream: {}}":              "plaintext, TLS verify-full db",
		"{upstream: {mode: disable}}": "plaintext, plaintext",
		"{upstream: {mode: require, negotiation: direct}}":                             "plaintext, TLS require db direct",
		"{upstream: {mode: verify-ca, ca: cert.pem}}":                                  "plaintext, TLS verify-ca db",
		"{upstream: {server_name: x, ca: cert.pem, cert: cert.pem, key: cert.key}}":    "plaintext, TLS verify-full x",
		"{client: {cert: cert.pem, key: cert.key}}":                                    "TLS, plaintext",
		"{client: {cert: cert.pem, key: cert.key, client_ca: cert.pem}, upstream: {}}": "TLS of known clients, TLS verify-full db",
	} {
		c, err := Parse("x.yaml", []byte("version: 1\nproxies:\n  postgres: {listen: ':0', upstream: 'db:1', tls: "+yaml+"}"))
		if err != nil {
			t.Errorf("%s: %v", yaml, err)
			continue
		}
		got, conf := "plaintext", c.Proxies[0].TLS
		if conf.Client != nil {
			got = "TLS"
			if conf.Client.ClientAuth == tls.RequireAndVerifyClientCert && conf.Client.ClientCAs != nil {
				got = "TLS of known clients"
			}
		}
		if got += ", " + trusted(conf); got != want {
			t.Errorf("%s: %s, want %s", yaml, got, want)
		}
	}
}

// What each mode trusts, tried on a handshake.
func TestModes(t *testing.T) {
	t.Chdir(t.TempDir())
	ours, others := testbed.NewAuthority(t, "ours"), testbed.NewAuthority(t, "others")
	servers := map[string]*tls.Config{}
	for name, at := range map[string]struct {
		by   *testbed.Authority
		host string
	}{"right": {ours, "db"}, "another name": {ours, "elsewhere"}, "another CA": {others, "db"}} {
		cert, key := at.by.Issue(t, "cert", at.host)
		conf, err := ClientLeg{Cert: cert, Key: key}.Load()
		if err != nil {
			t.Fatal(err)
		}
		servers[name] = conf
	}
	for mode, trusted := range map[string][]string{
		Require: {"right", "another name", "another CA"}, VerifyCA: {"right", "another name"}, VerifyFull: {"right"},
	} {
		l := UpstreamLeg{Mode: mode, CA: ours.File}
		if mode == Require {
			l.CA = ""
		}
		conf, err := l.Load("db:5432")
		if err != nil {
			t.Fatal(err)
		}
		for name, server := range servers {
			err := shake(t, server, conf)
			if (err == nil) != slices.Contains(trusted, name) {
				t.Errorf("%s, %s: %v", mode, name, err)
			}
		}
	}
	l := UpstreamLeg{Mode: VerifyFull, CA: ours.File, ServerName: "elsewhere"}
	if conf, err := l.Load("db:5432"); err != nil || conf.ServerName != "elsewhere" {
		t.Errorf("%v, %v", conf, err)
	}
}

// shake does a handshake and returns the client's error.
func shake(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		if c, err := ln.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	c, err := tls.Dial("tcp", ln.Addr().String(), client)
	if err == nil {
		c.Close()
	}
	return err
}

// Paths are relative to the file that names them.
func TestTLSFilesBesideTheConfig(t *testing.T) {
	dir := t.TempDir()
	testbed.NewAuthority(t, dir).Issue(t, "cert", "db")
	file := filepath.Join(dir, "x.yaml")
	text := "version: 1\nproxies:\n  redis: {listen: ':0', upstream: 'a:1', tls: {client: {cert: cert.pem, key: " + dir + "/cert.key}}}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err != nil {
		t.Error(err)
	}
}

// A rule in YAML is the rule that the flag makes.
func TestRulesAreFlags(t *testing.T) {
	head := "version: 1\nlocks:\n" +
		"  - {name: one, key: 'lock:(a)*', protects: [{table: jobs.counter}]}\n" +
		"  - {name: none, key: 'k\\*'}\nrules:\n"
	for _, c := range []struct{ yaml, flag, text string }{
		{"{on: {event: SETNX}, at: after, do: stall, for: 800ms}", "stall-after", "SETNX=800ms"},
		{"{on: {event: acquire, lock: one}, at: after, do: freeze, for: ttl+20%}", "freeze-after", `acquire(lock:\(a\)*)=ttl+20%`},
		{"{on: {event: release, lock: none}, at: before, do: stall, for: 1s}", "stall-before", `release(k\\*)=1s`},
		{"{on: {event: write, lock: one}, at: before, do: stall, for: ttl*1.5}", "stall-before", "write(jobs.counter)=ttl*1.5"},
		{"{on: {event: COMMIT, table: counter, nth: 3}, at: after, do: stall, for: 0s}", "stall-after", "COMMIT(counter)#3=0s"},
		{"{on: {event: 'redis:SET', key: 'a(', from: 2, to: 4}, at: after, do: stall, for: 1s}", "stall-after", `SET(a\()#2-4=1s`},
		{"{on: {event: 'tick(1.5s)', from: 1, to: 6}, do: freeze, for: 800ms}", "freeze-after", "tick(1.5s)#1-6=800ms"},
		{"{on: {event: write, nth: 2}, at: before, do: stall, for: 1s, per: section, max: 1}",
			"stall-before", "write#2=1s,per=section,max=1"},
		{"{on: {event: DEL, every: 5, probability: 0.5%}, at: before, do: stall, for: 1s, scope: process, max: 3, cooldown: 10s, name: x}",
			"stall-before", "DEL#*/5@0.5%=1s,scope=process,max=3,cooldown=10s,name=x"},
	} {
		got, err := Parse("x.yaml", []byte(head+"  - "+c.yaml))
		if err != nil {
			t.Errorf("%s: %v", c.yaml, err)
			continue
		}
		want, err := fault.Parse(c.flag, c.text)
		if err != nil {
			t.Fatal(err)
		}
		want.Text, got.Rules[0].Text = "", ""
		if got.Rules[0] != want {
			t.Errorf("%s:\n got %#v\nwant %#v", c.yaml, got.Rules[0], want)
		}
	}
}

func TestPurposes(t *testing.T) {
	for _, c := range []struct {
		yaml string
		want []lock.Declaration
	}{
		{"{name: a, key: k}", []lock.Declaration{{Key: "k"}}},
		{"{name: a, key: k, purpose: correctness}", []lock.Declaration{{Key: "k", Purpose: "correctness", Declared: true}}},
		{"{name: a, key: k, purpose: efficiency, protects: [{table: t}]}", []lock.Declaration{{Key: "k", Table: "t", Purpose: "efficiency"}}},
		{"{name: a, key: k, purpose: auto, kind: auto, ignore: false}", []lock.Declaration{{Key: "k"}}},
		{"{name: a, key: 'k*', except: ['kx*', ky]}", []lock.Declaration{{Key: "k*", Except: []string{"kx*", "ky"}}}},
		{"{name: a, key: 'k*', ignore: true, except: [kx]}", []lock.Declaration{{Key: "k*", Ignore: true, Except: []string{"kx"}}}},
		{"{name: a, key: k, kind: semaphore, quorum: 5}", []lock.Declaration{{Key: "k", Kind: lock.Semaphore, Quorum: 5}}},
		{"{name: a, key: 'lease:s.T:*', lease: {table: s.T, owner: Who, until: till, key: [a, b]}}", []lock.Declaration{
			{Key: "lease:s.T:*", Lease: &lock.LeaseTable{Table: "s.t", Owner: "who", Until: "till", Key: []string{"a", "b"}}}}},
		{"{name: a, key: k, lease: {table: t, owner: o}}", []lock.Declaration{{Key: "k", Lease: &lock.LeaseTable{Table: "t", Owner: "o"}}}},
		{"{name: a, key: k, kind: shared, protects: [{table: t}]}", []lock.Declaration{{Key: "k", Kind: lock.ReadWrite, Table: "t", Declared: true}}},
		{"{name: a, key: k, protects: [{table: T}, {table: 's.\"U\"', fence: F}]}", []lock.Declaration{
			{Key: "k", Table: "t", Declared: true}, {Key: "k", Table: "s.U", FenceColumn: "f", Declared: true}}},
	} {
		got, err := Parse("x.yaml", []byte("version: 1\nlocks:\n  - "+c.yaml))
		if err != nil || !reflect.DeepEqual(got.Locks, c.want) {
			t.Errorf("%s: %+v, %v", c.yaml, got, err)
		}
	}
}

// The working examples must stay working, and mean what they say.
func TestExamples(t *testing.T) {
	dir := "../../configs"
	files, err := filepath.Glob(dir + "/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		if name := filepath.Base(f); name == "alerts.yaml" || strings.HasPrefix(name, "probe-") {
			continue // Prometheus's, and see TestProbeExamples
		}
		c, err := Load(f)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := fault.NewPlan(c.Rules, 1, fault.Limits{}); err != nil {
			t.Error(err)
		}
		if len(c.Rules) == 0 || len(c.Locks) == 0 {
			t.Errorf("%s: %+v", f, c)
		}
	}
	ci, _ := Load(dir + "/ci.yaml")
	if got := ci.Rules[0].Text; got != "--freeze-after read(counter)#1-3=ttl+300ms,name=after-read" {
		t.Errorf("ci.yaml's first rule: %s", got)
	}
	sidecar, _ := Load(dir + "/sidecar.yaml")
	if r := sidecar.Rules[0]; r.Chance != 0.5 || r.Glob != "lock:billing:*" || r.Cooldown != 10*time.Minute || len(sidecar.Locks) != 3 {
		t.Errorf("sidecar.yaml: %+v", sidecar)
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := Load(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("version: 2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(bad); err == nil || !strings.HasPrefix(err.Error(), bad+":1:10: ") {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(designed))
	for _, b := range bad {
		f.Add([]byte(b.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("x.yaml", text)
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1 || e.Reason == "") {
			t.Errorf("%#v", err)
		}
		if (c == nil) == (err == nil) {
			t.Errorf("%v beside %v", c, err)
		}
	})
}

// A rule that stands alone is read as one of a file is, be it YAML or JSON, and may name the file's locks.
func TestParseRule(t *testing.T) {
	c, err := Parse("x.yaml", []byte(designed))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"name": "a", "on": {"event": "write", "lock": "counter", "nth": 3}, "at": "before", "do": "freeze", "for": "2s"}`: "write(counter)#3=2s,name=a",
		"on: {event: SETNX, key: 'ab\"*'}\nat: after\ndo: stall\nuntil: [next-acquire, next-write]":                         `SETNX(ab"*)=until:next-acquire+next-write`,
		`{"on": {"event": "SETNX", "key": "a\u0062\"\/*"}, "at": "after", "do": "stall", "for": "1s", "max": 2}`:            `SETNX(ab"/*)=1s,max=2`,
	} {
		if r, err := c.ParseRule([]byte(text)); err != nil || r.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, r, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"on": {"event": "write", "lock": "other"}, "at": "before", "do": "stall", "for": "1s"}`: "rule:1:35: no lock is named other, expected counter",
		`{"on": {"event": "write"}, "at": "before", "do": "stall", "fro": "1s"}`:                  "unknown field fro",
		`{"on": {"event": "wriet"}, "at": "before", "do": "stall", "for": "1s"}`:                  "nearest known one is write",
		`{"on": {"event": "write"}, "at": "before", "do": "stall", "for": {}}`:                    "expected a text or a number",
		`{"on":`: "rule:1:",
	} {
		if _, err := c.ParseRule([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
	if _, err := (&Config{}).ParseRule([]byte(`{"on": {"event": "SETNX"}, "at": "before", "do": "stall", "for": "1s"}`)); err != nil {
		t.Error(err)
	}
}
