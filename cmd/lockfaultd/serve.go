package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"

	"github.com/lockfaultd/lockfaultd/internal/config"
	"github.com/lockfaultd/lockfaultd/lock"
	"github.com/lockfaultd/lockfaultd/proxy"
)

// defaultProxies are served when no proxy is named.
func (s *setup) defaultProxies() []config.Proxy {
	secured := config.TLS{Client: s.client}
	return []config.Proxy{
		{Name: "--redis", Protocol: lock.Redis, Listen: "127.0.0.1:16379", Upstream: "127.0.0.1:6379", TLS: secured, Relayed: s.relayed},
		{Name: "--postgres", Protocol: lock.Postgres, Listen: "127.0.0.1:15432", Upstream: "127.0.0.1:5432", TLS: secured, Relayed: s.relayed},
	}
}

// serveCommand proxies until it is told to stop.
func serveCommand(ctx context.Context, o *options, stderr io.Writer) error {
	s, err := o.setup()
	if err != nil {
		return err
	}
	if len(s.proxies) == 0 {
		s.proxies = s.defaultProxies()
	}
	if s.certificateUnused() {
		return usagef("--tls-cert: no listener to use it; expected --redis or --postgres, or tls: in the file of --config")
	}
	if s.relayUnused() {
		return usagef("--proxy-protocol: no listener to use it; expected --redis or --postgres, or proxy_protocol: true in the file of --config")
	}
	if err := s.wantsAdmin(); err != nil {
		return err
	}
	s.reloads = o.configPath != ""
	ctx, hangups, stop := s.listenToSignals(ctx)
	defer stop()
	out, err := openFolder(o.out)
	if err != nil {
		return err
	}
	defer out.close()
	list, err := listenAll(s.proxies)
	if err != nil {
		return err
	}
	d, err := o.sidecar(s, out, list, stderr)
	if err != nil {
		closeAll(list)
		return err
	}
	d.accept(list)
	for _, e := range list {
		fmt.Fprintf(stderr, "lockfaultd: %s %s%s -> %s%s\n", e.proxy.Protocol, e.address(), secured(e.proxy.TLS.Client), e.proxy.Upstream, secured(e.proxy.TLS.Upstream))
	}
	d.announceAdmin(stderr)
	announceRules(stderr, s)
	if s.reloads {
		newReloader(d, o.configPath, hangups).follow(ctx, stop)
	}
	<-ctx.Done()
	err = d.close()
	d.admit(stderr)
	return err
}

// sidecar makes the daemon, and keeps what a former one has recorded.
func (o *options) sidecar(s *setup, out *folder, list []endpoint, stderr io.Writer) (*daemon, error) {
	kept, err := out.keepFormer()
	if err != nil {
		return nil, err
	}
	if kept != "" {
		fmt.Fprintf(stderr, "lockfaultd: the former history is kept as %s\n", kept)
	}
	return newDaemon(s, upstreams(list), out.history(), proxy.Drop, nil, logOfSidecar(stderr, o.verbose))
}

// admit says what was not seen, or not recorded.
func (d *daemon) admit(w io.Writer) {
	if n := d.server.Desyncs(); n > 0 {
		fmt.Fprintf(w, "lockfaultd: desync: %d connections could not be followed to their end, and were passed on unread from there\n", n)
	}
	if n := d.statements.Unread(); n > 0 {
		fmt.Fprintf(w, "lockfaultd: statements: %d SQL statements were carried out that could not be read to their end\n", n)
	}
	if d.files == nil {
		fmt.Fprintln(w, "lockfaultd: no history was kept, so nothing can be judged; with --out DIR it is, and probe report DIR judges it")
	}
	if d.record == nil {
		return
	}
	if n := d.record.Lost(); n > 0 {
		fmt.Fprintf(w, "lockfaultd: the history lacks %d entries, since the disk was slower than the traffic; its gaps tell where\n", n)
	}
}

func secured(leg *tls.Config) string {
	if leg == nil {
		return ""
	}
	return " (TLS)"
}

func announceRules(w io.Writer, s *setup) {
	for _, r := range s.rules {
		fmt.Fprintf(w, "lockfaultd: armed %s\n", r.Text)
	}
	if len(s.rules) == 0 {
		fmt.Fprintln(w, "lockfaultd: no rule is armed; passing everything on")
		return
	}
	if s.replay != nil {
		fmt.Fprintf(w, "lockfaultd: they act where the schedule says: steps: %d\n", len(s.replay.Steps))
		return
	}
	if s.baseline > 0 {
		fmt.Fprintf(w, "lockfaultd: they act once %v have passed since the first lock was held\n", s.baseline)
	}
	fmt.Fprintf(w, "lockfaultd: seed %d\n", s.seed)
}
