package pgwire

import "github.com/jackc/pgx/v5/pgproto3"

// clientFlows are what well-known clients send.
var clientFlows = []flow{
	{"pgx", nil, []any{
		fe{p("s1", sqlRead), ds("s1"), syn}, be{parsed, types(23), rowd("value", 20), z('I')},
		fe{bin(b("", "s1", four)), dp(""), e(""), syn}, be{boundOK, rowd("value", 20), data(eight), c("SELECT 1"), z('I')},
		fe{q("begin")}, be{c("BEGIN"), z('T')},
		fe{p("s2", sqlWrite), ds("s2"), syn}, be{parsed, types(20, 23), noData, z('T')},
		fe{bin(b("", "s2", eight, four)), dp(""), e(""), syn}, be{boundOK, noData, c("UPDATE 1"), z('T')},
		fe{q("commit")}, be{c("COMMIT"), z('I')},
	}, `
		ask SELECT counter read tx1i [BDE]
		got SELECT done rows=1 value=8 [2TDC]
		end SELECT done [Z]
		ask BEGIN begin tx2 [Q]
		got BEGIN done rows=0 [C]
		ask UPDATE counter write tx2 [BDE]
		got UPDATE done rows=1 [2nC]
		ask COMMIT commit tx2 tables=counter [Q]
		got COMMIT done rows=0 [C]`},
	{"asyncpg", nil, []any{
		fe{p("__asyncpg_stmt_1__", sqlClaim), ds("__asyncpg_stmt_1__"), flush}, be{parsed, types(20), rowd("value", 23)},
		fe{bin(b("", "__asyncpg_stmt_1__", eight)), e(""), syn}, be{boundOK, data(four), c("UPDATE 1"), z('I')},
		fe{bin(b("", "__asyncpg_stmt_1__", eight)), e(""), syn}, be{boundOK, c("UPDATE 0"), z('I')},
	}, `
		ask UPDATE counter write tx1i [BE]
		got UPDATE done rows=1 value=7 [2DC]
		end UPDATE done [Z]
		ask UPDATE counter write tx2i [BE]
		got UPDATE done rows=0 [2C]
		end UPDATE done [Z]`},
	{"names and types come from Describe", nil, []any{
		fe{p("s", "select * from t where a = $1"), ds("s"), syn}, be{parsed, types(17), rowd("n", 20, "u", 2950, "ok", 16), z('I')},
		fe{bin(b("", "s", "x")), e(""), syn}, be{boundOK, data(eight, "0123456789abcdef", "\x01"), c("SELECT 1"), z('I')},
	}, `
		ask SELECT t read tx1i [BE]
		got SELECT done rows=1 n=8 u=` + show(hasher.Of([]byte("30313233-3435-3637-3839-616263646566"))) + ` ok=` + show(hasher.Of([]byte("t"))) + ` [2DC]
		end SELECT done [Z]`},
	{"formats that are not known", nil, []any{
		fe{p("", sqlRead)}, []byte("B\x00\x00\x00\x0c\x00\x00\x00\x00\x00\x00\x00\x05"), fe{e(""), syn}, be{parsed, boundOK, data("7"), c("SELECT 1"), z('I')},
	}, `
		ask SELECT counter read tx1i [PBE]
		got SELECT done rows=1 [12DC]
		end SELECT done [Z]`},
	{"psycopg", nil, []any{
		fe{p("", sqlWrite), b("", "", "8", "1"), dp(""), e(""), syn}, be{parsed, boundOK, noData, c("UPDATE 1"), z('I')},
		fe{p("_pg3_0", sqlWrite), syn}, be{parsed, z('I')},
		fe{b("", "_pg3_0", "9", "1"), dp(""), e(""), syn}, be{boundOK, noData, c("UPDATE 1"), z('I')},
		fe{p("", "BEGIN"), b("", ""), e(""), p("", sqlWrite), b("", "", "8", "1"), dp(""), e(""), syn},
		be{parsed, boundOK, c("BEGIN"), parsed, boundOK, noData, c("UPDATE 1"), z('T')},
		fe{p("", "COMMIT"), b("", ""), dp(""), e(""), syn}, be{parsed, boundOK, noData, c("COMMIT"), z('I')},
	}, `
		ask UPDATE counter write tx1i [PBDE]
		got UPDATE done rows=1 [12nC]
		end UPDATE done [Z]
		ask UPDATE counter write tx2i [BDE]
		got UPDATE done rows=1 [2nC]
		end UPDATE done [Z]
		ask BEGIN begin tx3 [PBE]
		ask UPDATE counter write tx3 [PBDE]
		got BEGIN done rows=0 [12C]
		got UPDATE done rows=1 [12nC]
		ask COMMIT commit tx3 tables=counter [PBDE]
		got COMMIT done rows=0 [12nC]`},
	{"JDBC", nil, []any{
		fe{p("S_1", "BEGIN"), b("", "S_1"), e(""), p("S_2", sqlRead), b("C_1", "S_2", "1"), dp("C_1"), &pgproto3.Execute{Portal: "C_1", MaxRows: 1}, syn},
		be{parsed, boundOK, c("BEGIN"), parsed, boundOK, rowd("value", 23), data("7"), &pgproto3.PortalSuspended{}, z('T')},
		fe{&pgproto3.Execute{Portal: "C_1", MaxRows: 1}, cp("C_1"), syn}, be{data("8"), c("SELECT 1"), closed, z('T')},
		fe{b("", "S_1"), e(""), cs("S_2"), syn}, be{boundOK, notice, c("BEGIN"), closed, z('T')},
		fe{p("S_3", "COMMIT"), b("", "S_3"), e(""), syn}, be{parsed, boundOK, c("COMMIT"), z('I')},
	}, `
		ask BEGIN begin tx1 [PBE]
		ask SELECT counter read tx1 [PBDE]
		got BEGIN done rows=0 [12C]
		got SELECT done rows=1 value=7 [12TDs]
		ask BEGIN begin tx1 [BE]
		got BEGIN done rows=0 [C]
		ask COMMIT commit tx1 [PBE]
		got COMMIT done rows=0 [12C]`},
	{"postgres.js", nil, []any{
		fe{p("x1", "commit"), ds("x1"), flush}, be{parsed, types(), noData},
		fe{b("", "x1"), e(""), syn}, be{boundOK, c("COMMIT"), z('I')},
	}, `
		ask COMMIT commit tx1 [BE]
		got COMMIT done rows=0 [2C]`},
	{"pgbench", nil, []any{
		fe{q("begin")}, be{c("BEGIN"), z('T')},
		fe{q("UPDATE pgbench_accounts SET abalance = abalance + -5 WHERE aid = 7;")}, be{c("UPDATE 1"), z('T')},
		fe{p("", "SELECT abalance FROM pgbench_accounts WHERE aid = $1"), b("", "", "7"), dp(""), e(""), syn},
		be{parsed, boundOK, rowd("abalance", 23), data("-5"), c("SELECT 1"), z('T')},
		fe{q("end")}, be{c("COMMIT"), z('I')},
	}, `
		ask BEGIN begin tx1 [Q]
		got BEGIN done rows=0 [C]
		ask UPDATE pgbench_accounts write tx1 [Q]
		got UPDATE done rows=1 [C]
		ask SELECT pgbench_accounts read tx1 [PBDE]
		got SELECT done rows=1 abalance=-5 [12TDC]
		ask END commit tx1 tables=pgbench_accounts [Q]
		got END done rows=0 [C]`},
	{"batch", nil, []any{
		fe{p("a", sqlWrite), ds("a"), p("b", sqlRead), ds("b"), syn}, be{parsed, types(20, 23), noData, parsed, types(23), rowd("value", 20), z('I')},
		fe{b("", "a", "1", "1"), dp(""), e(""), b("", "b", "1"), dp(""), e(""), b("", "a", "2", "1"), dp(""), e(""), syn},
		be{boundOK, noData, c("UPDATE 1"), boundOK, rowd("value", 20), data("1"), c("SELECT 1"), boundOK, noData, bad("23505"), z('I')},
	}, `
		ask UPDATE counter write tx1i [BDE]
		ask SELECT counter read tx1i [BDE]
		ask UPDATE counter write tx1i [BDE]
		got UPDATE rolled-back rows=1 [2nC]
		got SELECT done rows=1 value=1 [2TDC]
		got UPDATE failed rows=0 err=23505 [2nE]
		end UPDATE rolled-back [Z]
		end SELECT done [Z]
		end UPDATE failed [Z]`},
}
