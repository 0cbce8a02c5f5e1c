package main

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lockfaultd/lockfaultd/fault"
	"github.com/lockfaultd/lockfaultd/history"
	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/probe"
	"github.com/lockfaultd/lockfaultd/probe/check"
	"github.com/lockfaultd/lockfaultd/schedule"
)

// A setup is what flags and config come to.
type setup struct {
	proxies    []config.Proxy
	client     *tls.Config // how listeners of flags are secured; nil: plaintext
	relayed    bool        // they take clients through a relay alone
	decls      []lock.Declaration
	rules      []fault.Rule
	filed      int            // of these, the last so many are those of the file
	config     *config.Config // what the file says; empty without one
	invariants []check.Invariant
	typedAs    []string     // where each was typed, for errors
	admin      string       // where the admin API listens; "": there is none
	witness    string       // one of config.Witnesses
	effects    bool         // what scripts do is told by witnesses alone
	login      config.Login // of witnesses, for each Redis; without a password they have what the command has
	wrapping   bool         // a command is run
	reloads    bool         // its file may change the rules
	stamp      stamp        // of the file
	seed       uint64
	limits     fault.Limits
	baseline   time.Duration      // no rule acts in it; 0: there is none
	replay     *schedule.Schedule // to repeat; nil: none
	key        []byte             // of the history's hashes; nil: one of its own
	part       int64              // of how many bytes the parts of a history are; 0: it is one
	keep       history.Keep       // of those that are over
}

// setup reads the config and compiles the flags. Every error is a usageError.
func (o *options) setup() (*setup, error) {
	s := &setup{config: &config.Config{}, relayed: o.relayed, baseline: o.baseline, seed: o.seed, admin: o.admin, limits: fault.Limits{MaxFrozen: o.maxFrozen, MaxFreeze: o.maxFreeze}}
	if err := o.check(); err != nil {
		return nil, usageError{err}
	}
	for _, step := range []func(*setup) error{o.addRules, o.addLocks, o.addCertificate, o.addProxies, o.addInvariants, o.addWitness, o.addConfig, o.addReplay, o.addKeeping, o.addHistoryKey} {
		if err := step(s); err != nil {
			return nil, usageError{err}
		}
	}
	if s.baseline > 0 && len(s.rules) == 0 {
		return nil, usagef("--baseline: there is no rule that it would hold back; expected one")
	}
	if s.seed == 0 {
		s.seed = randomSeed()
	}
	s.witness = or(s.witness, "auto")
	if s.effects = o.effects; s.effects && s.witness == "none" {
		return nil, usagef("--effects-only: without a witness nobody tells what scripts do; expected --witness monitor, probe or auto")
	}
	s.login = config.Login{User: os.Getenv(witnessUser), Password: os.Getenv(witnessPassword)}
	if s.login.User != "" && s.login.Password == "" {
		return nil, usagef("%s: expected %s beside it", witnessUser, witnessPassword)
	}
	return s, nil
}

func (o *options) addRules(s *setup) error {
	for _, t := range o.typed {
		r, err := fault.Parse(t.flag, t.text)
		if err != nil {
			return err
		}
		s.rules = append(s.rules, r)
	}
	return nil
}

func (o *options) addLocks(s *setup) error {
	for _, text := range o.locks.Value() {
		d, err := config.ParseLockFlag(text)
		if err != nil {
			return err
		}
		s.decls = append(s.decls, d)
	}
	return nil
}

// addCertificate reads what the listeners of flags show to clients.
func (o *options) addCertificate(s *setup) error {
	if o.tls == (config.ClientLeg{}) {
		return nil
	}
	if o.tls.Cert == "" || o.tls.Key == "" {
		return errors.New("--tls-cert and --tls-key: expected both of them")
	}
	var err error
	if s.client, err = o.tls.Load(); err != nil {
		return fmt.Errorf("--tls-%w", err)
	}
	return nil
}

// certificateUnused reports that --tls-cert is given and no flag's listener is,
// which would come first.
func (s *setup) certificateUnused() bool {
	return s.client != nil && (len(s.proxies) == 0 || s.proxies[0].TLS.Client != s.client)
}

// relayUnused reports that --proxy-protocol is given and there is no flag's listener.
func (s *setup) relayUnused() bool {
	return s.relayed && (len(s.proxies) == 0 || !strings.HasPrefix(s.proxies[0].Name, "--"))
}

func (o *options) addProxies(s *setup) error {
	for _, p := range []struct {
		flag   string
		values []string
		proto  lock.Protocol
	}{{"redis", o.redis.Value(), lock.Redis}, {"postgres", o.postgres.Value(), lock.Postgres}} {
		for _, text := range p.values {
			proxy, err := config.ParseProxyFlag(p.proto, text)
			if err != nil {
				return fmt.Errorf("--%s: %w", p.flag, err)
			}
			if proxy.Listen == proxy.Upstream {
				return fmt.Errorf("--%s %s: it would be its own upstream; expected the server's address behind the =", p.flag, text)
			}
			proxy.Name, proxy.TLS.Client = "--"+p.flag, s.client
			proxy.Relayed = s.relayed
			s.proxies = append(s.proxies, proxy)
		}
	}
	return nil
}

func (o *options) addInvariants(s *setup) error {
	for _, k := range []struct {
		kind string
		sqls []string
	}{{"counter", o.counters.Value()}, {"fence", o.fences.Value()}, {"monotone", o.monotones.Value()}} {
		for _, sql := range k.sqls {
			inv, err := invariant(k.kind, sql)
			if err != nil {
				return fmt.Errorf("--%s %q: %w", k.kind, sql, err)
			}
			s.invariants = append(s.invariants, inv)
			s.typedAs = append(s.typedAs, fmt.Sprintf("--%s %q", k.kind, inv.Query))
		}
	}
	return nil
}

func (o *options) addWitness(s *setup) error {
	if o.witness != "" && !slices.Contains(config.Witnesses(), o.witness) {
		return fmt.Errorf("--witness %q: expected one of %s", o.witness, strings.Join(config.Witnesses(), ", "))
	}
	s.witness = o.witness
	return nil
}

// invariant wants a query of one column of one table, since only then can the
// writes that make the number be told from others.
func invariant(kind, sql string) (check.Invariant, error) {
	inv, err := probe.NewInvariant(kind, sql)
	if err == nil && inv.Table == "" {
		err = errors.New("expected SELECT COLUMN FROM TABLE [WHERE ...]: only then can writes of this number be told from others")
	}
	return inv, err
}

// addConfig puts what the file says behind what was typed.
func (o *options) addConfig(s *setup) error {
	if o.configPath == "" {
		return nil
	}
	s.stamp = stampOf(o.configPath)
	c, err := config.Load(o.configPath)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	s.rules, s.filed, s.config = append(s.rules, c.Rules...), len(c.Rules), c
	s.witness = or(s.witness, c.Witness)
	s.decls = append(s.decls, c.Locks...)
	for _, p := range c.Proxies {
		p.Name = "proxies." + p.Name
		s.proxies = append(s.proxies, p)
	}
	for _, i := range c.Invariants {
		inv, err := invariant(i.Kind, i.Query)
		if err != nil {
			return fmt.Errorf("--config: %w", i.Mistake(err))
		}
		inv.Name, inv.Lock = i.Name, i.Lock
		s.invariants = append(s.invariants, inv)
		s.typedAs = append(s.typedAs, "--config: "+i.Place())
	}
	return nil
}

// randomSeed is short enough to be typed again.
func randomSeed() uint64 {
	var b [4]byte
	_, _ = rand.Read(b[:])
	return uint64(binary.LittleEndian.Uint32(b[:]))%999_999 + 1
}

// tables lists what invariants and declarations name.
func (s *setup) tables() []string {
	var out []string
	for _, d := range s.decls {
		out = append(out, d.Table)
	}
	for _, i := range s.invariants {
		out = append(out, i.Table)
	}
	return out
}

// integers says which columns are recorded as numbers: fences, and what an
// invariant names. Everything else is recorded as a hash.
func (s *setup) integers(table, column string) bool {
	for _, d := range s.decls {
		if sameTable(d.Table, table) && strings.EqualFold(d.FenceColumn, column) {
			return true
		}
	}
	for _, i := range s.invariants {
		if sameTable(i.Table, table) && strings.EqualFold(i.Column, column) {
			return true
		}
	}
	return false
}

func sameTable(a, b string) bool {
	return a != "" && strings.TrimPrefix(a, "public.") == strings.TrimPrefix(b, "public.")
}

// nameOf returns an upstream's name in the record.
func (s *setup) nameOf(p config.Proxy) string {
	if s.servers(p.Protocol) > 1 {
		return p.Upstream
	}
	return ""
}

// servers counts the upstreams of a protocol.
func (s *setup) servers(protocol lock.Protocol) (n int) {
	for _, p := range s.proxies {
		if p.Protocol == protocol {
			n++
		}
	}
	return n
}

// upstreams lists the servers that the run speaks to.
func (s *setup) upstreams() []history.Upstream {
	var out []history.Upstream
	for _, p := range s.proxies {
		out = append(out, history.Upstream{Name: s.nameOf(p), Proto: p.Protocol})
	}
	return out
}
