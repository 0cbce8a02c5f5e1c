package main

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A meaning is what a statement does, as the grammar has it.
type meaning struct {
	verb   string // "" for one that has none of its own here
	kind   string
	tables []string
	writes []string

	wrote string // verb of the first write in a WITH list
}

// scope are the names of WITH lists that are known at a place.
type scope []string

func (m *meaning) read(v *pg.RangeVar, known scope) {
	if v == nil || v.Schemaname == "" && slices.Contains(known, v.Relname) {
		return
	}
	m.tables = append(m.tables, name(v))
}

func (m *meaning) write(v *pg.RangeVar) {
	if v != nil {
		m.tables, m.writes = append(m.tables, name(v)), append(m.writes, name(v))
	}
}

func name(v *pg.RangeVar) string {
	parts := []string{}
	for _, s := range []string{v.Catalogname, v.Schemaname, v.Relname} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ".")
}

func (m *meaning) sort() {
	for _, list := range []*[]string{&m.tables, &m.writes} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
}

// common walks a WITH list and returns what is known behind it.
func (m *meaning) common(w *pg.WithClause, known scope) scope {
	if w == nil {
		return known
	}
	known = slices.Clone(known)
	for _, n := range w.Ctes {
		if w.Recursive {
			known = append(known, n.GetCommonTableExpr().Ctename)
		}
	}
	for _, n := range w.Ctes {
		c := n.GetCommonTableExpr()
		m.walk(c.Ctequery.ProtoReflect(), known)
		known = append(known, c.Ctename)
	}
	return known
}

// walk collects the tables below a node.
func (m *meaning) walk(node protoreflect.Message, known scope) {
	switch n := node.Interface().(type) {
	case *pg.SelectStmt:
		known = m.common(n.WithClause, known)
		if n.IntoClause != nil {
			m.changes("SELECT", n.IntoClause.Rel)
		}
	case *pg.InsertStmt:
		known = m.common(n.WithClause, known)
		m.changes("INSERT", n.Relation)
	case *pg.UpdateStmt:
		known = m.common(n.WithClause, known)
		m.changes("UPDATE", n.Relation)
	case *pg.DeleteStmt:
		known = m.common(n.WithClause, known)
		m.changes("DELETE", n.Relation)
	case *pg.MergeStmt:
		known = m.common(n.WithClause, known)
		m.changes("MERGE", n.Relation)
	case *pg.RangeVar:
		m.read(n, known)
		return
	case *pg.LockingClause, *pg.WithClause, *pg.IntoClause:
		return
	}
	relation := node.Descriptor().Fields().ByName("relation")
	if _, ok := node.Interface().(*pg.RangeTableSample); ok {
		relation = nil
	}
	node.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f == relation || f.Kind() != protoreflect.MessageKind:
		case f.IsList():
			for i := range v.List().Len() {
				m.walk(v.List().Get(i).Message(), known)
			}
		default:
			m.walk(v.Message(), known)
		}
		return true
	})
}

func (m *meaning) changes(verb string, v *pg.RangeVar) {
	m.write(v)
	if m.wrote == "" {
		m.wrote = verb
	}
}

// query gives the meaning of a statement that reads or changes tables.
func (m *meaning) query(verb string, n proto.Message) {
	m.walk(n.ProtoReflect(), nil)
	switch {
	case verb != "SELECT":
		m.verb, m.kind = verb, "write"
	case m.wrote != "":
		m.verb, m.kind = m.wrote, "write"
	case len(m.tables) > 0:
		m.verb, m.kind = verb, "read"
	default:
		m.verb = verb
	}
}

// meaningOf gives the meaning of a statement of any kind.
func meaningOf(n *pg.Node) *meaning {
	m := &meaning{}
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt:
		m.query("SELECT", s.SelectStmt)
	case *pg.Node_InsertStmt:
		m.query("INSERT", s.InsertStmt)
	case *pg.Node_UpdateStmt:
		m.query("UPDATE", s.UpdateStmt)
	case *pg.Node_DeleteStmt:
		m.query("DELETE", s.DeleteStmt)
	case *pg.Node_MergeStmt:
		m.query("MERGE", s.MergeStmt)
	case *pg.Node_ExplainStmt:
		m.explain(s.ExplainStmt)
	case *pg.Node_CreateTableAsStmt:
		m.verb, m.kind = "CREATE", "write"
		m.write(s.CreateTableAsStmt.Into.Rel)
		m.walk(s.CreateTableAsStmt.Query.ProtoReflect(), nil)
	case *pg.Node_CopyStmt:
		m.copies(s.CopyStmt)
	case *pg.Node_DeclareCursorStmt:
		m.verb = "DECLARE"
		m.walk(s.DeclareCursorStmt.Query.ProtoReflect(), nil)
	case *pg.Node_TransactionStmt:
		m.transaction(s.TransactionStmt)
	default:
		m.utility(n)
	}
	m.sort()
	return m
}

func (m *meaning) explain(s *pg.ExplainStmt) {
	inner := meaningOf(s.Query)
	*m = meaning{verb: "EXPLAIN", tables: inner.tables, writes: inner.writes}
	analyze := false
	for _, o := range s.Options {
		d := o.GetDefElem()
		if d.Defname != "analyze" {
			continue
		}
		off := d.Arg != nil && (d.Arg.GetInteger() != nil && d.Arg.GetInteger().Ival == 0 ||
			d.Arg.GetString_() != nil && (d.Arg.GetString_().Sval == "false" || d.Arg.GetString_().Sval == "off"))
		analyze = !off
	}
	if analyze && inner.kind == "write" {
		m.verb, m.kind = inner.verb, "write"
	}
}

func (m *meaning) copies(s *pg.CopyStmt) {
	m.verb = "COPY"
	if s.Query != nil {
		inner := meaningOf(s.Query)
		m.tables, m.writes = inner.tables, inner.writes
		if inner.kind == "write" {
			m.verb, m.kind = inner.verb, "write"
		}
	} else if s.IsFrom {
		m.kind = "write"
		m.write(s.Relation)
	} else {
		m.read(s.Relation, nil)
	}
}

func (m *meaning) transaction(s *pg.TransactionStmt) {
	switch s.Kind {
	case pg.TransactionStmtKind_TRANS_STMT_BEGIN, pg.TransactionStmtKind_TRANS_STMT_START:
		m.kind = "begin"
	case pg.TransactionStmtKind_TRANS_STMT_COMMIT, pg.TransactionStmtKind_TRANS_STMT_PREPARE:
		m.kind = "commit"
	case pg.TransactionStmtKind_TRANS_STMT_ROLLBACK, pg.TransactionStmtKind_TRANS_STMT_ROLLBACK_TO:
		m.kind = "rollback"
	case pg.TransactionStmtKind_TRANS_STMT_SAVEPOINT:
		m.verb = "SAVEPOINT"
	case pg.TransactionStmtKind_TRANS_STMT_RELEASE:
		m.verb = "RELEASE"
	}
}
