package pgwire

// A keyword is a word that the outline of a statement turns on.
type keyword uint8

const (
	noKeyword keyword = iota
	kwAll
	kwAlter
	kwAnalyze
	kwAs
	kwAtomic
	kwBegin
	kwCall
	kwCase
	kwConcurrently
	kwConflict
	kwCopy
	kwCreate
	kwCycle
	kwDeclare
	kwDelete
	kwDistinct
	kwDo
	kwDrop
	kwEnd
	kwExcept
	kwExecute
	kwExists
	kwExplain
	kwFetch
	kwFor
	kwFrom
	kwGroup
	kwHaving
	kwIf
	kwInsert
	kwIntersect
	kwInto
	kwIs
	kwJoin
	kwLateral
	kwLimit
	kwLocal // and the other words between CREATE and TABLE, or INTO and a name
	kwLock
	kwLocked
	kwMaterialized
	kwMerge
	kwNot
	kwOffset
	kwOnly
	kwOrder
	kwPrepare
	kwRecursive
	kwReturning
	kwSearch
	kwSelect
	kwSet
	kwSkip
	kwTable
	kwTruncate
	kwUnion
	kwUpdate
	kwUsing
	kwValues
	kwVerbose
	kwView
	kwWhen
	kwWhere
	kwWindow
	kwWith
)

// keywordOf returns the keyword that a word is, noKeyword if it is none.
func keywordOf(word string) keyword {
	const longest = len("MATERIALIZED")
	if len(word) < 2 || len(word) > longest {
		return noKeyword
	}
	var buf [longest]byte
	for i := range len(word) {
		buf[i] = word[i] | 0x20
	}
	switch string(buf[:len(word)]) {
	case "all":
		return kwAll
	case "alter":
		return kwAlter
	case "analyze", "analyse":
		return kwAnalyze
	case "as":
		return kwAs
	case "atomic":
		return kwAtomic
	case "begin":
		return kwBegin
	case "call":
		return kwCall
	case "case":
		return kwCase
	case "concurrently":
		return kwConcurrently
	case "conflict":
		return kwConflict
	case "copy":
		return kwCopy
	case "create":
		return kwCreate
	case "cycle":
		return kwCycle
	case "declare":
		return kwDeclare
	case "delete":
		return kwDelete
	case "distinct":
		return kwDistinct
	case "do":
		return kwDo
	case "drop":
		return kwDrop
	case "end":
		return kwEnd
	case "except":
		return kwExcept
	case "execute":
		return kwExecute
	case "exists":
		return kwExists
	case "explain":
		return kwExplain
	case "fetch":
		return kwFetch
	case "for":
		return kwFor
	case "from":
		return kwFrom
	case "group":
		return kwGroup
	case "having":
		return kwHaving
	case "if":
		return kwIf
	case "insert":
		return kwInsert
	case "intersect":
		return kwIntersect
	case "into":
		return kwInto
	case "is":
		return kwIs
	case "join":
		return kwJoin
	case "lateral":
		return kwLateral
	case "limit":
		return kwLimit
	case "local", "global", "temp", "temporary", "unlogged":
		return kwLocal
	case "lock":
		return kwLock
	case "locked":
		return kwLocked
	case "materialized":
		return kwMaterialized
	case "merge":
		return kwMerge
	case "not":
		return kwNot
	case "offset":
		return kwOffset
	case "only":
		return kwOnly
	case "order":
		return kwOrder
	case "prepare":
		return kwPrepare
	case "recursive":
		return kwRecursive
	case "returning":
		return kwReturning
	case "search":
		return kwSearch
	case "select":
		return kwSelect
	case "set":
		return kwSet
	case "skip":
		return kwSkip
	case "table":
		return kwTable
	case "truncate":
		return kwTruncate
	case "union":
		return kwUnion
	case "update":
		return kwUpdate
	case "using":
		return kwUsing
	case "values":
		return kwValues
	case "verbose":
		return kwVerbose
	case "view":
		return kwView
	case "when":
		return kwWhen
	case "where":
		return kwWhere
	case "window":
		return kwWindow
	case "with":
		return kwWith
	}
	return noKeyword
}
