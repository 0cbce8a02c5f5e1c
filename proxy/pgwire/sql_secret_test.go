package pgwire

import (
	"fmt"
	"strings"
	"testing"
)

// tellers are statements with the secret hunter2 in them.
var tellers = []string{
	`ALTER ROLE r PASSWORD 'hunter2'`,
	`DO $$begin execute 'alter role r password ''hunter2'''; end$$`,
	`alter user "r" with encrypted password 'hunter2' valid until 'infinity'`,
	`CREATE ROLE r LOGIN PASSWORD 'hunter2'`,
	`CREATE USER r IN ROLE g PASSWORD $$hunter2$$`,
	`ALTER ROLE r PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$hunter2:hunter2'`,
	`CREATE USER MAPPING FOR r SERVER s OPTIONS (user 'a', password 'hunter2')`,
	`ALTER SERVER s OPTIONS (SET passfile 'hunter2')`,
	`CREATE SUBSCRIPTION s CONNECTION 'host=h user=u password=hunter2' PUBLICATION p`,
	`ALTER SUBSCRIPTION s CONNECTION 'password=hunter2'`,
	`ALTER SYSTEM SET ssl_passphrase_command = 'echo hunter2'`,
	`ALTER DATABASE d SET app.key = 'hunter2'`,
	`SET app.jwt_secret = 'hunter2'`,
	`SELECT set_config('app.api_key', 'hunter2', false)`,
	`SELECT dblink_connect('c', 'host=h password=hunter2')`,
	`SELECT crypt('hunter2', gen_salt('bf'))`,
	`UPDATE accounts SET Password_hash = 'hunter2' WHERE id = 1`,
	`INSERT INTO api (token) VALUES ('hunter2')`,
	`begin; /* rotate */ ALTER /* the */ ROLE r PASSWORD 'hunter2'; commit`,
}

// A statement that may hold a password leaves nothing behind: no text, no key
// of the cache, and no value in an op.
func TestC015SecretsOfSQL(t *testing.T) {
	tr := newTracker("ALTER", "CREATE", "SET", "SELECT")
	pl := newPlayer(t, tr).play(encode(t, started), 0)
	for _, sql := range tellers {
		if !secret(sql) {
			t.Errorf("%s: not taken for a secret", sql)
		}
		for range 3 {
			pl.play(encode(t, []any{fe{q(sql)}, be{bad("42601"), z('I')}, fe{p("", sql), b("", ""), e(""), syn}, be{bad("42601"), z('I')}}), 0)
		}
		for _, m := range pl.marks {
			if m.Op != nil && strings.Contains(fmt.Sprintf("%+v %+v", m.Op, m.Op.SQL), "hunter2") {
				t.Errorf("%s: an op holds it: %+v", sql, m.Op.SQL)
			}
		}
	}
	c := tr.opt.Statements
	for _, g := range []map[string][]template{c.texts.young, c.texts.old} {
		for k, list := range g {
			if strings.Contains(k+fmt.Sprint(plainly(list)), "hunter2") {
				t.Errorf("the cache holds %s", k)
			}
		}
	}
}

// What holds no secret is kept, whatever it speaks of.
func TestNoSecret(t *testing.T) {
	for _, sql := range []string{
		`SELECT password FROM users WHERE id = $1`,
		`UPDATE accounts SET password_hash = $1 WHERE id = $2`,
		`INSERT INTO t (a) VALUES ('x')`,
		`CREATE TABLE t (a text DEFAULT 'x')`,
		`ALTER TABLE role ADD b int`,
		`SELECT 1; SELECT 'user'`,
	} {
		cache := NewCache()
		if twice(cache, sql); secret(sql) || !kept(cache, sql) {
			t.Errorf("%s: taken for a secret", sql)
		}
	}
}
