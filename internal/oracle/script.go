package main

import (
	"bufio"
	"bytes"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// A statement is one of a script, as psql would send it.
type statement struct {
	file    string
	ordinal int // in its file, from 1
	text    string
	tree    *pg.RawStmt
}

// statements cuts a script for psql into the statements that Postgres's own
// grammar accepts. Lines for psql itself and the data of COPY are left out.
// refused counts the pieces that the grammar does not accept: tests of syntax
// errors, and statements with psql's variables in them.
func statements(file string, script []byte) (list []statement, refused int) {
	var piece strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(script))
	lines.Buffer(nil, 1<<20)
	data := false
	for n := 0; lines.Scan(); {
		line := lines.Text()
		switch {
		case data:
			data = line != `\.`
			continue
		case strings.HasPrefix(line, `\`) && closed(piece.String()):
			piece.Reset()
			continue
		}
		line, ends := command(line)
		piece.WriteString(line + "\n")
		text := piece.String()
		if !ends && !strings.Contains(line, ";") || !whole(text) {
			continue
		}
		piece.Reset()
		tree, err := pg.Parse(text)
		if err != nil {
			refused++
			continue
		}
		for _, s := range tree.Stmts {
			n++
			list = append(list, statement{file, n, cut(text, s), s})
			data = data || fromStdin(s)
		}
	}
	return list, refused
}

// closed reports whether psql would read a line behind text as one for
// itself: not within quotes or a comment.
func closed(text string) bool {
	_, err := pg.Scan(text)
	return err == nil
}

// command takes psql's own commands from the end of a line, such as \gset,
// which end a statement as a semicolon does.
func command(line string) (string, bool) {
	for _, c := range []string{`\gset`, `\gexec`, `\gdesc`, `\gx`, `\g`, `\crosstabview`, `\parse`, `\bind`} {
		if i := strings.Index(line, c); i >= 0 {
			return line[:i] + ";", true
		}
	}
	return line, false
}

// whole reports whether a piece ends with a statement: the last token is a
// semicolon outside all parentheses. One that Postgres's lexer refuses for
// another reason than an open quote is whole as well.
func whole(text string) bool {
	scan, err := pg.Scan(text)
	if err != nil {
		return !strings.Contains(err.Error(), "unterminated")
	}
	depth, atomic, cases := 0, false, 0
	last := pg.Token_NUL
	for _, t := range scan.Tokens {
		switch t.Token {
		case pg.Token_SQL_COMMENT, pg.Token_C_COMMENT:
			continue
		case pg.Token_ASCII_40:
			depth++
		case pg.Token_ASCII_41:
			depth--
		case pg.Token_ATOMIC:
			atomic = true
		case pg.Token_CASE:
			cases++
		case pg.Token_END_P:
			if cases > 0 {
				cases--
			} else {
				atomic = false
			}
		}
		last = t.Token
	}
	return last == pg.Token_ASCII_59 && depth <= 0 && !atomic
}

func cut(text string, s *pg.RawStmt) string {
	from, to := int(s.StmtLocation), len(text)
	if s.StmtLen > 0 {
		to = from + int(s.StmtLen)
	}
	return text[from:to]
}

func fromStdin(s *pg.RawStmt) bool {
	c := s.Stmt.GetCopyStmt()
	return c != nil && c.IsFrom && c.Filename == "" && !c.IsProgram
}
