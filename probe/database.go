package probe

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lockfaultd/lockfaultd/internal/urlquery"
)

// parse reads a connection string of libpq, or a URL of Postgres as libraries
// take it: with a driver behind the scheme, and with ssl in the place of sslmode.
func parse(text string) (*pgx.ConnConfig, error) {
	text, err := forLibpq(text)
	if err != nil {
		return nil, unfitError(err.Error())
	}
	return pgx.ParseConfig(text)
}

// CheckURL returns what is wrong with a URL of Postgres, or a connection string of libpq.
func CheckURL(text string) error {
	_, err := parse(text)
	return err
}

var (
	keyword       = regexp.MustCompile(`^\s*\w+\s*=`)
	errUnreadable = errors.New("the URL cannot be read, expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %23 for a # in a password and the like")
)

// forLibpq makes of a URL one that libpq would take. What is no URL is left to
// those who know better; what is a URL must not be, for it would be read as words
// of a connection string, and the server be told a part of its password.
func forLibpq(text string) (string, error) {
	if text == "" || keyword.MatchString(text) {
		return text, nil
	}
	plain := strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
	u, err := url.Parse(text)
	switch {
	case err != nil && plain && !strings.Contains(text, "?ssl=") && !strings.Contains(text, "&ssl="):
		return text, nil // libpq takes several hosts
	case err != nil:
		return "", errUnreadable
	}
	scheme, _, _ := strings.Cut(u.Scheme, "+")
	if scheme != "postgres" && scheme != "postgresql" {
		return "", fmt.Errorf("scheme %.20q: expected postgres or postgresql", u.Scheme)
	}
	q := u.Query()
	if plain && !q.Has("ssl") {
		return text, nil
	}
	if err := sslmode(q); err != nil {
		return "", err
	}
	u.Scheme, u.RawQuery = scheme, urlquery.Edit(u.RawQuery, q)
	if text = u.String(); !strings.HasPrefix(text, scheme+"://") {
		return "", errUnreadable
	}
	return text, nil
}

// modes are what libpq and asyncpg call how a server is to be trusted.
var modes = []string{"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}

// sslmode puts sslmode in the place of ssl, with the meaning that a proxy's leg
// gives it.
func sslmode(q url.Values) error {
	if !q.Has("ssl") {
		return nil
	}
	if q.Has("sslmode") {
		return errors.New("the options ssl and sslmode are both given, expected one of them")
	}
	if len(q["ssl"]) > 1 {
		return errors.New("the option ssl is given more than once")
	}
	mode := q.Get("ssl")
	switch {
	case strings.EqualFold(mode, "true") || mode == "1":
		mode = "verify-full"
	case strings.EqualFold(mode, "false") || mode == "0":
		mode = "disable"
	case !slices.Contains(modes, mode):
		return fmt.Errorf("ssl=%.20q: expected true, false, %s", mode, strings.Join(modes, ", "))
	}
	q.Del("ssl")
	q.Set("sslmode", mode)
	return nil
}
