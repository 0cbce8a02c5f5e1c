package pgwire

import "github.com/jackc/pgx/v5/pgproto3"

// simpleFlows are simple queries and what they make of transactions.
var simpleFlows = []flow{
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
		ask FORUPDATE row:counter:? acquire tx1 [Q]
		ask SELECT counter read tx1 [Q]
		got FORUPDATE row:counter:? granted rows=1 [TDC]
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
}
