package pgwire

import "github.com/jackc/pgx/v5/pgproto3"

// extendedFlows are errors at each stage, pipelines, and names.
var extendedFlows = []flow{
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
	{"a name that upstream had lost", nil, []any{
		fe{p("s", sqlRead), syn}, be{parsed, z('I')},
		fe{q("do $$begin execute 'deallocate s'; end$$"), p("s", sqlWrite), syn}, be{c("DO"), z('I'), parsed, z('I')},
		fe{b("", "s", "1", "1"), e(""), syn}, be{boundOK, c("UPDATE 1"), z('I')},
	}, `
		ask UPDATE counter write tx1i [BE]
		got UPDATE done rows=1 [2C]
		end UPDATE done [Z]`},
	{"DISCARD ALL that failed", nil, []any{
		fe{p("old", sqlRead), syn}, be{parsed, z('I')},
		fe{q("discard all")}, be{bad("25001"), z('I')},
		fe{b("", "old", "1"), e(""), syn}, be{boundOK, data("7"), c("SELECT 1"), z('I')},
	}, `
		ask SELECT counter read tx1i [BE]
		got SELECT done rows=1 value=7 [2DC]
		end SELECT done [Z]`},
}
