package pgwire

import "github.com/jackc/pgx/v5/pgproto3"

var (
	copyIn   = &pgproto3.CopyInResponse{ColumnFormatCodes: []uint16{0}}
	copyOut  = &pgproto3.CopyOutResponse{ColumnFormatCodes: []uint16{0}}
	copyData = &pgproto3.CopyData{Data: []byte("1\n")}
	copyDone = &pgproto3.CopyDone{}
	copyFail = &pgproto3.CopyFail{Message: "x"}
	afterOK  = `
		ask UPDATE counter write tx2i [PBE]
		got UPDATE done rows=1 [12C]
		end UPDATE done [Z]`
	afterOK1 = `
		ask UPDATE counter write tx1i [PBE]
		got UPDATE done rows=1 [12C]
		end UPDATE done [Z]`
	after = []any{
		fe{p("", sqlWrite), b("", "", "1", "1"), e(""), syn}, be{parsed, boundOK, c("UPDATE 1"), z('I')},
	}
)

// copies are flows with COPY in them.
var copies = []flow{
	{"copy in", nil, append([]any{
		fe{q("copy t from stdin")}, be{copyIn}, fe{copyData, copyData, copyDone}, be{c("COPY 2"), z('I')},
	}, after...), `
		ask COPY t write tx1i [Q]
		got COPY done rows=2 [C]
		end COPY done [Z]` + afterOK},
	{"copy in that the client fails", nil, append([]any{
		fe{q("copy t from stdin")}, be{copyIn}, fe{copyData, copyFail}, be{bad("57014"), z('I')},
	}, after...), `
		ask COPY t write tx1i [Q]
		got COPY failed rows=0 err=57014 [E]
		end COPY failed [Z]` + afterOK},
	{"copy in, data before the answer", nil, append([]any{
		fe{q("copy t from stdin binary"), copyData, copyDone}, be{copyIn, c("COPY 1"), z('I')},
	}, after...), `
		ask COPY t write tx1i [Q]
		got COPY done rows=1 [C]
		end COPY done [Z]` + afterOK},
	{"copy in that fails up front, with stray data", nil, append([]any{
		fe{q("copy t from stdin")}, be{bad("42P01"), z('I')}, fe{copyData, copyDone},
	}, after...), `
		ask COPY t write tx1i [Q]
		got COPY failed rows=0 err=42P01 [E]
		end COPY failed [Z]` + afterOK},
	{"two copies in one Query", nil, append([]any{
		fe{q("copy t from stdin; copy u from stdin")}, be{copyIn}, fe{copyData, copyDone}, be{c("COPY 1"), copyIn}, fe{copyData, copyDone}, be{c("COPY 3"), z('I')},
	}, after...), `
		ask COPY t write tx1i [Q]
		ask COPY u write tx1i [Q]
		got COPY done rows=1 [C]
		got COPY done rows=3 [C]
		end COPY done [Z]
		end COPY done [Z]` + afterOK},
	{"copy out", nil, append([]any{
		fe{q("copy t to stdout")}, be{copyOut, copyData, copyData, copyDone, c("COPY 2"), z('I')},
		fe{p("", "copy t to stdout"), b("", ""), e(""), syn}, be{parsed, boundOK, copyOut, copyData, copyDone, c("COPY 1"), z('I')},
	}, after...), `
		ask UPDATE counter write tx1i [PBE]
		got UPDATE done rows=1 [12C]
		end UPDATE done [Z]`},
	{"extended copy in, the first Sync swallowed", nil, append([]any{
		fe{p("", "copy t from stdin"), b("", ""), e(""), syn}, be{parsed, boundOK, copyIn}, fe{copyData, copyDone, syn}, be{c("COPY 1"), z('I')},
	}, after...), `
		ask COPY t write tx1i [PBE]
		got COPY done rows=1 [C]
		end COPY done [Z]` + afterOK},
	{"extended copy in, failed with two Zs", nil, append([]any{
		fe{p("", "copy t from stdin"), b("", ""), e(""), syn}, be{parsed, boundOK, copyIn, bad("P0001")}, fe{copyData, copyDone, syn}, be{z('I'), z('I')},
	}, after...), `
		ask COPY t write tx1i [PBE]
		got COPY failed rows=0 err=P0001 [E]
		end COPY failed [Z]` + afterOK},
	{"extended copy in, failed with one Z", nil, append([]any{
		fe{p("", "copy t from stdin"), b("", ""), e(""), syn}, be{parsed, boundOK, copyIn}, fe{copyData, copyDone, syn}, be{bad("22P02"), z('I')},
	}, after...), `
		ask COPY t write tx1i [PBE]
		got COPY failed rows=0 err=22P02 [E]
		end COPY failed [Z]` + afterOK},
	{"extended copy in, failed with one Z, then another error", nil, append([]any{
		fe{p("", "copy t from stdin"), b("", ""), e(""), syn}, be{parsed, boundOK, copyIn}, fe{copyData, copyDone, syn}, be{bad("22P02"), z('I')},
		fe{p("", sqlRead), b("", "", "1"), e(""), syn}, be{bad("42601"), z('I')},
	}, after...), `
		ask COPY t write tx1i [PBE]
		got COPY failed rows=0 err=22P02 [E]
		end COPY failed [Z]
		ask SELECT counter read tx2i [PBE]
		got SELECT failed rows=0 err=42601 [E]
		end SELECT failed [Z]
		ask UPDATE counter write tx3i [PBE]
		got UPDATE done rows=1 [12C]
		end UPDATE done [Z]`},
	{"extended copy in, refused up front", nil, append([]any{
		fe{p("", "copy t from stdin"), b("", ""), e(""), syn, copyData, copyDone, syn}, be{parsed, bad("42P01"), z('I'), z('I')},
	}, after...), `
		ask COPY t write tx1i [PBE]
		got COPY failed rows=0 err=42P01 [1E]
		end COPY failed [Z]` + afterOK},
	{"a query during copy in", nil, []any{
		fe{q("copy t from stdin")}, be{copyIn}, fe{q("select 1")}, be{bad("08P01"), bad("08P01")},
	}, `
		ask COPY t write tx1i [Q]
		got COPY failed rows=0 err=08P01 [E]`},
	{"replication", nil, append([]any{
		fe{q("START_REPLICATION SLOT x LOGICAL 0/0")}, be{&pgproto3.CopyBothResponse{}, copyData},
		fe{copyData}, be{copyData, copyData}, fe{copyDone}, be{copyData, copyDone, c("COPY 0"), c("START_REPLICATION"), z('I')},
	}, after...), afterOK1},
}
