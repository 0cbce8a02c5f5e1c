package probe

import (
	"strings"
	"testing"
)

// A URL as asyncpg or SQLAlchemy take it says the same of TLS to us.
func TestDatabaseURLOfOtherLibraries(t *testing.T) {
	for text, want := range map[string]string{
		"postgres://u:p@h:5432/d":                           "postgres://u:p@h:5432/d",
		"postgres://u:p%40@h/d?sslmode=require":             "postgres://u:p%40@h/d?sslmode=require",
		"host=h port=5432 ssl=require":                      "host=h port=5432 ssl=require",
		"postgres://u@h/d?ssl=require":                      "postgres://u@h/d?sslmode=require",
		"postgresql+asyncpg://u:p%40@h/d?ssl=verify-ca&a=b": "postgresql://u:p%40@h/d?a=b&sslmode=verify-ca",
		"postgresql+psycopg://u@h/d":                        "postgresql://u@h/d",
		"postgresql+asyncpg://u@h/d?ssl=false":              "postgresql://u@h/d?sslmode=disable",
		"postgres://u@h/d?ssl=True&sslrootcert=%2Fca":       "postgres://u@h/d?sslrootcert=%2Fca&sslmode=verify-full",
		"postgres://u@h/d?b=+&options=-c%20a%3Db&ssl=1":     "postgres://u@h/d?b=+&options=-c%20a%3Db&sslmode=verify-full",
		"postgresql+x://u@h/d?b=+&options=-c%20a%3Db":       "postgresql://u@h/d?b=+&options=-c%20a%3Db",
		"postgres://u@h/d?ssl=disable":                      "postgres://u@h/d?sslmode=disable",
		"postgres://u:secret%zz@h/d":                        "postgres://u:secret%zz@h/d",
		"postgres://u@h1:1,h2/d?sslmode=require":            "postgres://u@h1:1,h2/d?sslmode=require",
		"POSTGRES://u@h/d?sslmode=require":                  "postgres://u@h/d?sslmode=require",
		"":                                                  "",
		"postgresql+asyncpg:///d?host=%2Frun":               "postgresql:///d?host=%2Frun",
		" host = h password=a://b?ssl=c":                    " host = h password=a://b?ssl=c",
		"host=h password=a://b?ssl=c":                       "host=h password=a://b?ssl=c",
	} {
		if got, err := forLibpq(text); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"postgres://u:secret@h/d?ssl=require&sslmode=require": "the options ssl and sslmode are both given, expected one of them",
		"postgres://u:secret@h/d?ssl=require&ssl=disable":     "the option ssl is given more than once",
		"postgres://u:secret@h/d?ssl=":                        `ssl="": expected true, false, disable, allow, prefer, require, verify-ca, verify-full`,
		"postgres://u:secret@h/d?ssl=requires":                `ssl="requires": expected true, false, disable, allow, prefer, require, verify-ca, verify-full`,
	} {
		if _, err := parse(text); !Refused(err) || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What looks like a URL and is none that can be read is refused: as a connection
// string it would lead elsewhere, with a part of the password in clear.
func TestUnreadableURLIsRefusedWithoutQuotingIt(t *testing.T) {
	for _, text := range []string{
		"postgresql+asyncpg://u:se#cret@h1/d?ssl=require",
		"postgresql+asyncpg://u:cret%zz@h1/d?a=b",
		"postgres://u:se#cret@h1/d?ssl=require",
		"postgres://u:se#cret@h1/d?a=b&ssl=require",
		" postgres://u:cret@h1/d?a=b",
		"postgresql+1:/://u:cret@h1/d?a=b",
		"mysql://u:cret@h1/d?a=b",
		"://u:cret@h1/d?a=b",
		"postgresql+x:u:cret@h1/d?a=b",
		"postgres:u:cret@h1/d?a=b",
		"u:cret@h1/d?a=b",
	} {
		if c, err := parse(text); err != nil && !Refused(err) {
			t.Errorf("%s: to be tried again: %v", text, err)
		} else if err == nil {
			t.Errorf("%s: accepted, for the host %s with the parameters %q", text, c.Host, c.RuntimeParams)
		} else if strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: the error quotes it: %v", text, err)
		}
	}
}

// What was converted asks for TLS, and sends the server no parameter ssl.
func TestConvertedURLAsksForTLS(t *testing.T) {
	c, err := parse("postgresql+asyncpg://u@h/d?ssl=require")
	if err != nil {
		t.Fatal(err)
	}
	if _, sent := c.RuntimeParams["ssl"]; sent || c.TLSConfig == nil || len(c.Fallbacks) != 0 {
		t.Errorf("TLS %v, fallbacks %d, parameters %v", c.TLSConfig, len(c.Fallbacks), c.RuntimeParams)
	}
}
