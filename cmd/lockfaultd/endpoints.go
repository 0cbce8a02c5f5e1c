package main

import (
	"errors"
	"net"
	"net/netip"

	"github.com/lockfaultd/lockfaultd/internal/config"
)

// An endpoint is a proxy that listens and is not served yet.
type endpoint struct {
	ln    net.Listener
	proxy config.Proxy
}

// listen opens the listener of a proxy, whose port may be chosen here.
func listen(p config.Proxy) (endpoint, error) {
	ln, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return endpoint{}, usagef("%s: cannot listen on %s: %v", p.Name, p.Listen, errors.Unwrap(err))
	}
	return endpoint{ln, p}, nil
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
