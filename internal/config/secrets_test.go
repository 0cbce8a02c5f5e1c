package config

import (
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/lock"
)

func TestWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:1=db:2?sslmode=require":         "127.0.0.1:1=db:2?sslmode=require",
		"127.0.0.1:1=me:hunter2@db:2":              "127.0.0.1:1=...@db:2",
		":1=postgres://me:hunter2@db:2/x":          ":1=postgres://...@db:2/x",
		"[::1]:1=rediss://:hun@ter2@db":            "[::1]:1=rediss://...@db",
		"me:hunter2=@db":                           "...@db",
		"db:2?sslpassword=hunter2&sslcert=c":       "db:2?sslpassword=...&sslcert=c",
		"host=db password='hun ter2' user=me":      "host=db password=... user=me",
		`host=db password = 'hun\'ter2' user=me`:   "host=db password = ... user=me",
		"postgres://db/x?user=me&password=hunter2": "postgres://db/x?user=me&password=...",
	} {
		if got := WithoutSecrets(text); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

// No way to write a flag wrong shows the password in it.
func TestErrorsHaveNoPassword(t *testing.T) {
	for _, text := range []string{
		"a:1=b:2?sslmode=require&sslpassword=hunter2",
		"a:1=b:2?sslpassword=hunter2",
		"a:1=me:hunter2@db:5432",
		"a:1=me:hunter2@db",
		"a:1=hunter2@db:5432",
		"a:1=me:hunter2@db:5432?sslmode=require",
		"a:1=postgres://me:hunter2@db:5432?sslmode=require",
		"a:1=postgres://me:hunter2@db:x",
		"a:1=rediss://:hunter2@db",
		"a:1=mysql://db?password=hunter2",
		"me:hunter2@db:5432",
		"me:hunter2@db:5432?sslmode=require",
		"postgres://me:hunter2@db:5432?sslrootcert=x",
	} {
		for _, p := range []lock.Protocol{lock.Redis, lock.Postgres} {
			if _, err := ParseProxyFlag(p, text); err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s %s: %v", p, text, err)
			}
		}
	}
}

func TestFileErrorsHaveNoPassword(t *testing.T) {
	for _, upstream := range []string{"me:hunter2@db:5432", "hunter2@db:5432", "postgres://me:hunter2@db:5432/x", "db:5432?sslpassword=hunter2"} {
		_, err := Parse("x.yaml", []byte("version: 1\nproxies:\n  postgres:\n    listen: ':0'\n    upstream: "+upstream+"\n"))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", upstream, err)
		}
	}
}
