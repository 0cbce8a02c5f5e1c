package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// An Error is the first thing that is wrong in a file.
type Error struct {
	File    string
	Line    int // from 1
	Column  int // from 1, in characters
	Reason  string
	Excerpt string // the line and those before it, numbered, with a mark below the column
}

// Short is the error without the lines that it is about.
func (e *Error) Short() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

func (e *Error) Error() string {
	s := e.Short()
	if e.Excerpt != "" {
		s += "\n" + e.Excerpt
	}
	return s
}

// A reader goes through a file. Its error is sticky: after the first one every
// method gives a zero value, so that the callers need not ask.
type reader struct {
	name, text string
	err        error
	taken      []string // names of invariants
}

// fail keeps the first error, at the place where n begins.
func (r *reader) fail(n ast.Node, format string, args ...any) {
	r.failAt(start(n), format, args...)
}

func (r *reader) failAt(t *token.Token, format string, args ...any) {
	if r.err == nil {
		r.err = r.errorAt(t, fmt.Sprintf(format, args...))
	}
}

func (r *reader) errorAt(t *token.Token, reason string) *Error {
	e := &Error{File: r.name, Line: 1, Column: 1, Reason: reason}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	e.Excerpt = excerpt(r.text, e.Line, e.Column)
	return e
}

// hide keeps what may be a password in s out of the lines that an error shows.
func (r *reader) hide(s string) {
	var e *Error
	if errors.As(r.err, &e) {
		e.Excerpt = strings.ReplaceAll(e.Excerpt, s, WithoutSecrets(s))
	}
}

// start is a node's first token. A block mapping's own is its first colon.
func start(n ast.Node) *token.Token {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return start(n.Values[0])
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

func excerpt(text string, line, column int) string {
	lines := strings.Split(text, "\n")
	if line > len(lines) {
		return ""
	}
	var b strings.Builder
	for i := max(line-2, 1); i <= line; i++ {
		fmt.Fprintf(&b, "%5d | %s\n", i, strings.TrimRight(lines[i-1], "\r"))
	}
	b.WriteString(strings.Repeat(" ", 8+max(column-1, 0)) + "^")
	return b.String()
}

// root parses the text and returns the only document's content.
func (r *reader) root() ast.Node {
	file, err := parser.ParseBytes([]byte(r.text), 0)
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) {
			r.failAt(e.GetToken(), "%s", e.GetMessage())
		} else {
			r.failAt(nil, "%s", err)
		}
		return nil
	}
	docs := slices.DeleteFunc(file.Docs, func(d *ast.DocumentNode) bool { return d.Body == nil })
	switch {
	case len(docs) == 0:
		r.failAt(nil, "the file is empty, expected version: 1")
		return nil
	case len(docs) > 1:
		r.fail(docs[1].Body, "a second document begins here, expected one")
	}
	return docs[0].Body
}

// A mapping is a YAML mapping with known fields.
type mapping struct {
	node    ast.Node
	entries []entry
}

type entry struct {
	name  string
	key   ast.Node
	value ast.Node
}

// get returns a field's value, nil if it is absent.
func (m mapping) get(name string) ast.Node {
	for _, e := range m.entries {
		if e.name == name {
			return e.value
		}
	}
	return nil
}

// mapping reads a mapping of the given fields and no others.
func (r *reader) mapping(n ast.Node, fields ...string) mapping {
	m := mapping{node: n, entries: r.entries(n)}
	if n == nil {
		r.failAt(nil, "expected a mapping with the fields %s", strings.Join(fields, ", "))
	}
	for _, e := range m.entries {
		if !slices.Contains(fields, e.name) {
			r.fail(e.key, "unknown field %s, expected one of %s", show(e.name), strings.Join(fields, ", "))
		}
	}
	return m
}

// need returns a field's value and fails if it is absent.
func (r *reader) need(m mapping, name string) ast.Node {
	n := m.get(name)
	if n == nil {
		r.fail(m.node, "the field %s is missing", name)
	}
	return n
}

// entries reads a mapping of any names.
func (r *reader) entries(n ast.Node) []entry {
	if n == nil || r.err != nil {
		return nil
	}
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.fail(n, "expected a mapping, found %s", kind(n))
	}
	var all []entry
	for _, v := range values {
		name := r.scalar(v.Key)
		if slices.ContainsFunc(all, func(e entry) bool { return e.name == name }) {
			r.fail(v.Key, "the field %s is given twice", show(name))
		}
		all = append(all, entry{name, v.Key, v.Value})
	}
	return all
}

// items reads a list; an absent one is empty.
func (r *reader) items(n ast.Node) []ast.Node {
	if n == nil || r.err != nil {
		return nil
	}
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, "expected a list, found %s", kind(n))
		return nil
	}
	return s.Values
}

// scalar reads a text or a number, as it is written.
func (r *reader) scalar(n ast.Node) string {
	switch n := n.(type) {
	case nil:
		return ""
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	}
	r.fail(n, "expected a text or a number, found %s", kind(n))
	return ""
}

// oneOf reads one of a few words.
func (r *reader) oneOf(n ast.Node, words ...string) string {
	s := r.scalar(n)
	if n != nil && !slices.Contains(words, s) {
		r.fail(n, "expected one of %s, found %s", strings.Join(words, ", "), show(s))
	}
	return s
}

func kind(n ast.Node) string {
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.NullType:
		return "nothing"
	case ast.AnchorType, ast.AliasType, ast.MergeKeyType:
		return "an anchor or alias, which are not read here"
	case ast.TagType:
		return "a tag, which is not read here"
	}
	return "a value"
}
