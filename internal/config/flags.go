package config

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/lockfaultd/lockfaultd/lock"
)

// ParseProxyFlag reads LISTEN=UPSTREAM, both HOST:PORT; to listen there is unix:PATH as well, and the upstream may
// be a URL with options about TLS. The name is the flag's to say.
func ParseProxyFlag(p lock.Protocol, text string) (Proxy, error) {
	listen, to, ok := strings.Cut(text, "=")
	if !ok {
		return Proxy{}, fmt.Errorf("%s: expected LISTEN=UPSTREAM, such as 127.0.0.1:16379=127.0.0.1:6379", showAddress(text))
	}
	if err := checkListen(listen); err != nil {
		return Proxy{}, fmt.Errorf("%s: listen address: %w", showAddress(text), err)
	}
	address, leg, err := upstream(p, to)
	if err != nil {
		return Proxy{}, fmt.Errorf("%s: upstream address: %w", showAddress(text), err)
	}
	conf, err := leg.Load(address)
	if err != nil {
		return Proxy{}, fmt.Errorf("%s: upstream TLS: %w", showAddress(text), err)
	}
	return Proxy{Protocol: p, Listen: listen, Upstream: address, TLS: TLS{Upstream: conf, Direct: leg.Direct}}, nil
}

// mostPath is the longest path of a Unix socket.
const mostPath = 107

// UnixPath returns the path of an address of the form unix:PATH. A path that begins with @ is a name without a file.
func UnixPath(listen string) (string, bool) { return strings.CutPrefix(listen, "unix:") }

// checkListen accepts where a proxy may listen: HOST:PORT or unix:PATH.
func checkListen(s string) error {
	path, ok := UnixPath(s)
	switch {
	case !ok:
		return checkAddress(s, false)
	case path == "" || path == "@":
		return errors.New("expected unix:PATH, such as unix:/run/lockfaultd/redis.sock, found no path")
	case len(path) > mostPath:
		return fmt.Errorf("expected a path of at most %d bytes, found one of %d", mostPath, len(path))
	}
	return nil
}

// checkAddress accepts HOST:PORT. Port 0 is for listening only, and means any
// free one; so is an empty host, which means every interface.
func checkAddress(s string, dialled bool) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("expected HOST:PORT, found %s", showAddress(s))
	}
	n, err := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil:
		return fmt.Errorf("expected a port from 0 to 65535, found %s", showAddress(port))
	case strings.Contains(host, "@"):
		return fmt.Errorf("expected HOST:PORT without a user, found %s", showAddress(s))
	case dialled && (n == 0 || host == ""):
		return fmt.Errorf("expected a host and a port to connect to, found %s", showAddress(s))
	}
	return nil
}

// ParseLockFlag reads KEY=TABLE[.FENCE], split at the last "=" so that a key
// may contain one. TABLE.FENCE has one dot: a table in a schema is written
// with both, as SCHEMA.TABLE.FENCE, or declared in a config. A name in double
// quotes is kept as it is, others become lower case, as in SQL.
func ParseLockFlag(text string) (lock.Declaration, error) {
	const want = "expected KEY=TABLE or KEY=TABLE.FENCE, such as lock:counter=counter.fence"
	at := strings.LastIndexByte(text, '=')
	if at <= 0 {
		return lock.Declaration{}, fmt.Errorf("--lock: %s: %s", show(text), want)
	}
	d := lock.Declaration{Key: text[:at], Declared: true}
	parts, ok := identifiers(text[at+1:])
	switch {
	case !ok || len(parts) > 3:
		return lock.Declaration{}, fmt.Errorf("--lock: %s: column %d: %s", show(text), len([]rune(text[:at+1]))+1, want)
	case len(parts) == 1:
		d.Table = parts[0]
	default:
		last := len(parts) - 1
		d.Table, d.FenceColumn = strings.Join(parts[:last], "."), parts[last]
	}
	return d, nil
}

// identifiers splits a dotted SQL name as the server would.
func identifiers(s string) (parts []string, ok bool) {
	for {
		var part string
		if part, s, ok = identifier(s); !ok {
			return nil, false
		}
		parts = append(parts, part)
		if s == "" {
			return parts, true
		}
		if s[0] != '.' {
			return nil, false
		}
		s = s[1:]
	}
}

// identifier takes one name off the front of s.
func identifier(s string) (name, rest string, ok bool) {
	if strings.HasPrefix(s, `"`) {
		name, rest, ok = strings.Cut(s[1:], `"`)
		return name, rest, ok && name != ""
	}
	end := strings.IndexFunc(s, func(r rune) bool {
		return r < 0x80 && r != '_' && r != '$' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
	if end < 0 {
		end = len(s)
	}
	return strings.ToLower(s[:end]), s[end:], end > 0
}

func protocolOf(name string) (lock.Protocol, bool) {
	switch {
	case strings.HasPrefix(name, "redis"):
		return lock.Redis, true
	case strings.HasPrefix(name, "postgres"):
		return lock.Postgres, true
	}
	return "", false
}

// show makes a text fit for one line of a terminal.
func show(s string) string {
	const most = 200
	if len(s) > most {
		s = s[:most] + "..."
	}
	if s == "" || s != strings.TrimSpace(s) || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}
