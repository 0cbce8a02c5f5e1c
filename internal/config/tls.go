package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml/ast"

	"github.com/lockfaultd/lockfaultd/lock"
)

// A TLS says how the two legs of a proxy are secured.
type TLS struct {
	Client   *tls.Config // as the server of clients; nil: plaintext
	Upstream *tls.Config // as the client of the upstream; nil: plaintext
	Direct   bool        // Postgres: upstream takes TLS at once, without an SSLRequest
}

// Modes of an upstream leg, by the names that libpq has for them.
const (
	Disable    = "disable"
	Require    = "require"     // encrypted, whoever it is
	VerifyCA   = "verify-ca"   // of a server with a certificate of the CA
	VerifyFull = "verify-full" // and for the name that was dialled
)

// A ClientLeg names the files of the leg to the clients.
type ClientLeg struct {
	Cert, Key string
	ClientCA  string // "": clients need no certificate
}

// An UpstreamLeg says how the upstream is to be trusted, and names files.
type UpstreamLeg struct {
	Mode       string
	CA         string // "": the system's
	Cert, Key  string // "": none is shown
	ServerName string // "": the host that is dialled
	Direct     bool

	options lock.Protocol // whose options of a URL said so; "": a file did
}

// A legError is about one field of a leg.
type legError struct {
	field string
	err   error
}

func (e *legError) Error() string { return e.field + ": " + e.err.Error() }
func (e *legError) Unwrap() error { return e.err }

// Load reads the files.
func (l ClientLeg) Load() (*tls.Config, error) {
	pair, err := keyPair(l.Cert, l.Key)
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{Certificates: []tls.Certificate{pair}}
	if l.ClientCA != "" {
		conf.ClientAuth = tls.RequireAndVerifyClientCert
		if conf.ClientCAs, err = pool("client_ca", l.ClientCA); err != nil {
			return nil, err
		}
	}
	return conf, nil
}

// Load reads the files. It returns nil where the leg is not to be TLS.
func (l UpstreamLeg) Load(address string) (*tls.Config, error) {
	conf, err := l.load(address)
	return conf, l.rename(err)
}

// optionNames are what a URL calls the fields of a leg.
var optionNames = map[lock.Protocol]map[string]string{
	lock.Redis:    {"ca": "ssl_ca_certs", "cert": "ssl_certfile", "key": "ssl_keyfile"},
	lock.Postgres: {"ca": "sslrootcert", "cert": "sslcert", "key": "sslkey", "mode": "sslmode"},
}

func (l UpstreamLeg) name(field string) string {
	if name, ok := optionNames[l.options][field]; ok {
		return name
	}
	return field
}

// rename makes an error name what was typed.
func (l UpstreamLeg) rename(err error) error {
	var e *legError
	if errors.As(err, &e) {
		return &legError{l.name(e.field), e.err}
	}
	return err
}

func (l UpstreamLeg) load(address string) (*tls.Config, error) {
	if l.Mode == Disable {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conf := &tls.Config{ServerName: host}
	if l.ServerName != "" {
		conf.ServerName = l.ServerName
	}
	if l.CA != "" {
		if conf.RootCAs, err = pool("ca", l.CA); err != nil {
			return nil, err
		}
	}
	if l.Cert != "" {
		pair, err := keyPair(l.Cert, l.Key)
		if err != nil {
			return nil, err
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	trust(conf, l.Mode)
	return conf, nil
}

// trust makes conf check as much as a mode wants.
func trust(conf *tls.Config, mode string) {
	if mode == VerifyFull {
		return
	}
	conf.InsecureSkipVerify = true
	if mode != VerifyCA {
		return
	}
	roots := conf.RootCAs
	conf.VerifyConnection = func(s tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, c := range s.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
		return err
	}
}

// keyPair reads a certificate and its key, and blames the right one.
func keyPair(cert, key string) (tls.Certificate, error) {
	c, err := certificates("cert", cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := os.ReadFile(key)
	if err != nil {
		return tls.Certificate{}, &legError{"key", err}
	}
	pair, err := tls.X509KeyPair(c, k)
	if err != nil {
		return tls.Certificate{}, &legError{"key", fmt.Errorf("%s, for the certificate %s: %w", key, cert, err)}
	}
	return pair, nil
}

func pool(field, file string) (*x509.CertPool, error) {
	b, err := certificates(field, file)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(b)
	return p, nil
}

// certificates reads a file with certificates in PEM.
func certificates(field, file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, &legError{field, err}
	}
	if !x509.NewCertPool().AppendCertsFromPEM(b) {
		return nil, &legError{field, fmt.Errorf("%s holds no certificate in PEM", file)}
	}
	return b, nil
}

// tls reads the field tls of a proxy. Paths are relative to the file's folder.
func (r *reader) tls(n ast.Node, p lock.Protocol, upstream string) TLS {
	if n == nil {
		return TLS{}
	}
	m := r.mapping(n, "client", "upstream")
	var out TLS
	if c := m.get("client"); c != nil {
		out.Client = r.clientLeg(c)
	}
	if u := m.get("upstream"); u != nil {
		out.Upstream, out.Direct = r.upstreamLeg(u, p, upstream)
	}
	return out
}

func (r *reader) clientLeg(n ast.Node) *tls.Config {
	m := r.mapping(n, "cert", "key", "client_ca")
	r.need(m, "cert")
	r.need(m, "key")
	l := ClientLeg{Cert: r.file(m, "cert"), Key: r.file(m, "key"), ClientCA: r.file(m, "client_ca")}
	if r.err != nil {
		return nil
	}
	conf, err := l.Load()
	r.blame(m, err)
	return conf
}

func (r *reader) upstreamLeg(n ast.Node, p lock.Protocol, address string) (*tls.Config, bool) {
	fields := []string{"mode", "ca", "cert", "key", "server_name"}
	if p == lock.Postgres {
		fields = append(fields, "negotiation")
	}
	m := r.mapping(n, fields...)
	l := UpstreamLeg{Mode: VerifyFull, CA: r.file(m, "ca"), Cert: r.file(m, "cert"), Key: r.file(m, "key"), ServerName: r.filled(m, "server_name")}
	if mode := m.get("mode"); mode != nil {
		l.Mode = r.oneOf(mode, Disable, Require, VerifyCA, VerifyFull)
	}
	l.Direct = r.oneOf(m.get("negotiation"), "postgres", "direct") == "direct"
	if r.err != nil {
		return nil, false
	}
	if err := l.check(); err != nil {
		r.blame(m, err)
		return nil, false
	}
	conf, err := l.Load(address)
	r.blame(m, err)
	return conf, l.Direct
}

// check refuses fields that contradict each other.
func (l UpstreamLeg) check() error {
	switch {
	case l.Mode == Disable && (l.CA != "" || l.Cert != "" || l.Key != "" || l.ServerName != "" || l.Direct):
		return &legError{"mode", errors.New("disable leaves the upstream leg in plaintext, expected no other field beside it")}
	case l.Mode == Require && l.CA != "":
		return &legError{"ca", errors.New("require trusts any certificate, expected verify-ca or verify-full beside a ca")}
	case l.Cert != "" && l.Key == "":
		return &legError{"cert", fmt.Errorf("expected %s beside it", l.name("key"))}
	case l.Key != "" && l.Cert == "":
		return &legError{"key", fmt.Errorf("expected %s beside it", l.name("cert"))}
	}
	return nil
}

// blame puts an error at the field that it is about.
func (r *reader) blame(m mapping, err error) {
	var e *legError
	switch {
	case err == nil:
	case errors.As(err, &e) && m.get(e.field) != nil:
		r.fail(m.get(e.field), "%s", err)
	default:
		r.fail(m.node, "%s", err)
	}
}

// filled reads what may be left out, but not left empty.
func (r *reader) filled(m mapping, field string) string {
	n := m.get(field)
	s := r.scalar(n)
	if n != nil && s == "" {
		r.fail(n, "%s is empty, expected a value or no such field", field)
	}
	return s
}

// file reads a path, which is relative to the folder of the file being read.
func (r *reader) file(m mapping, field string) string {
	s := r.filled(m, field)
	if s == "" || filepath.IsAbs(s) {
		return s
	}
	return filepath.Join(filepath.Dir(r.name), s)
}
