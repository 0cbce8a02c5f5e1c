package pgwire

import "github.com/lockfaultd/lockfaultd/lock"

// transaction reads the statements that begin and end transactions. Their verb
// has been passed already.
func (p *parser) transaction(t *template) {
	switch t.verb {
	case "BEGIN", "START":
		t.kind = lock.Begin
		t.isolate(p, ofTx)
		return
	case "COMMIT", "END":
		t.kind = lock.Commit
	default:
		t.kind = lock.Rollback
	}
	if p.word("PREPARED") {
		t.kind = "" // another session's transaction
		return
	}
	if !p.word("WORK") {
		p.word("TRANSACTION")
	}
	if t.savepoint = p.word("TO"); t.savepoint {
		p.word("SAVEPOINT")
		t.name = p.identifier()
	}
	t.chain = p.words("AND", "CHAIN")
}

// savepoints reads what follows SAVEPOINT or RELEASE.
func (p *parser) savepoints(t *template) {
	t.effect = setPoint
	if t.verb == "RELEASE" {
		t.effect = releasePoint
		p.word("SAVEPOINT")
	}
	t.name = p.identifier()
}

// prepared reads the statements about prepared statements.
func (p *parser) prepared(t *template) {
	switch t.verb {
	case "PREPARE":
		p.prepares(t)
	case "EXECUTE":
		t.effect, t.name = run, p.identifier()
		if p.op("(") {
			t.args = arguments(p.list())
		}
	case "DISCARD":
		if p.word("ALL") {
			t.effect = clearAll
			t.holds = []hold{{kind: lock.Release, verb: t.verb, span: lock.SessionSpan, all: true, cell: none}}
		}
	case "DEALLOCATE":
		p.word("PREPARE")
		if p.word("ALL") {
			t.effect = clearAll
			return
		}
		t.effect, t.name = deallocate, p.identifier()
	}
}

func (p *parser) prepares(t *template) {
	if p.word("TRANSACTION") {
		t.kind, t.twoPhase = lock.Commit, true
		return
	}
	name := p.identifier()
	if p.tok.op("(") {
		p.brackets()
	}
	if name == "" || !p.word("AS") {
		return
	}
	t.effect, t.name = prepare, name // the rest is another statement
}

func arguments(values []value) []slot {
	var out []slot
	for _, v := range values {
		out = append(out, slot{value: v})
	}
	return out
}

// copies reads what follows COPY. COPY FROM writes; what it writes is not
// looked at.
func (p *parser) copies(t *template) {
	if p.tok.op("(") {
		return
	}
	name := p.table()
	if p.tok.op("(") {
		p.brackets()
	}
	if p.word("FROM") {
		t.kind, t.shape.Table, t.shape.Opaque = lock.Write, name, true
	}
}
