package pgwire

import (
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	sqlRead   = "SELECT value FROM counter WHERE id = $1"
	sqlWrite  = "UPDATE counter SET value = $1 WHERE id = $2"
	sqlClaim  = "UPDATE counter SET fence = $1 WHERE id = 1 AND fence < $1 RETURNING value"
	sqlUpdate = "UPDATE counter SET value = 8 WHERE id = 1"
)

var (
	four  = "\x00\x00\x00\x07"
	eight = "\x00\x00\x00\x00\x00\x00\x00\x08"
	flows = []struct {
		name   string
		wants  []string
		script []any
		want   string
	}{
		{"simple", nil, []any{
			fe{q("SELECT value FROM counter WHERE id = 1")}, be{rowd("value", 23), data("7"), c("SELECT 1"), z('I')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')},
			fe{q("select 1")}, be{rowd("?column?", 23), data("1"), c("SELECT 1"), z('I')},
			fe{q("")}, be{&pgproto3.EmptyQueryResponse{}, z('I')},
		}, `
			ask SELECT counter read tx1i [Q]
			got SELECT done rows=1 value=7 [TDC]
			end SELECT done [Z]
			ask UPDATE counter write tx2i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`},
		{"simple error", nil, []any{
			fe{q(sqlUpdate)}, be{notice, bad("40001"), z('I')},
			fe{q(sqlUpdate)}, be{c("UPDATE 0"), z('I')},
		}, `
			ask UPDATE counter write tx1i [Q]
			got UPDATE failed rows=0 err=40001 [E]
			end UPDATE failed [Z]
			ask UPDATE counter write tx2i [Q]
			got UPDATE done rows=0 [C]
			end UPDATE done [Z]`},
		{"several rows", nil, []any{
			fe{q("select a, b as c from t")}, be{rowd("a", 23, "c", 25), data("1", "x"), data("2", "y"), c("SELECT 2"), z('I')},
			fe{q("select a, b as c from t")}, be{rowd("a", 23, "c", 25), data("1", "5"), c("SELECT 1"), z('I')},
			fe{q("select * from t")}, be{rowd("a", 23, "b", 25), &pgproto3.DataRow{Values: [][]byte{[]byte("1"), nil}}, c("SELECT 1"), z('I')},
		}, `
			ask SELECT t read tx1i [Q]
			got SELECT done rows=2 [TDDC]
			end SELECT done [Z]
			ask SELECT t read tx2i [Q]
			got SELECT done rows=1 a=1 b=5 [TDC]
			end SELECT done [Z]
			ask SELECT t read tx3i [Q]
			got SELECT done rows=1 a=1 b=? [TDC]
			end SELECT done [Z]`},
		{"transaction", nil, []any{
			fe{q("begin")}, be{c("BEGIN"), z('T')},
			fe{q("select value from counter for update")}, be{rowd("value", 20), data("7"), c("SELECT 1"), z('T')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('T')},
			fe{q("insert into log (a) values (1)")}, be{c("INSERT 0 1"), z('T')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('T')},
			fe{q("commit")}, be{c("COMMIT"), notify, z('I')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')},
		}, `
			ask BEGIN begin tx1 [Q]
			got BEGIN done rows=0 [C]
			ask SELECT counter read tx1 [Q]
			got SELECT done rows=1 value=7 [TDC]
			ask UPDATE counter write tx1 [Q]
			got UPDATE done rows=1 [C]
			ask INSERT log write tx1 [Q]
			got INSERT done rows=1 [C]
			ask UPDATE counter write tx1 [Q]
			got UPDATE done rows=1 [C]
			ask COMMIT commit tx1 tables=counter,log [Q]
			got COMMIT done rows=0 [C]
			ask UPDATE counter write tx2i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`},
		{"commit of a failed transaction", nil, []any{
			fe{q("begin")}, be{c("BEGIN"), z('T')},
			fe{q(sqlUpdate)}, be{bad("23505"), z('E')},
			fe{q("savepoint x")}, be{bad("25P02"), z('E')},
			fe{q("end")}, be{c("ROLLBACK"), z('I')},
		}, `
			ask BEGIN begin tx1 [Q]
			got BEGIN done rows=0 [C]
			ask UPDATE counter write tx1 [Q]
			got UPDATE failed rows=0 err=23505 [E]
			ask END commit tx1 tables=counter [Q]
			got END rolled-back rows=0 [C]`},
		{"commit that fails", nil, []any{
			fe{q("begin")}, be{c("BEGIN"), z('T')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('T')},
			fe{q("commit")}, be{bad("40001"), z('I')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')},
		}, `
			ask BEGIN begin tx1 [Q]
			got BEGIN done rows=0 [C]
			ask UPDATE counter write tx1 [Q]
			got UPDATE done rows=1 [C]
			ask COMMIT commit tx1 tables=counter [Q]
			got COMMIT failed rows=0 err=40001 [E]
			ask UPDATE counter write tx2i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`},
		{"savepoints and chains", nil, []any{
			fe{q("start transaction")}, be{c("START TRANSACTION"), z('T')},
			fe{q("rollback to a")}, be{c("ROLLBACK"), z('T')},
			fe{q("commit and chain")}, be{c("COMMIT"), z('T')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('T')},
			fe{q("abort")}, be{c("ROLLBACK"), z('I')},
			fe{q("commit")}, be{notice, c("COMMIT"), z('I')},
		}, `
			ask START begin tx1 [Q]
			got START done rows=0 [C]
			ask ROLLBACK rollback tx1 savepoint [Q]
			got ROLLBACK done rows=0 [C]
			ask COMMIT commit tx1 [Q]
			got COMMIT done rows=0 [C]
			ask UPDATE counter write tx2 [Q]
			got UPDATE done rows=1 [C]
			ask ABORT rollback tx2 [Q]
			got ABORT done rows=0 [C]
			ask COMMIT commit tx3 [Q]
			got COMMIT done rows=0 [C]`},
		{"a transaction in one Query, and what follows it", nil, []any{
			fe{q("begin; " + sqlUpdate + "; rollback; " + sqlUpdate)}, be{c("BEGIN"), c("UPDATE 1"), c("ROLLBACK"), c("UPDATE 1"), z('I')},
		}, `
			ask BEGIN begin tx1 [Q]
			ask UPDATE counter write tx1 [Q]
			ask ROLLBACK rollback tx1 [Q]
			ask UPDATE counter write tx2i [Q]
			got BEGIN done rows=0 [C]
			got UPDATE done rows=1 [C]
			got ROLLBACK done rows=0 [C]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`},
		{"a transaction whose BEGIN was not seen", nil, []any{
			fe{b("", "adopted"), e(""), syn}, be{boundOK, c("BEGIN"), z('T')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('T')},
			fe{q("commit")}, be{c("COMMIT"), z('I')},
		}, `
			ask UPDATE counter write tx1 [Q]
			got UPDATE done rows=1 [C]
			ask COMMIT commit tx1 tables=counter [Q]
			got COMMIT done rows=0 [C]`},
		{"two-phase", nil, []any{
			fe{q("begin; " + sqlUpdate + "; prepare transaction 'x'")}, be{c("BEGIN"), c("UPDATE 1"), c("PREPARE TRANSACTION"), z('I')},
		}, `
			ask BEGIN begin tx1 [Q]
			ask UPDATE counter write tx1 [Q]
			ask PREPARE commit tx1 tables=counter [Q]
			got BEGIN done rows=0 [C]
			got UPDATE done rows=1 [C]
			got PREPARE unknown rows=0 [C]`},

		// Several statements in one Query.
		{"multi", nil, []any{
			fe{q("select 1; " + sqlUpdate + "; select value from counter; set x = 1")},
			be{rowd("?", 23), data("1"), c("SELECT 1"), c("UPDATE 1"), rowd("value", 23), data("8"), c("SELECT 1"), c("SET"), z('I')},
		}, `
			ask UPDATE counter write tx1i [Q]
			ask SELECT counter read tx1i [Q]
			got UPDATE done rows=1 [C]
			got SELECT done rows=1 value=8 [TDC]
			end UPDATE done [Z]
			end SELECT done [Z]`},
		{"multi with an error", nil, []any{
			fe{q(sqlUpdate + "; select 1/0; delete from counter")}, be{c("UPDATE 1"), bad("22012"), z('I')},
		}, `
			ask UPDATE counter write tx1i [Q]
			ask DELETE counter write tx1i [Q]
			got UPDATE rolled-back rows=1 [C]
			got DELETE failed rows=0 err=skipped [E]
			end UPDATE rolled-back [Z]
			end DELETE failed [Z]`},
		{"multi with COMMIT before an error", nil, []any{
			fe{q(sqlUpdate + "; commit; delete from counter; select 1/0")}, be{c("UPDATE 1"), notice, c("COMMIT"), c("DELETE 1"), bad("22012"), z('I')},
		}, `
			ask UPDATE counter write tx1i [Q]
			ask COMMIT commit tx1 tables=counter [Q]
			ask DELETE counter write tx2i [Q]
			got UPDATE done rows=1 [C]
			got COMMIT done rows=0 [C]
			end UPDATE done [C]
			got DELETE rolled-back rows=1 [C]
			end DELETE rolled-back [Z]`},
		{"multi with BEGIN drags the write in", nil, []any{
			fe{q(sqlUpdate + "; begin; select 1/0")}, be{c("UPDATE 1"), c("BEGIN"), bad("22012"), z('E')},
			fe{q("rollback")}, be{c("ROLLBACK"), z('I')},
		}, `
			ask UPDATE counter write tx1i [Q]
			ask BEGIN begin tx1 [Q]
			got UPDATE rolled-back rows=1 [C]
			got BEGIN done rows=0 [C]
			ask ROLLBACK rollback tx1 [Q]
			got ROLLBACK done rows=0 [C]
			end UPDATE rolled-back [C]`},
		{"multi with BEGIN and COMMIT", nil, []any{
			fe{q(sqlUpdate + "; begin")}, be{c("UPDATE 1"), c("BEGIN"), z('T')},
			fe{q("commit")}, be{c("COMMIT"), z('I')},
		}, `
			ask UPDATE counter write tx1i [Q]
			ask BEGIN begin tx1 [Q]
			got UPDATE done rows=1 [C]
			got BEGIN done rows=0 [C]
			ask COMMIT commit tx1 tables=counter [Q]
			got COMMIT done rows=0 [C]
			end UPDATE done [C]`},

		// Clients.
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
			got BEGIN done rows=0 [2NC]
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

		// Errors at each stage.
		{"error at Parse", nil, []any{
			fe{p("", sqlWrite), b("", "", "1", "1"), e(""), p("", sqlRead), b("", "", "1"), e(""), syn, p("", sqlRead), b("", "", "1"), e(""), syn},
			be{bad("42601"), z('I'), parsed, boundOK, data("7"), c("SELECT 1"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			ask SELECT counter read tx1i [PBE]
			ask SELECT counter read tx2i [PBE]
			got UPDATE failed rows=0 err=42601 [E]
			got SELECT failed rows=0 err=skipped [Z]
			end UPDATE failed [Z]
			end SELECT failed [Z]
			got SELECT done rows=1 value=7 [12DC]
			end SELECT done [Z]`},
		{"error at Bind", nil, []any{
			fe{p("", sqlWrite), b("", "", "1"), dp(""), e(""), syn}, be{parsed, bad("08P01"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBDE]
			got UPDATE failed rows=0 err=08P01 [1E]
			end UPDATE failed [Z]`},
		{"error at Describe", nil, []any{
			fe{ds("nope"), p("", sqlWrite), b("", "", "1", "1"), e(""), syn}, be{bad("26000"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			got UPDATE failed rows=0 err=skipped [Z]
			end UPDATE failed [Z]`},
		{"error at Close", nil, []any{
			fe{cs("x"), p("", sqlWrite), b("", "", "1", "1"), e(""), syn}, be{bad("XX000"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			got UPDATE failed rows=0 err=skipped [Z]
			end UPDATE failed [Z]`},
		{"error at Sync", nil, []any{
			fe{p("", sqlWrite), b("", "", "1", "1"), e(""), syn}, be{parsed, boundOK, c("UPDATE 1"), bad("23503"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			got UPDATE rolled-back rows=1 [12C]
			end UPDATE rolled-back [Z]`},
		{"Query while upstream skips", nil, []any{
			fe{p("", "bad sql"), flush}, be{bad("42601")},
			fe{q(sqlUpdate), &pgproto3.FunctionCall{Function: 1}, syn}, be{z('I')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')},
		}, `
			ask UPDATE counter write tx1i [Q]
			got UPDATE failed rows=0 err=skipped [Z]
			end UPDATE failed [Z]
			ask UPDATE counter write tx2i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`},
		{"a failed Parse does not take the name", nil, []any{
			fe{p("s", sqlRead), syn}, be{parsed, z('I')},
			fe{p("s", sqlWrite), syn}, be{bad("42P05"), z('I')},
			fe{b("", "s", "1"), e(""), syn}, be{boundOK, data("7"), c("SELECT 1"), z('I')},
		}, `
			ask SELECT counter read tx1i [BE]
			got SELECT done rows=1 value=7 [2DC]
			end SELECT done [Z]`},
		{"a Close that was skipped", nil, []any{
			fe{p("s", sqlRead), syn}, be{parsed, z('I')},
			fe{p("s", sqlRead), cs("s"), syn}, be{bad("42P05"), z('I')},
			fe{b("", "s", "1"), e(""), syn}, be{boundOK, data("7"), c("SELECT 1"), z('I')},
		}, `
			ask SELECT counter read tx1i [BE]
			got SELECT done rows=1 value=7 [2DC]
			end SELECT done [Z]`},
		{"Close and Parse in one segment", nil, []any{
			fe{p("s", sqlRead), syn, cs("s"), p("s", sqlWrite), b("", "s", "1", "1"), e(""), syn}, be{parsed, z('I'), closed, parsed, boundOK, c("UPDATE 1"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			got UPDATE done rows=1 [12C]
			end UPDATE done [Z]`},

		// Pipelines.
		{"pipeline across Syncs", nil, []any{
			fe{p("", sqlWrite), b("", "", "1", "1"), e(""), syn, p("", sqlRead), b("", "", "1"), e(""), syn, syn},
			be{parsed, boundOK, c("UPDATE 1")}, be{z('I'), parsed, boundOK, data("1"), c("SELECT 1"), z('I'), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			ask SELECT counter read tx2i [PBE]
			got UPDATE done rows=1 [12C]
			end UPDATE done [Z]
			got SELECT done rows=1 value=1 [12DC]
			end SELECT done [Z]`},
		{"Query before the Sync, 15", nil, []any{
			fe{p("", sqlWrite), b("", "", "1", "1"), e(""), q("select value from counter"), syn},
			be{parsed, boundOK, c("UPDATE 1"), rowd("value", 23), data("1"), c("SELECT 1"), z('I'), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			ask SELECT counter read tx1i [Q]
			got UPDATE done rows=1 [12C]
			got SELECT done rows=1 value=1 [TDC]
			end UPDATE done [Z]
			end SELECT done [Z]`},
		{"Query before the Sync, 18", nil, []any{
			fe{p("", sqlWrite), b("", "", "1", "1"), e(""), q("select value from counter"), syn},
			be{parsed, boundOK, c("UPDATE 1"), rowd("value", 23), data("1"), c("SELECT 1"), z('T'), bad("23503"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			ask SELECT counter read tx1i [Q]
			got UPDATE rolled-back rows=1 [12C]
			got SELECT done rows=1 value=1 [TDC]
			end UPDATE rolled-back [Z]
			end SELECT done [Z]`},
		{"more after a Query before the Sync, 18", nil, []any{
			fe{p("", sqlWrite), b("", "", "1", "1"), e(""), q("select 1")},
			be{parsed, boundOK, c("UPDATE 1"), rowd("?", 23), data("1"), c("SELECT 1"), z('T')},
			fe{p("", sqlRead), b("", "", "1"), e(""), syn}, be{parsed, boundOK, data("1"), c("SELECT 1"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			got UPDATE done rows=1 [12C]
			ask SELECT counter read tx2i [PBE]
			got SELECT done rows=1 value=1 [12DC]
			end UPDATE done [Z]
			end SELECT done [Z]`},
		{"unnamed statement replaced after Bind", nil, []any{
			fe{p("", sqlWrite), b("x", "", "1", "1"), p("", sqlRead), e("x"), syn}, be{parsed, boundOK, parsed, c("UPDATE 1"), z('I')},
			fe{q("select 1"), b("", "", "1"), e(""), syn}, be{rowd("?", 23), data("1"), c("SELECT 1"), z('I'), bad("26000"), z('I')},
		}, `
			ask UPDATE counter write tx1i [E]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`},
		{"a pipeline whose BEGIN failed", nil, []any{
			fe{p("", "begin"), b("", ""), e(""), syn, p("", sqlWrite), b("", "", "1", "1"), e(""), syn},
			be{bad("XX000"), z('I'), parsed, boundOK, c("UPDATE 1"), z('I')},
			fe{q(sqlUpdate)}, be{c("UPDATE 1"), z('I')},
		}, `
			ask BEGIN begin tx1 [PBE]
			ask UPDATE counter write tx2i [PBE]
			got BEGIN failed rows=0 err=XX000 [E]
			got UPDATE done rows=1 [12C]
			end UPDATE done [Z]
			ask UPDATE counter write tx3i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]`},
		{"COMMIT in mid-segment, then an error", nil, []any{
			fe{q("begin")}, be{c("BEGIN"), z('T')},
			fe{p("", sqlWrite), b("", "", "1", "1"), e(""), p("", "commit"), b("", ""), e(""), p("", sqlRead), b("", "", "1"), e(""), syn},
			be{parsed, boundOK, c("UPDATE 1"), parsed, boundOK, c("COMMIT"), bad("42601"), z('I')},
		}, `
			ask BEGIN begin tx1 [Q]
			got BEGIN done rows=0 [C]
			ask UPDATE counter write tx1 [PBE]
			ask COMMIT commit tx1 tables=counter [PBE]
			ask SELECT counter read tx2i [PBE]
			got UPDATE done rows=1 [12C]
			got COMMIT done rows=0 [12C]
			got SELECT failed rows=0 err=42601 [E]
			end SELECT failed [Z]`},

		// Names of SQL and of the protocol.
		{"SQL PREPARE and EXECUTE", nil, []any{
			fe{q("prepare u as update counter set value = $1 where id = $2")}, be{c("PREPARE"), z('I')},
			fe{q("execute u(8, 1)")}, be{c("UPDATE 1"), z('I')},
			fe{b("", "u", "9", "1"), e(""), syn}, be{boundOK, c("UPDATE 1"), z('I')},
			fe{q("deallocate u; execute u(8, 1)")}, be{c("DEALLOCATE"), bad("26000"), z('I')},
		}, `
			ask UPDATE counter write tx1i [Q]
			got UPDATE done rows=1 [C]
			end UPDATE done [Z]
			ask UPDATE counter write tx2i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`},
		{"DEALLOCATE ALL before a new Parse", nil, []any{
			fe{p("old", sqlRead), syn}, be{parsed, z('I')},
			fe{p("", "DEALLOCATE ALL"), b("", ""), e(""), p("new", sqlWrite), b("", "new", "1", "1"), e(""), syn},
			be{parsed, boundOK, c("DEALLOCATE ALL"), parsed, boundOK, c("UPDATE 1"), z('I')},
			fe{b("", "old", "1"), e(""), syn}, be{bad("26000"), z('I')},
		}, `
			ask UPDATE counter write tx1i [PBE]
			got UPDATE done rows=1 [12C]
			end UPDATE done [Z]`},
		{"DISCARD ALL that failed", nil, []any{
			fe{p("old", sqlRead), syn}, be{parsed, z('I')},
			fe{q("discard all")}, be{bad("25001"), z('I')},
			fe{b("", "old", "1"), e(""), syn}, be{boundOK, data("7"), c("SELECT 1"), z('I')},
		}, `
			ask SELECT counter read tx1i [BE]
			got SELECT done rows=1 value=7 [2DC]
			end SELECT done [Z]`},

		// What takes no place.
		{"asynchronous messages", nil, []any{
			be{notify, notice, status},
			fe{p("", sqlWrite), b("", "", "1", "1"), e(""), syn}, be{notice, parsed, status, boundOK, notice, c("UPDATE 1"), notice, status, notify, z('I'), notify},
			fe{q(sqlUpdate)}, be{notice, c("UPDATE 1"), notify, z('I')},
			be{bad("57P01")},
		}, `
			ask UPDATE counter write tx1i [PBE]
			got UPDATE done rows=1 [1S2NC]
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

		// Verbs that a rule names.
		{"wanted", []string{"LOCK", "TRUNCATE", "SELECT", "SET"}, []any{
			fe{q("lock table counter; truncate counter; select pg_advisory_lock(1); create table x (a int)")}, be{c("LOCK TABLE"), c("TRUNCATE TABLE"), rowd("x", 23), data("1"), c("SELECT 1"), c("CREATE TABLE"), z('I')},
			fe{p("", "set a = 1"), b("", ""), dp(""), e(""), syn}, be{parsed, boundOK, noData, c("SET"), z('I')},
			fe{p("", "select 1 from pg_class"), b("", ""), dp(""), e(""), syn}, be{parsed, boundOK, rowd("x", 23), c("SELECT 0"), z('I')},
		}, `
			ask LOCK counter other tx1i [Q]
			ask TRUNCATE counter other tx1i [Q]
			ask SELECT other tx1i [Q]
			got LOCK done rows=0 [C]
			got TRUNCATE done rows=0 [C]
			got SELECT done rows=1 [TDC]
			end LOCK done [Z]
			end TRUNCATE done [Z]
			end SELECT done [Z]
			ask SET other tx2i [PBDE]
			got SET done rows=0 [12nC]
			end SET done [Z]`},
	}
)

func TestFlows(t *testing.T) {
	for _, tt := range append(flows[:len(flows):len(flows)], copies...) {
		t.Run(tt.name, func(t *testing.T) {
			turns := encode(t, append(started[:2:2], tt.script...))
			got := newPlayer(t, newTracker(tt.wants...)).play(turns, 0).text()
			if got != lines(tt.want) {
				t.Fatalf("got\n%s\nwant\n%s", got, lines(tt.want))
			}
			for n := 1; n < 40; n++ {
				if split := newPlayer(t, newTracker(tt.wants...)).play(turns, n).text(); split != got {
					t.Fatalf("in pieces of %d:\n%s\nwant\n%s", n, split, got)
				}
			}
		})
	}
}

// Every offset at which two chunks may part.
func TestFlowsSplitOnce(t *testing.T) {
	for _, tt := range append(flows[:len(flows):len(flows)], copies...) {
		turns := encode(t, append(started[:2:2], tt.script...))
		for i, u := range turns {
			for at := 1; at < len(u.bytes); at++ {
				pl := newPlayer(t, newTracker(tt.wants...)).play(turns[:i], 0)
				pl.frame(u)
				pl.feed(u.client, u.bytes[:at])
				pl.feed(u.client, u.bytes[at:])
				if got := pl.play(turns[i+1:], 0).text(); got != lines(tt.want) {
					t.Fatalf("%s: turn %d split at %d:\n%s\nwant\n%s", tt.name, i, at, got, lines(tt.want))
				}
			}
		}
	}
}
