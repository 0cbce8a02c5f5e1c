package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/lockfaultd/lockfaultd/internal/urlquery"
	"github.com/lockfaultd/lockfaultd/lock"
)

// TakeTLS reads how a URL wants its server to be trusted, in the words of
// libpq (sslmode and what belongs to it; also ssl, where that stands for it) or,
// for rediss://, of redis-py and go-redis. rest is the raw query that remains, for
// a client that connects in plaintext. env is what libpq takes where the URL says
// nothing, by the name of its variable; nil: nothing.
func TakeTLS(p lock.Protocol, u *url.URL, env func(name string) string) (leg UpstreamLeg, rest string, err error) {
	leg, q, err := takeTLS(p, u, env)
	return leg, urlquery.Edit(u.RawQuery, q), err
}

func takeTLS(p lock.Protocol, u *url.URL, env func(name string) string) (UpstreamLeg, url.Values, error) {
	q := u.Query()
	for name, values := range q {
		if len(values) > 1 && (strings.HasPrefix(name, "ssl") || name == "skip_verify" || name == "channel_binding") {
			return UpstreamLeg{Mode: Disable}, q, fmt.Errorf("the option %s is given more than once", name)
		}
	}
	if p == lock.Postgres {
		l, err := takePostgres(q, env)
		return l, q, err
	}
	if scheme, _, _ := strings.Cut(u.Scheme, "+"); scheme != "rediss" {
		return UpstreamLeg{Mode: Disable}, q, nil
	}
	l, err := takeRedis(q)
	return l, q, err
}

func take(q url.Values, name string) string {
	v := q.Get(name)
	q.Del(name)
	return v
}

func takeRedis(q url.Values) (UpstreamLeg, error) {
	l := UpstreamLeg{Mode: VerifyFull, CA: take(q, "ssl_ca_certs"), Cert: take(q, "ssl_certfile"), Key: take(q, "ssl_keyfile"), options: lock.Redis}
	reqs, err := oneWord(q, "ssl_cert_reqs", "required", "cert_required", "2", "optional", "cert_optional", "1", "none", "cert_none", "0")
	skip, e1 := oneWord(q, "skip_verify", "true", "1", "false", "0")
	checked, e2 := oneWord(q, "ssl_check_hostname", "true", "1", "false", "0")
	switch {
	case cmp.Or(err, e1, e2) != nil:
		return l, cmp.Or(err, e1, e2)
	case reqs == "none" || reqs == "cert_none" || reqs == "0" || isTrue(skip):
		l.Mode, l.CA = Require, ""
	case checked == "false" || checked == "0":
		l.Mode = VerifyCA
	}
	for name := range q {
		if strings.HasPrefix(name, "ssl_") {
			return l, fmt.Errorf("the option %s cannot be kept, expected ssl_cert_reqs, ssl_check_hostname, ssl_ca_certs, ssl_certfile or ssl_keyfile", name)
		}
	}
	return l, l.rename(l.check())
}

// oneWord takes an option that has few values, in lower case.
func oneWord(q url.Values, name string, words ...string) (string, error) {
	v := take(q, name)
	w := strings.ToLower(v)
	if v != "" && !slices.Contains(words, w) {
		return "", fmt.Errorf("%s=%s: expected one of %s", name, show(v), strings.Join(words, ", "))
	}
	return w, nil
}

func isTrue(s string) bool { return strings.EqualFold(s, "true") || s == "1" }

// takePostgres leaves everything as it is where no TLS is wanted.
func takePostgres(q url.Values, env func(string) string) (UpstreamLeg, error) {
	get := func(name, variable string) string {
		if v := take(q, name); v != "" || env == nil {
			return v
		}
		return env(variable)
	}
	if q.Has("ssl") && q.Has("sslmode") {
		return UpstreamLeg{Mode: Disable}, errors.New("the options ssl and sslmode are both given, expected one of them")
	}
	if q.Has("ssl") && q.Get("ssl") == "" {
		return UpstreamLeg{Mode: Disable}, errors.New("the option ssl is empty, expected true, false, disable, allow, prefer, require, verify-ca or verify-full")
	}
	name, off, mode := wanted(q, env)
	if mode != Require && mode != VerifyCA && mode != VerifyFull {
		return UpstreamLeg{Mode: Disable}, checkMode(mode)
	}
	q.Set(name, off)
	l := UpstreamLeg{Mode: mode, CA: get("sslrootcert", "PGSSLROOTCERT"), Cert: get("sslcert", "PGSSLCERT"), Key: get("sslkey", "PGSSLKEY"), options: lock.Postgres}
	negotiation := get("sslnegotiation", "PGSSLNEGOTIATION")
	l.Direct = negotiation == "direct"
	switch {
	case negotiation != "" && negotiation != "postgres" && !l.Direct:
		return l, fmt.Errorf("sslnegotiation=%s: expected postgres or direct", show(negotiation))
	case l.CA == "system":
		l.CA, l.Mode = "", VerifyFull
	case l.CA != "" && l.Mode == Require:
		l.Mode = VerifyCA // as libpq does
	}
	if err := onlyWeaker(get); err != nil {
		return l, err
	}
	for _, name := range []string{"sslpassword", "sslcrl", "sslcrldir"} {
		if q.Get(name) != "" {
			return l, fmt.Errorf("the option %s cannot be kept", name)
		}
	}
	if get("channel_binding", "PGCHANNELBINDING") == Require {
		return l, errors.New("channel_binding=require cannot be kept where TLS ends at the proxy; expected prefer or disable")
	}
	return l, l.rename(l.check())
}

// onlyWeaker refuses what asks for more than a leg does: TLS 1.2 or later, and
// a certificate where the server wants one.
func onlyWeaker(get func(name, variable string) string) error {
	for _, o := range []struct {
		name, variable string
		kept           []string
	}{
		{"ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", []string{"", "TLSv1", "TLSv1.1", "TLSv1.2"}},
		{"ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION", []string{"", "TLSv1.3"}},
		{"sslcertmode", "PGSSLCERTMODE", []string{"", "allow"}},
	} {
		if v := get(o.name, o.variable); !slices.Contains(o.kept, v) {
			return fmt.Errorf("%s=%s cannot be kept, expected %s", o.name, show(v), strings.Join(o.kept[1:], " or "))
		}
	}
	return nil
}

// wanted returns the mode, and the option that sets it with its value for none.
func wanted(q url.Values, env func(string) string) (name, off, mode string) {
	switch {
	case q.Has("ssl") && isTrue(q.Get("ssl")):
		return "ssl", "false", VerifyFull
	case q.Has("ssl") && !strings.EqualFold(q.Get("ssl"), "false"):
		return "ssl", Disable, q.Get("ssl")
	}
	mode = q.Get("sslmode")
	if mode == "" && env != nil {
		mode = env("PGSSLMODE")
	}
	root := q.Get("sslrootcert")
	if root == "" && env != nil {
		root = env("PGSSLROOTCERT")
	}
	if mode == "" && root == "system" {
		mode = VerifyFull
	}
	return "sslmode", Disable, mode
}

func checkMode(mode string) error {
	switch mode {
	case "", Disable, "allow", "prefer", "0":
		return nil
	}
	return fmt.Errorf("sslmode=%s: expected disable, allow, prefer, require, verify-ca or verify-full", show(mode))
}

// upstream reads the upstream of a flag: HOST:PORT, or a URL of it with options
// about TLS. The scheme of Postgres may be left out.
func upstream(p lock.Protocol, text string) (string, UpstreamLeg, error) {
	address, leg := text, UpstreamLeg{Mode: Disable}
	if p == lock.Postgres && strings.Contains(text, "?") && !strings.Contains(text, "://") {
		text = "postgres://" + text
	}
	if p == lock.Redis && strings.Contains(text, "?") && !strings.Contains(text, "://") {
		return "", leg, fmt.Errorf("options need rediss://, expected %s, found %s", forms[p], showAddress(text))
	}
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil || !protocolScheme(p, u.Scheme) || u.User != nil || strings.Trim(u.Path, "/") != "" {
			return "", leg, fmt.Errorf("expected HOST:PORT or %s, found %s", forms[p], showAddress(text))
		}
		for name, values := range u.Query() {
			if slices.Contains(values, "") {
				return "", leg, fmt.Errorf("the option %s is empty, expected a value or no such option", show(name))
			}
		}
		var rest url.Values
		if leg, rest, err = takeTLS(p, u, nil); err != nil {
			return "", leg, err
		}
		rest.Del("sslmode")
		if names := slices.Sorted(maps.Keys(rest)); len(names) > 0 {
			name := names[0]
			if leg.Mode == Disable && slices.Contains(aboutTLS[p], name) {
				return "", leg, fmt.Errorf("the option %s needs %s", name, secured[p])
			}
			return "", leg, fmt.Errorf("unknown option %s, expected %s", show(name), forms[p])
		}
		address = u.Host
	}
	return address, leg, checkAddress(address, true)
}

// forms show a URL of an upstream.
var forms = map[lock.Protocol]string{
	lock.Redis:    "rediss://HOST:PORT?ssl_ca_certs=FILE",
	lock.Postgres: "HOST:PORT?sslmode=verify-full&sslrootcert=FILE",
}

// aboutTLS are options that mean nothing where there is none, which is until the
// URL has what secured says.
var (
	aboutTLS = map[lock.Protocol][]string{
		lock.Redis: {"skip_verify", "ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile"},
		lock.Postgres: {"channel_binding", "ssl_max_protocol_version", "ssl_min_protocol_version",
			"sslcert", "sslcertmode", "sslkey", "sslnegotiation", "sslrootcert"},
	}
	secured = map[lock.Protocol]string{
		lock.Redis:    "rediss:// rather than redis://",
		lock.Postgres: "sslmode=require, verify-ca or verify-full",
	}
)

func protocolScheme(p lock.Protocol, scheme string) bool {
	if p == lock.Redis {
		return scheme == "redis" || scheme == "rediss"
	}
	return scheme == "postgres" || scheme == "postgresql"
}
