package pgwire

import (
	"slices"
	"strings"
)

// A move is what a statement does to the way in which its session finds tables that
// are named without a schema.
type move struct {
	of    moved
	path  value // for what it sets the path to
	plain bool  // to the default one
	user  bool  // the path names "$user"
	temps []string
}

// moved says for how long a move sets the path.
type moved uint8

const (
	moveNone    moved = iota // it does not set it
	moveTx                   // to the end of the transaction
	moveSession              // in the session
	moveStart                // likewise, as the session was when it began
	moveUnsure               // that, or what it sets, is not known
)

const searchPath = "search_path"

// setPath reads what follows SET search_path.
func (t *template) setPath(p *parser, of moved) {
	if !p.op("=") {
		p.word("TO")
	}
	if p.tok.word("DEFAULT") {
		if of == moveSession {
			of = moveStart
		} else {
			of = moveUnsure
		}
		t.move = &move{of: of}
		return
	}
	var schemas []string
	for !p.end() {
		if name := p.identifier(); name != "" {
			schemas = append(schemas, name)
		} else if v, ok := p.operand(); ok && v.known {
			schemas = append(schemas, v.text)
		} else {
			t.move = &move{of: moveUnsure}
			return
		}
		if !p.op(",") {
			break
		}
	}
	t.move = moveTo(of, schemas)
}

// moveTo is a move to a path of some schemas.
func moveTo(of moved, schemas []string) *move {
	schemas = slices.DeleteFunc(schemas, func(s string) bool { return s == "" })
	text := strings.Join(schemas, "\x00")
	return &move{
		of: of, path: value{known: true, text: text}, user: slices.Contains(schemas, "$user"),
		plain: text == "public" || text == "$user\x00public",
	}
}

// schemasOf takes the text of a path apart, as the server does.
func schemasOf(text string) []string {
	var out []string
	p := &parser{lex: lexer{src: text}}
	for p.advance(); p.tok.kind != tokEnd; p.op(",") {
		name := ""
		for p.tok.kind != tokEnd && !p.tok.op(",") { // $user is no identifier without quotes
			if id := p.identifier(); id != "" {
				name += id
			} else {
				name += p.tok.text
				p.advance()
			}
		}
		out = append(out, strings.Clone(name))
	}
	return out
}

// finds notes what a statement does to the path beside being SET: by set_config, and by
// tables that only its session sees.
func (t *template) finds(o *outline, src string) {
	if o.configures && t.effect != prepare {
		t.configures(src)
	}
	if o.temporary && t.effect != prepare {
		t.temporaries(src)
	}
}

// configures looks for calls of set_config.
func (t *template) configures(src string) {
	p := &parser{lex: lexer{src: src}}
	for p.advance(); p.tok.kind != tokEnd; {
		if name := p.tok; isSetConfig(name) {
			if p.advance(); p.op("(") {
				t.configure(p)
			}
			continue
		}
		p.advance()
	}
}

func isSetConfig(t token) bool { return t.word("SET_CONFIG") || t.text == `"set_config"` }

// configure reads the arguments of a set_config.
func (t *template) configure(p *parser) {
	of := moveUnsure
	name, ok := p.operand()
	if ok && name.known && !strings.EqualFold(name.text, searchPath) {
		return
	}
	p.op(",")
	path, told := p.operand()
	p.op(",")
	local, said := p.operand()
	switch {
	case !ok || !name.known || !told || !said || t.move != nil:
	case local.says == 't':
		of = moveTx
	case local.says == 'f':
		of = moveSession
	}
	if t.move = (&move{of: of, path: path, user: true}); path.known {
		t.move = moveTo(of, schemasOf(path.text))
	}
}

// maxTemps bounds the temporary tables of one statement that are told.
const maxTemps = 8

// temporaries looks for what a statement makes for its session alone: behind TEMP in a
// CREATE or an INTO, or in the schema of those.
func (t *template) temporaries(src string) {
	p := &parser{lex: lexer{src: src}}
	makes := false
	for p.advance(); p.tok.kind != tokEnd; {
		switch {
		case p.word("CREATE"), p.word("INTO"):
			makes = true
		case makes && (p.word("TEMP") || p.word("TEMPORARY")):
			makes = false
			t.temporary(p)
		case makes && p.word("pg_temp"):
			if p.op(".") {
				t.temporary(p)
			}
		default:
			p.advance()
		}
	}
}

func (t *template) temporary(p *parser) {
	for p.any("RECURSIVE", "TABLE", "VIEW", "SEQUENCE", "IF", "NOT", "EXISTS") {
		p.advance()
	}
	name := p.identifier()
	for p.op(".") {
		name = p.identifier()
	}
	if t.move == nil {
		t.move = &move{}
	}
	if name != "" && len(t.move.temps) < maxTemps {
		t.move.temps = append(t.move.temps, strings.Clone(name))
	}
}

// minds notes a word that has to do with the path, or with temporary tables.
func (o *outline) minds(t token) {
	switch len(t.text) {
	case len("set_config"), len(`"set_config"`):
		o.configures = o.configures || isSetConfig(t)
	case len("temp"), len("temporary"), len("pg_temp"):
		o.temporary = o.temporary || t.word("TEMP") || t.word("TEMPORARY") || t.word("PG_TEMP")
	}
}
