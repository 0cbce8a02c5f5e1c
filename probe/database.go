package probe

import (
	"errors"
	"fmt"
	"net/url"
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
		return nil, err
	}
	return pgx.ParseConfig(text)
}

// forLibpq makes of a URL one that libpq would take. What is no URL is left to
// those who know better.
func forLibpq(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return text, nil
	}
	scheme, driver, _ := strings.Cut(u.Scheme, "+")
	if scheme != "postgres" && scheme != "postgresql" {
		return text, nil
	}
	q := u.Query()
	if driver == "" && !q.Has("ssl") {
		return text, nil
	}
	if err := sslmode(q); err != nil {
		return "", err
	}
	u.Scheme, u.RawQuery = scheme, urlquery.Edit(u.RawQuery, q)
	return u.String(), nil
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
