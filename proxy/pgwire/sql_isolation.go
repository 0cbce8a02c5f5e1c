package pgwire

import "strings"

// isolation is what a statement says about the isolation of transactions.
type isolation struct {
	of       isolated
	snapshot bool // REPEATABLE READ or SERIALIZABLE
}

// isolated says of which transactions.
type isolated uint8

const (
	ofNone    isolated = iota
	ofTx               // the one that it is in, or begins
	ofSession          // those that begin later in the session
	ofStart            // likewise, as the session was when it began
)

// defaultIsolation is the setting for transactions that say nothing themselves.
const defaultIsolation = "default_transaction_isolation"

// sets reads what follows SET: only the isolation matters.
func (p *parser) sets(t *template) {
	switch {
	case p.word("TRANSACTION"):
		t.isolate(p, ofTx)
		return
	case p.words("SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"):
		t.isolate(p, ofSession)
		return
	case p.words("LOCAL"):
		t.setting(p, ofTx)
		return
	}
	p.word("SESSION")
	t.setting(p, ofSession)
}

// isolate reads the modes of a transaction.
func (t *template) isolate(p *parser, of isolated) {
	for !p.end() {
		if !p.words("ISOLATION", "LEVEL") {
			p.step()
			continue
		}
		t.iso = isolation{of, p.any("REPEATABLE", "SERIALIZABLE")}
	}
	if t.iso.of != ofNone && t.kind == "" {
		t.effect = isolate
	}
}

// setting reads name = value.
func (t *template) setting(p *parser, of isolated) {
	name := p.identifier()
	if name == searchPath || name == "schema" && p.tok.kind == tokString {
		until := moveSession
		if of == ofTx {
			until = moveTx
		}
		t.setPath(p, until)
		return
	}
	if name != defaultIsolation && name != "transaction_isolation" {
		return
	}
	if !p.op("=") {
		p.word("TO")
	}
	if name == "transaction_isolation" {
		of = ofTx
	} else if of == ofTx {
		return // a default for this transaction, which has begun
	}
	t.effect, t.iso = isolate, isolation{of, snapshots(p.setTo())}
	if p.prev.word("DEFAULT") {
		t.iso.of = ofStart
	}
}

// setTo takes the value of a setting.
func (p *parser) setTo() string {
	text := strings.Trim(p.tok.text, `'"`)
	p.advance()
	return text
}

// snapshots reports whether a level of isolation has every statement read as of
// the first.
func snapshots(level string) bool {
	return strings.EqualFold(level, "repeatable read") || strings.EqualFold(level, "serializable")
}

// resets reads what follows RESET.
func (p *parser) resets(t *template) {
	all := p.word("ALL")
	name := p.identifier()
	if all || name == searchPath {
		t.move = &move{of: moveStart}
	}
	if all || name == defaultIsolation {
		t.effect, t.iso = isolate, isolation{of: ofStart}
	}
}

// isolate follows a statement that says how transactions are isolated.
func (x *transactions) isolate(iso isolation) {
	switch iso.of {
	case ofTx:
		if x.current != 0 && x.explicit {
			x.snapshot = iso.snapshot
		}
	case ofSession:
		x.snapshots = iso.snapshot
	case ofStart:
		x.snapshots = x.started
	}
}

// startsWith takes the default of a session from its startup message: as a
// parameter, or among the options of a command line.
func (x *transactions) startsWith(parameters []byte) {
	x.started = snapshots(parameter(parameters, defaultIsolation))
	if _, value, found := strings.Cut(parameter(parameters, "options"), defaultIsolation+"="); found {
		value = strings.ReplaceAll(value, `\ `, " ")
		x.started = strings.HasPrefix(value, "serializable") || strings.HasPrefix(value, "repeatable read")
	}
	x.snapshots = x.started
}
