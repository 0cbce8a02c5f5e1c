package main

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// utility gives the meaning of a statement that is no query and, but for TRUNCATE,
// changes no rows. It tells the tables of the few that a rule can be about.
func (m *meaning) utility(n *pg.Node) {
	m.verb = verbOf(n)
	switch s := n.Node.(type) {
	case *pg.Node_TruncateStmt:
		m.kind = "write"
		m.list(s.TruncateStmt.Relations)
	case *pg.Node_LockStmt:
		m.list(s.LockStmt.Relations)
	case *pg.Node_CreateStmt:
		m.write(s.CreateStmt.Relation)
	case *pg.Node_AlterTableStmt:
		m.ifTable(s.AlterTableStmt.Objtype, s.AlterTableStmt.Relation)
	case *pg.Node_AlterObjectSchemaStmt:
		m.ifTable(s.AlterObjectSchemaStmt.ObjectType, s.AlterObjectSchemaStmt.Relation)
	case *pg.Node_RenameStmt:
		r := s.RenameStmt
		of := r.RenameType
		if of == pg.ObjectType_OBJECT_COLUMN {
			of = r.RelationType
		}
		if of == pg.ObjectType_OBJECT_TABCONSTRAINT {
			of = pg.ObjectType_OBJECT_TABLE
		}
		m.ifTable(of, r.Relation)
	case *pg.Node_AlterObjectDependsStmt:
	case *pg.Node_DropStmt:
		if s.DropStmt.RemoveType == pg.ObjectType_OBJECT_TABLE {
			m.drops(s.DropStmt.Objects)
		}
	}
}

func (m *meaning) ifTable(t pg.ObjectType, v *pg.RangeVar) {
	if t == pg.ObjectType_OBJECT_TABLE {
		m.write(v)
	}
}

func (m *meaning) list(nodes []*pg.Node) {
	for _, n := range nodes {
		m.write(n.GetRangeVar())
	}
}

func (m *meaning) drops(objects []*pg.Node) {
	for _, o := range objects {
		var parts []string
		for _, p := range o.GetList().Items {
			parts = append(parts, p.GetString_().Sval)
		}
		m.tables = append(m.tables, strings.Join(parts, "."))
		m.writes = append(m.writes, strings.Join(parts, "."))
	}
}

// verbOf returns the verb of the statements that have one of their own, "" for
// the others.
func verbOf(n *pg.Node) string {
	name := string(n.ProtoReflect().WhichOneof(n.ProtoReflect().Descriptor().Oneofs().Get(0)).Name())
	switch name {
	case "truncate_stmt", "lock_stmt", "prepare_stmt", "execute_stmt", "deallocate_stmt", "call_stmt", "do_stmt":
		return strings.ToUpper(strings.TrimSuffix(name, "_stmt"))
	case "define_stmt", "index_stmt", "view_stmt", "rule_stmt", "composite_type_stmt", "createdb_stmt":
		return "CREATE"
	case "rename_stmt":
		return "ALTER"
	case "dropdb_stmt":
		return "DROP"
	}
	first, _, _ := strings.Cut(name, "_")
	switch first {
	case "create", "alter", "drop":
		return strings.ToUpper(first)
	}
	return ""
}

// class makes the reader's verb comparable with the grammar's.
func class(verb string, kind string) string {
	switch verb {
	case "VALUES":
		return "SELECT"
	case "SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "EXPLAIN", "COPY", "DECLARE", "SAVEPOINT", "RELEASE",
		"TRUNCATE", "LOCK", "PREPARE", "EXECUTE", "DEALLOCATE", "CALL", "DO", "CREATE", "ALTER", "DROP":
		if kind == "begin" || kind == "commit" || kind == "rollback" {
			return ""
		}
		return verb
	}
	return ""
}
