package pgwire

import "github.com/jackc/pgx/v5/pgproto3"

// otherFlows are what takes no place, and verbs that a rule names.
var otherFlows = []flow{
	// What takes no place.
	{"asynchronous messages", nil, []any{
		be{notify, notice, status},
		fe{p("", sqlWrite), b("", "", "1", "1"), e(""), syn}, be{notice, parsed, status, boundOK, notice, c("UPDATE 1"), notice, status, notify, z('I'), notify},
		fe{q(sqlUpdate)}, be{notice, c("UPDATE 1"), notify, z('I')},
		be{bad("57P01")},
	}, `
		ask UPDATE counter write tx1i [PBE]
		got UPDATE done rows=1 [C]
		end UPDATE done [Z]
		ask UPDATE counter write tx2i [Q]
		got UPDATE done rows=1 [C]
		end UPDATE done [Z]`},
	{"function call", nil, []any{
		fe{&pgproto3.FunctionCall{Function: 1}}, be{&pgproto3.FunctionCallResponse{Result: []byte("x")}, z('I')},
		fe{&pgproto3.FunctionCall{Function: 1}}, be{bad("42883"), z('I')},
		fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')},
	}, `
		ask UPDATE counter write tx1i [Q]
		got UPDATE done rows=1 [C]
		end UPDATE done [Z]`},
	{"an unknown message", nil, []any{
		[]byte("y\x00\x00\x00\x05x"),
		fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')},
	}, `
		ask UPDATE counter write tx1i [Q]
		got UPDATE done rows=1 [C]
		end UPDATE done [Z]`},
	{"malformed bodies", nil, []any{
		[]byte("P\x00\x00\x00\x06ab"), []byte("B\x00\x00\x00\x04"), []byte("D\x00\x00\x00\x05S"), []byte("E\x00\x00\x00\x04"), []byte("C\x00\x00\x00\x04"), fe{syn},
		be{bad("08P01"), z('I')},
		[]byte("Q\x00\x00\x00\x04"), be{bad("08P01"), z('I')},
		fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')},
	}, `
		ask UPDATE counter write tx1i [Q]
		got UPDATE done rows=1 [C]
		end UPDATE done [Z]`},

	{"truncate", nil, []any{
		fe{q("begin; truncate table only counter, other; commit")}, be{c("BEGIN"), c("TRUNCATE TABLE"), c("COMMIT"), z('I')},
		fe{p("", "truncate counter"), b("", ""), dp(""), e(""), syn}, be{parsed, boundOK, noData, c("TRUNCATE TABLE"), z('I')},
		fe{q("truncate counter")}, be{bad("42501"), z('I')},
	}, `
		ask BEGIN begin tx1 [Q]
		ask TRUNCATE counter write tx1 [Q]
		ask COMMIT commit tx1 tables=counter,other [Q]
		got BEGIN done rows=0 [C]
		got TRUNCATE done rows=0 [C]
		got COMMIT done rows=0 [C]
		ask TRUNCATE counter write tx2i [PBDE]
		got TRUNCATE done rows=0 [12nC]
		end TRUNCATE done [Z]
		ask TRUNCATE counter write tx3i [Q]
		got TRUNCATE failed rows=0 err=42501 [E]
		end TRUNCATE failed [Z]`},

	// Verbs that a rule names.
	{"wanted", []string{"LOCK", "TRUNCATE", "SELECT", "SET"}, []any{
		fe{q("lock table counter; truncate counter; select pg_advisory_lock(1); create table x (a int)")}, be{c("LOCK TABLE"), c("TRUNCATE TABLE"), rowd("x", 23), data("1"), c("SELECT 1"), c("CREATE TABLE"), z('I')},
		fe{p("", "set a = 1"), b("", ""), dp(""), e(""), syn}, be{parsed, boundOK, noData, c("SET"), z('I')},
		fe{p("", "select 1 from pg_class"), b("", ""), dp(""), e(""), syn}, be{parsed, boundOK, rowd("x", 23), c("SELECT 0"), z('I')},
	}, `
		ask LOCK table:counter acquire tx1i [Q]
		ask LOCK counter other tx1i [Q]
		ask TRUNCATE counter write tx1i [Q]
		ask PG_ADVISORY_LOCK advisory:1 acquire tx1i session [Q]
		ask SELECT other tx1i [Q]
		got LOCK table:counter granted rows=0 [C]
		got LOCK done rows=0 [C]
		got TRUNCATE done rows=0 [C]
		got PG_ADVISORY_LOCK advisory:1 granted rows=1 depth=1 [TDC]
		got SELECT done rows=1 [TDC]
		end LOCK table:counter granted [Z]
		end LOCK done [Z]
		end TRUNCATE done [Z]
		end PG_ADVISORY_LOCK advisory:1 granted [Z]
		end SELECT done [Z]
		ask SET other tx2i [PBDE]
		got SET done rows=0 [12nC]
		end SET done [Z]`},
}
