package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/lockfaultd/lockfaultd/internal/config"
)

// An endpoint is a proxy that listens and is not served yet.
type endpoint struct {
	ln    net.Listener
	proxy config.Proxy
}

// address is where the endpoint listens, as flags have it.
func (e endpoint) address() string {
	if e.ln.Addr().Network() == "unix" {
		return "unix:" + e.ln.Addr().String()
	}
	return e.ln.Addr().String()
}

// listen opens the listener of a proxy, whose port may be chosen here.
func listen(p config.Proxy) (endpoint, error) {
	ln, err := open(p.Listen)
	if err != nil {
		return endpoint{}, usagef("%s: cannot listen on %s: %v", p.Name, p.Listen, errors.Unwrap(err))
	}
	return endpoint{ln, p}, nil
}

func open(address string) (net.Listener, error) {
	path, ok := config.UnixPath(address)
	if !ok {
		return net.Listen("tcp", address)
	}
	ln, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(path) && os.Remove(path) == nil {
		return net.Listen("unix", path)
	}
	return ln, err
}

// abandoned reports whether a file is a socket on which nobody listens any more: one that was killed leaves it.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// listenAll opens all of them or none.
func listenAll(proxies []config.Proxy) ([]endpoint, error) {
	var out []endpoint
	for _, p := range proxies {
		e, err := listen(p)
		if err != nil {
			closeAll(out)
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func closeAll(list []endpoint) {
	for _, e := range list {
		e.ln.Close()
	}
}

func upstreams(list []endpoint) []netip.AddrPort {
	var out []netip.AddrPort
	for _, e := range list {
		out = append(out, resolve(e.proxy.Upstream)...)
	}
	return out
}
