package pgwire

func one(sql, tag string) []any { return []any{fe{q(sql)}, be{c(tag), z('T')}} }

func flat(list ...[]any) (out []any) {
	for _, l := range list {
		out = append(out, l...)
	}
	return out
}

var (
	begun  = one("begin", "BEGIN")
	write  = one(sqlUpdate, "UPDATE 1")
	ended  = []any{fe{q("commit")}, be{c("COMMIT"), z('I')}}
	set    = func(name string) []any { return one("savepoint "+name, "SAVEPOINT") }
	undo2  = func(name string) []any { return one("rollback to "+name, "ROLLBACK") }
	freed  = func(name string) []any { return one("release savepoint "+name, "RELEASE") }
	prefix = `ask BEGIN begin tx1 [Q]
		got BEGIN done rows=0 [C]
		`
	wrote = `ask UPDATE counter write tx1 [Q]
		got UPDATE done rows=1 [C]
		`
	back = func(since string) string {
		return `ask ROLLBACK rollback tx1 savepoint [Q]
		got ROLLBACK done rows=0` + since + ` [C]
		`
	}
	commits = `ask COMMIT commit tx1 tables=counter [Q]
		got COMMIT done rows=0 [C]
		`
)

// savepointFlows are what a ROLLBACK TO undoes: from which op on.
var savepointFlows = []flow{
	{"savepoint before and after a write", nil, flat(begun, write, set("a"), write, undo2("a"), ended),
		prefix + wrote + wrote + back(" since=3") + commits},
	{"savepoint twice back", nil, flat(begun, set("a"), write, undo2("a"), write, undo2("a"), write, ended),
		prefix + wrote + back(" since=2") + wrote + back(" since=2") + wrote + commits},
	{"savepoints of one name", nil, flat(begun, set("a"), write, set("a"), write, undo2("a"), freed("a"), undo2("a"), ended),
		prefix + wrote + wrote + back(" since=3") + back(" since=2") + commits},
	{"savepoints nested", nil, flat(begun, set("a"), write, set("b"), write, set("c"), write, undo2("b"), undo2("a"), ended),
		prefix + wrote + wrote + wrote + back(" since=3") + back(" since=2") + commits},
	{"savepoint released with those behind it", nil, flat(begun, set("a"), write, set("b"), write, set("A"), freed("b"), undo2(`"a"`), ended),
		prefix + wrote + wrote + back(" since=2") + commits},
	{"savepoint that was not seen", nil, flat(begun, set("a"), write, undo2("unseen"), write, undo2("a"), ended),
		prefix + wrote + back("") + wrote + back("") + commits},
	{"savepoint after an error", nil, flat(begun, write, set("a"), []any{fe{q(sqlUpdate)}, be{bad("23505"), z('E')}, fe{q("savepoint b")}, be{bad("25P02"), z('E')}}, undo2("a"), write, ended),
		prefix + wrote + `ask UPDATE counter write tx1 [Q]
		got UPDATE failed rows=0 err=23505 [E]
		` + back(" since=3") + wrote + commits},
	{"savepoint of an earlier transaction", nil, flat(begun, set("a"), ended, begun, write, undo2("a"), ended), prefix + `ask COMMIT commit tx1 [Q]
		got COMMIT done rows=0 [C]
		ask BEGIN begin tx2 [Q]
		got BEGIN done rows=0 [C]
		ask UPDATE counter write tx2 [Q]
		got UPDATE done rows=1 [C]
		ask ROLLBACK rollback tx2 savepoint [Q]
		got ROLLBACK done rows=0 [C]
		ask COMMIT commit tx2 tables=counter [Q]
		got COMMIT done rows=0 [C]`},
	{"savepoints in a pipeline", nil, []any{
		fe{p("", "begin"), b("", ""), e(""), p("sp", "savepoint s1"), b("", "sp"), e(""), p("w", sqlWrite), b("", "w", "1", "1"), e(""),
			p("", "rollback to savepoint s1"), b("", ""), e(""), b("", "w", "1", "1"), e(""), p("", "commit"), b("", ""), e(""), syn},
		be{parsed, boundOK, c("BEGIN"), parsed, boundOK, c("SAVEPOINT"), parsed, boundOK, c("UPDATE 1"), parsed, boundOK, c("ROLLBACK"), boundOK, c("UPDATE 1"), parsed, boundOK, c("COMMIT"), z('I')},
	}, `ask BEGIN begin tx1 [PBE]
		ask UPDATE counter write tx1 [PBE]
		ask ROLLBACK rollback tx1 savepoint [PBE]
		ask UPDATE counter write tx1 [BE]
		ask COMMIT commit tx1 tables=counter [PBE]
		got BEGIN done rows=0 [12C]
		got UPDATE done rows=1 [12C]
		got ROLLBACK done rows=0 since=2 [12C]
		got UPDATE done rows=1 [2C]
		got COMMIT done rows=0 [12C]`},
	{"savepoints in one Query", nil, []any{
		fe{q("begin; " + sqlUpdate + "; savepoint a; " + sqlUpdate + "; rollback to a; commit")},
		be{c("BEGIN"), c("UPDATE 1"), c("SAVEPOINT"), c("UPDATE 1"), c("ROLLBACK"), c("COMMIT"), z('I')},
	}, `ask BEGIN begin tx1 [Q]
		ask UPDATE counter write tx1 [Q]
		ask UPDATE counter write tx1 [Q]
		ask ROLLBACK rollback tx1 savepoint [Q]
		ask COMMIT commit tx1 tables=counter [Q]
		got BEGIN done rows=0 [C]
		got UPDATE done rows=1 [C]
		got UPDATE done rows=1 [C]
		got ROLLBACK done rows=0 since=3 [C]
		got COMMIT done rows=0 [C]`},

	// Code that cannot be seen.
	{"CALL between writes, then an error", nil, []any{
		fe{p("", sqlWrite), b("", "", "1", "1"), e(""), p("", "call p()"), b("", ""), e(""), p("", sqlWrite), b("", "", "1", "1"), e(""), p("", sqlWrite), b("", "", "1", "1"), e(""), syn},
		be{parsed, boundOK, c("UPDATE 1"), parsed, boundOK, c("CALL"), parsed, boundOK, c("UPDATE 1"), parsed, boundOK, bad("23505"), z('I')},
	}, `ask UPDATE counter write tx1i [PBE]
		ask UPDATE counter write tx1i [PBE]
		ask UPDATE counter write tx1i [PBE]
		got UPDATE unknown rows=1 [12C]
		got UPDATE rolled-back rows=1 [12C]
		got UPDATE failed rows=0 err=23505 [12E]
		end UPDATE unknown [Z]
		end UPDATE rolled-back [Z]
		end UPDATE failed [Z]`},
	{"DO that fails behind a write", []string{"DO"}, []any{
		fe{p("", sqlWrite), b("", "", "1", "1"), e(""), p("", "do $$begin commit; end$$"), b("", ""), e(""), syn},
		be{parsed, boundOK, c("UPDATE 1"), parsed, boundOK, bad("22012"), z('I')},
	}, `ask UPDATE counter write tx1i [PBE]
		ask DO other tx1i [PBE]
		got UPDATE unknown rows=1 [12C]
		got DO unknown rows=0 err=22012 [12E]
		end UPDATE unknown [Z]
		end DO unknown [Z]`},
	{"CALL in a transaction", nil, []any{
		fe{p("", "begin"), b("", ""), e(""), p("", sqlWrite), b("", "", "1", "1"), e(""), p("", "call p()"), b("", ""), e(""), syn},
		be{parsed, boundOK, c("BEGIN"), parsed, boundOK, c("UPDATE 1"), parsed, boundOK, bad("2D000"), z('E')},
		fe{q("rollback")}, be{c("ROLLBACK"), z('I')},
	}, `ask BEGIN begin tx1 [PBE]
		ask UPDATE counter write tx1 [PBE]
		got BEGIN done rows=0 [12C]
		got UPDATE done rows=1 [12C]
		ask ROLLBACK rollback tx1 [Q]
		got ROLLBACK done rows=0 [C]`},
}
