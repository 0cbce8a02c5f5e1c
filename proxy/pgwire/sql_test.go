package pgwire

import (
	"fmt"
	"strings"
	"testing"
)

func (v value) String() string {
	switch {
	case v.param > 0:
		return fmt.Sprintf("$%d", v.param)
	case v.known:
		return v.text
	}
	return "?"
}

// line writes a template down in one line.
func line(t template) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", orNone(string(t.kind)), t.verb)
	if t.shape.Table != "" {
		fmt.Fprintf(&b, " %s", t.shape.Table)
	}
	for i, s := range t.set {
		fmt.Fprintf(&b, "%s%s%s%s", []string{" set ", ","}[min(i, 1)], s.column, map[int64]string{0: "=", 1: "+=", -1: "-="}[s.step], s.value)
	}
	for i, c := range t.where {
		fmt.Fprintf(&b, "%s%s%s%s", []string{" where ", ","}[min(i, 1)], c.column, c.op, c.value)
	}
	if len(t.shape.Columns) > 0 {
		fmt.Fprintf(&b, " cols %s", strings.Join(t.shape.Columns, ","))
	}
	for _, a := range t.also {
		fmt.Fprintf(&b, " %s%s", map[bool]string{false: "+", true: "+!"}[a.written], a.name)
	}
	for _, a := range t.shape.Aside {
		fmt.Fprintf(&b, " aside %s", a)
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{t.shape.Returning, "returning"}, {t.shape.ForUpdate, "forupdate"}, {t.shape.Upsert, "upsert"}, {t.shape.Opaque, "opaque"}, {t.shape.Cascade, "cascade"},
		{t.maybe, "maybe"}, {t.indirect, "indirect"}, {t.system, "system"}, {t.chain, "chain"}, {t.savepoint, "savepoint"}, {t.twoPhase, "twophase"},
	} {
		if f.on {
			b.WriteString(" " + f.name)
		}
	}
	switch t.effect {
	case clearAll:
		b.WriteString(" clear")
	case deallocate:
		b.WriteString(" forget " + t.name)
	case prepare:
		fmt.Fprintf(&b, " prepare %s (%s)", t.name, line(*t.inner))
	case run:
		fmt.Fprintf(&b, " run %s", t.name)
		for _, a := range t.args {
			fmt.Fprintf(&b, " %s", a.value)
		}
	}
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func TestReadSQL(t *testing.T) {
	for _, tt := range []struct {
		name string
		sql  string
		want []string
	}{
		// The statements of a counter service.
		{"select", `SELECT value FROM counter WHERE id = 1`, []string{"read SELECT counter where id=1 cols value"}},
		{"select param", `select value, fence from counter where id = $1`, []string{"read SELECT counter where id=$1 cols value,fence"}},
		{"update", `UPDATE counter SET value = $1 WHERE id = 1`, []string{"write UPDATE counter set value=$1 where id=1"}},
		{"update fenced", `UPDATE counter SET value = $1, fence = $2 WHERE id = 1 AND fence < $2`, []string{"write UPDATE counter set value=$1,fence=$2 where id=1,fence<$2"}},
		{"claim", `UPDATE counter SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value`, []string{"write UPDATE counter set fence=$1 where id=1,fence<$1 cols value returning"}},
		{"increment", `UPDATE counter SET value = value + 1 WHERE id = 1`, []string{"write UPDATE counter set value+=1 where id=1"}},

		// Steps.
		{"step param", `update t set n = n - $2 where id=$1`, []string{"write UPDATE t set n-=$2 where id=$1"}},
		{"step mirrored", `update t set n = $1 + n`, []string{"write UPDATE t set n+=$1"}},
		{"step qualified", `update t as x set n = x.n + 5::int`, []string{"write UPDATE t set n+=5"}},
		{"step quoted", `update t set "N" = "N" + 1`, []string{"write UPDATE t set N+=1"}},
		{"step in parens", `update t set n = (n + 1)`, []string{"write UPDATE t set n+=1"}},
		{"step negative", `update t set n = n + -1`, []string{"write UPDATE t set n+=-1"}},
		{"no step from another column", `update t set n = m + 1`, []string{"write UPDATE t set n=?"}},
		{"no step of a literal less the column", `update t set n = 1 - n`, []string{"write UPDATE t set n=?"}},
		{"no step of a product", `update t set n = n + 1 * 2`, []string{"write UPDATE t set n=?"}},
		{"function", `update t set a = now(), b = coalesce(b, 0) + 1, c = 3 where id = 1`, []string{"write UPDATE t set a=?,b=?,c=3 where id=1"}},
		{"case", `update t set a = case when b = 1 and c = 2 then 3 else 4 end, d = 5 where e = 6`, []string{"write UPDATE t set a=?,d=5 where e=6"}},
		{"row assignment", `update t set (a, b) = ($1, 2), (c) = row(3), (d, e) = (select 1, 2) where f = 1`, []string{"write UPDATE t set a=$1,b=2,c=3,d=?,e=? where f=1"}},
		{"subscript", `update t set a[1] = 2 where b[1] = 3`, []string{"write UPDATE t set a=? opaque"}},
		{"parts of columns", `update t set a[1] = 2, b.c = 3, d['x'][1].e = d + 1, f = 4`, []string{"write UPDATE t set a=?,b=?,d=?,f=4"}},

		// Literals.
		{"strings", `update t set a = 'it''s', b = E'x\'y', c = $$d$$, d = $q$a$$b$q$, e = U&'x', f = -1.50, g = 1e-5, h = true, i = null, j = default`,
			[]string{"write UPDATE t set a=it's,b=x'y,c=d,d=a$$b,e=?,f=-1.50,g=1e-5,h=t,i=?,j=?"}},
		{"casts", `update t set a = $1::int, b = '5'::character varying(10), c = CAST($2 AS numeric(10,2)), d = $3::timestamp with time zone, e = $4::int[] where f = $5::uuid`,
			[]string{"write UPDATE t set a=$1,b=5,c=$2,d=$3,e=$4 where f=$5"}},
		{"negative without a space", `update t set a=-1 where b=-$1 and c=+2`, []string{"write UPDATE t set a=-1 where c=2 opaque"}},

		// Conditions.
		{"mirrored", `select a from t where $1 > b::int and 5 <= c and 'x' = d and 1 <> e and 2 != f`, []string{"read SELECT t where b<$1,c>=5,d=x,e<>1,f<>2 cols a"}},
		{"parens", `select a from t where (b = 1) and ((c = 2 and d = 3)) and (e) = 4`, []string{"read SELECT t where b=1,c=2,d=3 cols a opaque"}},
		{"or", `select a from t where b = 1 or c = 2`, []string{"read SELECT t cols a opaque"}},
		{"and or", `select a from t where b = 1 and c = 2 or d = 3`, []string{"read SELECT t cols a opaque"}},
		{"or in parens", `select a from t where b = 1 and (c = 2 or d = 3) and e = 4`, []string{"read SELECT t where b=1,e=4 cols a opaque"}},
		{"in", `select a from t where b in (1,2) and c = 3 and d = any($1)`, []string{"read SELECT t where c=3 cols a opaque"}},
		{"between", `select a from t where b between 1 and 5 and c = 3`, []string{"read SELECT t where c=3 cols a opaque"}},
		{"null", `select a from t where b is null and c is not null and not d and e = 1`, []string{"read SELECT t where e=1 cols a opaque"}},
		{"subquery", `select a from t where b = (select max(b) from u where c = 9) and d = 1 and exists (select 1)`, []string{"read SELECT t where d=1 cols a +u opaque"}},
		{"conditions of a subquery", `update t set v = 1 where id = 1 and (select ok from f where id = 2 and fence = 3)`, []string{"write UPDATE t set v=1 where id=1 +f opaque"}},
		{"function of a column", `select a from t where lower(b) = 'x' and c = 1`, []string{"read SELECT t where c=1 cols a opaque"}},
		{"arithmetic", `select a from t where b = 1 + c and d = 1`, []string{"read SELECT t where d=1 cols a opaque"}},
		{"operators", `select a from t where b @> 1 and c ~ 'x' and d->>'k' = 'v' and e = 1`, []string{"read SELECT t where e=1 cols a opaque"}},
		{"column to column", `select a from t where b = c and d = 1`, []string{"read SELECT t where d=1 cols a opaque"}},
		{"like", `select a from t where b like 'x%' and c = 1`, []string{"read SELECT t where c=1 cols a opaque"}},
		{"case", `select a from t where case when x and y then true end and c = 1`, []string{"read SELECT t where c=1 cols a opaque"}},
		{"current of", `delete from t where current of c`, []string{"write DELETE t opaque"}},
		{"column cast", `select a from t where b::text = 'x'`, []string{"read SELECT t where b=x cols a"}},

		// Select lists and clauses.
		{"list", `select a, t.b, "C", d as e, count(*), max(f) as m, g::int, *, t.*, 1, 'x' y from t`, []string{"read SELECT t cols a,b,C,d,?,?,g,*,*,?,?"}},
		{"fields", `select (b).*, a * c, count(*), *, t.* from t`, []string{"read SELECT t cols ?*,?,?,*,*"}},
		{"constants", `select null, true, current_user from t`, []string{"read SELECT t cols ?,?,?"}},
		{"lateral", `select a from lateral t where b = 1`, []string{"read SELECT t where b=1 cols a"}},
		{"order", `select a from t where b = 1 order by c limit 1 offset 2`, []string{"read SELECT t where b=1 cols a"}},
		{"for update", `select a from t where b = 1 for update skip locked`, []string{"read SELECT t where b=1 cols a forupdate"}},
		{"for no key update", `select a from t for no key update of t nowait`, []string{"read SELECT t cols a forupdate"}},
		{"for share", `select a from t where b = $1 limit 1 for share`, []string{"read SELECT t where b=$1 cols a"}},
		{"for key share", `select a from t where b = 1 for key share; select a from t where b = 1 for share for update`,
			[]string{"read SELECT t where b=1 cols a", "read SELECT t where b=1 cols a forupdate"}},
		{"group", `select a, count(*) from t where b = 1 group by a having count(*) > 1`, []string{"read SELECT t where b=1 cols a,? opaque"}},
		{"union", `select a from t where b = 1 union all select a from u where b = 2`, []string{"read SELECT t where b=1 cols a +u opaque"}},
		{"distinct", `select distinct on (a) a, b from t`, []string{"read SELECT t cols a,b"}},
		{"aliases", `select a as b, a c, count(*) as a, a + 1 as a, (a) as b, case when a then b end a from t`, []string{"read SELECT t cols a,a,?,?,?,?"}},
		{"wrapped columns", `select coalesce(a, 0) as b, coalesce(t.a::int, $1) c, cast(a as numeric(4, 2)) d, a::text e, coalesce(a, b), coalesce(a + 1, 0) as a, cast(a + 1 as int) as a from t`, []string{"read SELECT t cols a,a,a,a,?,?,?"}},
		{"names", `select a from public."My Table" x where x."Id" = 1`, []string{"read SELECT public.My Table where Id=1 cols a"}},
		{"case of names", `SELECT Value FROM Counter`, []string{"read SELECT counter cols value"}},
		{"only", `select a from only t * as x(b) where b = 1`, []string{"read SELECT t where b=1 cols a"}},
		{"join", `select a from t join u on t.x = u.x where u.y = 5`, []string{"read SELECT t cols a +u opaque"}},
		{"comma", `select a from t, u where u.y = 5 for update`, []string{"read SELECT t cols a +u forupdate opaque"}},
		{"join in parens", `select a from (t join u on t.x = u.x) where u.y = 5`, []string{"read SELECT t cols a +u opaque"}},
		{"tablesample", `select a from t tablesample system (1) where b = 1`, []string{"read SELECT t cols a opaque"}},
		{"subselect", `select a from (select b from t where c = 1) x where d = 2`, []string{"read SELECT t cols a opaque"}},
		{"function source", `select * from generate_series(1, 3) g where g = 1`, []string{"- SELECT cols * opaque"}},
		{"no table", `select 1`, []string{"- SELECT cols ?"}},
		{"advisory", `SELECT pg_advisory_lock($1)`, []string{"- SELECT cols ?"}},
		{"into", `select a into u from t where b = 1`, []string{"write SELECT u +t opaque"}},
		{"parens", `(select a from t) union (select a from u)`, []string{"read SELECT t cols a +u opaque"}},

		// Catalogs.
		{"pg_catalog", `select oid from pg_catalog.pg_type where typname = $1`, []string{"- SELECT pg_catalog.pg_type where typname=$1 cols oid system"}},
		{"pg_", `select * from pg_stat_activity`, []string{"- SELECT pg_stat_activity cols * system"}},
		{"information_schema", `select 1 from information_schema.tables`, []string{"- SELECT information_schema.tables cols ? system"}},

		// INSERT.
		{"insert", `INSERT INTO counter (id, value) VALUES (1, $1)`, []string{"write INSERT counter set id=1,value=$1"}},
		{"insert returning", `insert into s.t as x (a) values (default) returning id, a as b, *`, []string{"write INSERT s.t set a=? cols id,a,* returning"}},
		{"insert rows", `insert into t (a, b) values (1, 2), (3, 4)`, []string{"write INSERT t set a=1,b=2 opaque"}},
		{"insert rows and more", `insert into t (a) values (1), (2) on conflict (a) do update set b = 3 returning a`, []string{"write INSERT t set a=1,b=3 cols a returning upsert opaque"}},
		{"insert without columns", `insert into t values (1, 2)`, []string{"write INSERT t opaque"}},
		{"insert select", `insert into t (a) select b from u join v on u.x = v.x where c = 1 on conflict do nothing returning a`, []string{"write INSERT t set a=? cols a +u +v returning opaque"}},
		{"insert default values", `insert into t default values`, []string{"write INSERT t"}},
		{"insert expression", `insert into t (a, b, c) values (now(), 1 + 1, $1)`, []string{"write INSERT t set a=?,b=?,c=$1"}},
		{"do nothing", `insert into t (a) values ($1) on conflict (a) do nothing`, []string{"write INSERT t set a=$1"}},
		{"upsert", `insert into t (id, v) values ($1, $2) on conflict (id) do update set v = excluded.v, w = 3 where t.id = 7`, []string{"write INSERT t set id=$1,v=$2,w=3 where id=7 upsert"}},
		{"upsert step", `insert into t (id, n) values (1, 1) on conflict (id) do update set n = t.n + excluded.n returning n`, []string{"write INSERT t set id=1,n=1,n+=1 cols n returning upsert"}},
		{"upsert fence", `INSERT INTO t(id, v, fence) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v, fence = EXCLUDED.fence WHERE t.fence < EXCLUDED.fence`,
			[]string{"write INSERT t set id=$1,v=$2,fence=$3 where fence<$3 upsert"}},
		{"upsert on a partial index", `insert into t (a) values (1) on conflict (a) where b = 2 do update set a = 3`, []string{"write INSERT t set a=1,a=3 upsert"}},

		// UPDATE and DELETE with other tables.
		{"update from", `update t set a = u.a from u where t.id = u.id and u.b = 1 returning t.a`, []string{"write UPDATE t set a=? cols a +u returning opaque"}},
		{"a step from another table", `update t set n = u.n + 1 from u where t.id = u.id`, []string{"write UPDATE t set n=? +u opaque"}},
		{"a step with another table", `update t set n = t.n + 1, a = 2 from u where t.id = u.id`, []string{"write UPDATE t set n=?,a=2 +u opaque"}},
		{"steps by a qualifier", `update s.t as x set n = x.n + 1, m = t.m - 2, o = 3 + s.t.o, q = u.q + 1, r = 1 + u.r`, []string{"write UPDATE s.t set n+=1,m-=2,o+=3,q=?,r=?"}},
		{"upsert step by an alias", `insert into t as x (id, n) values (1, 1) on conflict (id) do update set n = x.n + 1`, []string{"write INSERT t set id=1,n=1,n+=1 upsert"}},
		{"upsert step from the refused row", `insert into t values (1, 1) on conflict (id) do update set n = excluded.n + 1`, []string{"write INSERT t set n=? upsert opaque"}},
		{"delete", `delete from only t where id = $1 returning *`, []string{"write DELETE t where id=$1 cols * returning"}},
		{"delete using", `delete from t using u where t.id = u.id`, []string{"write DELETE t +u opaque"}},
		{"returning what was there", `update t set v = 1 returning old.v, new.v, coalesce(old.v, 1), cast(old.w as int), old.*, new.*, old`,
			[]string{"write UPDATE t set v=1 cols ?,v,?,?,?*,*,old returning"}},
		{"returning by other names", `update t set v = 1 returning with (old as o) o.v, v`, []string{"write UPDATE t set v=1 cols ?* returning"}},
		{"returning of a table called old", `update t as old set v = 1 returning old.v; delete from old returning old.v`,
			[]string{"write UPDATE t set v=1 cols v returning", "write DELETE old cols v returning"}},
		{"merge", `merge into t using u on t.id = u.id when matched then update set a = 1`, []string{"write MERGE t +u opaque"}},

		// WITH.
		{"with update", `with n as (select id from t where x = 1 for update skip locked limit 1) update t set a = 1 from n where t.id = n.id returning t.id`, []string{"write UPDATE t set a=1 cols id +t returning opaque"}},
		{"with inner write", `with i as (insert into t (a) values (1) returning a) select * from i`, []string{"write INSERT t set a=1 cols a returning opaque indirect"}},
		{"with select", `with recursive x (a, b) as materialized (select 1), y as not materialized (select 2) select a from t where b = 1`, []string{"read SELECT t where b=1 cols a opaque"}},
		{"with for update", `with x as (select id, v from t where id=1 for update) select * from x`, []string{"read SELECT t where id=1 cols * forupdate opaque"}},
		{"with names", `with x as (select id, v + 1 as w from t), "Y" (a) as materialized (select id from x where w = 1) select id, w from "Y" as z where id = 3`, []string{"read SELECT t cols id,? opaque"}},
		{"with a name in a subselect", `with x as (select * from t) select a from (select * from x) y`, []string{"read SELECT t cols a opaque"}},
		{"with no table", `with x as (select 1 as a) select a from x`, []string{"- SELECT cols ? opaque"}},
		{"with a catalog", `with x as (select oid from pg_class) select oid from x`, []string{"- SELECT pg_class cols oid opaque system"}},
		{"with a schema", `with x as (select a from t) select a from s.x`, []string{"read SELECT s.x cols a +t opaque"}},
		{"with several writes", `with a as (insert into t (a) values (1)), b as (delete from u) update v set a = 1`, []string{"write UPDATE v set a=1 +!t +!u opaque"}},
		{"with values", `with x as (values (1)) delete from t where a = 1`, []string{"write DELETE t where a=1 opaque"}},

		// Transactions.
		{"begin", `BEGIN`, []string{"begin BEGIN"}},
		{"begin options", `begin transaction isolation level serializable`, []string{"begin BEGIN"}},
		{"start", `start transaction read only`, []string{"begin START"}},
		{"commit", `COMMIT;`, []string{"commit COMMIT"}},
		{"end", `end work`, []string{"commit END"}},
		{"chain", `commit and chain`, []string{"commit COMMIT chain"}},
		{"no chain", `commit and no chain`, []string{"commit COMMIT"}},
		{"rollback", `rollback`, []string{"rollback ROLLBACK"}},
		{"abort", `abort transaction and chain`, []string{"rollback ABORT chain"}},
		{"rollback to", `rollback work to savepoint a`, []string{"rollback ROLLBACK savepoint"}},
		{"savepoint", `savepoint a; release savepoint a`, []string{"- SAVEPOINT", "- RELEASE"}},
		{"two-phase", `prepare transaction 'x'; commit prepared 'x'; rollback prepared 'x'`, []string{"commit PREPARE twophase", "- COMMIT", "- ROLLBACK"}},

		// Prepared statements.
		{"prepare", `prepare p (int) as update t set a = $1 where b = 2`, []string{"- PREPARE prepare p (write UPDATE t set a=$1 where b=2)"}},
		{"prepare of a catalog", `prepare p as select * from pg_class`, []string{"- PREPARE prepare p (- SELECT pg_class cols * system)"}},
		{"execute", `execute p(1, 'x', now())`, []string{"- EXECUTE run p 1 x ?"}},
		{"deallocate", `deallocate prepare p; deallocate all; discard all; discard temp`, []string{"- DEALLOCATE forget p", "- DEALLOCATE clear", "- DISCARD clear", "- DISCARD"}},

		// Others.
		{"copy from", `copy s.t (a, b) from stdin binary`, []string{"write COPY s.t opaque"}},
		{"copy to", `copy t to stdout; copy (select 1) to stdout`, []string{"- COPY t", "- COPY"}},
		{"truncate", `truncate table only t; truncate "T" restart identity; truncate only (a.b), c*, a.b cascade; truncate pg_class`,
			[]string{"write TRUNCATE t", "write TRUNCATE T", "write TRUNCATE a.b +!c cascade", "- TRUNCATE pg_class system"}},
		{"truncate what refers", `truncate t cascade; truncate users, t restart identity cascade; truncate "cascade"`,
			[]string{"write TRUNCATE t cascade", "write TRUNCATE users +!t cascade", "write TRUNCATE cascade"}},
		{"lock", `lock table t in exclusive mode`, []string{"- LOCK t"}},
		{"create", `create temp table if not exists s.t (a int)`, []string{"- CREATE s.t"}},
		{"set", `set application_name = 'x'`, []string{"- SET"}},

		{"table", `table only s.t; table t for update`, []string{"read SELECT s.t cols *", "read SELECT t cols * forupdate"}},
		{"explain", `explain analyze update t set a = 1; explain (analyze off) delete from t; explain (verbose, analyze) insert into t select 1 from u; explain analyze select 1 from t; explain (analyze 'off') delete from t; explain (analyze 'on') delete from t`,
			[]string{"write UPDATE t opaque indirect", "- EXPLAIN t", "write INSERT t +u opaque indirect", "- EXPLAIN t", "- EXPLAIN t", "write DELETE t opaque indirect"}},
		{"cursors", `declare c cursor for select a from t; fetch 1 from c`, []string{"- DECLARE t", "- FETCH"}},

		// Splitting.
		{"several", `begin; update t set a = 1; commit`, []string{"begin BEGIN", "write UPDATE t set a=1", "commit COMMIT"}},
		{"empty", ` ; ;; -- nothing`, nil},
		{"nothing", ``, nil},
		{"comments", "/* a /* b; */ c; */ select /* ; */ a -- ;\n from t", []string{"read SELECT t cols a"}},
		{"semicolons in quotes", `select ';' a, $x$;$x$ b, "c;" from t; select 1`, []string{"read SELECT t cols ?,?,c;", "- SELECT cols ?"}},
		{"semicolons in parens", `create rule r as on insert to t do (select 1; select 2); select 3`, []string{"- CREATE", "- SELECT cols ?"}},
		{"function body", `create function f() returns int begin atomic select case when true then 1 end; select 2; end; commit`, []string{"- CREATE", "commit COMMIT"}},
		{"stray parenthesis", `select a from t) ; commit`, []string{"read SELECT t cols a", "commit COMMIT"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, tm := range readSQL(tt.sql, false) {
				got = append(got, line(tm))
			}
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("%s\n got %q\nwant %q", tt.sql, got, tt.want)
			}
		})
	}
}

// What is kept of a statement is bounded, and then it is opaque.
func TestReadLongSQL(t *testing.T) {
	got := readSQL("update t set a = 1"+strings.Repeat(", b = 2", maxSlots), false)[0]
	if len(got.set) != maxSlots || !got.shape.Opaque {
		t.Errorf("%d assignments, opaque %v", len(got.set), got.shape.Opaque)
	}
}

func TestReadCutSQL(t *testing.T) {
	got := readSQL(`update t set a = 1; update t set b = 2 wh`, true)
	if len(got) != 2 || got[0].shape.Opaque || !got[1].shape.Opaque {
		t.Errorf("the last statement of a cut text alone must be opaque: %+v", got)
	}
}

// Texts that nest deeply must cost neither stack nor time.
func TestReadHostileSQL(t *testing.T) {
	for _, s := range []string{"(", "select * from (", "with x as (", "select a from t where (", "update t set a = (", "select a from t where b = cast(", "select case ", "[", "/*", "insert into t (a) values ((", "prepare p as "} {
		readSQL(strings.Repeat(s, (1<<20)/len(s)), false)
		readSQL("update t set a = "+strings.Repeat(s, (1<<18)/len(s)), false)
	}
}

func TestTokens(t *testing.T) {
	for sql, want := range map[string]string{
		`a=-1`:               `a = - 1`,
		`a@-1`:               `a @- 1`,
		`1_000 0x1e+2 1e+2`:  `1_000 0x1e + 2 1e+2`,
		`x::y`:               `x :: y`,
		`$1$a$;$a$`:          `$1 $a$;$a$`,
		`E'a\'b' n'c' u&"d"`: `E'a\'b' n'c' u&"d"`,
		`a<>b--c`:            `a <> b`,
		`a+/*x*/b`:           `a + b`,
		`'open`:              `'open`,
		`"a""b".c`:           `"a""b" . c`,
		`$x`:                 `$ x`,
		`é1`:                 `é1`,
		`.5 a.b`:             `.5 a . b`,
	} {
		var got []string
		for l := (lexer{src: sql}); ; {
			tok := l.next()
			if tok.kind == tokEnd {
				break
			}
			got = append(got, tok.text)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s: tokens %s, want %s", sql, g, want)
		}
	}
}
