package pgwire

import "testing"

// What a name stands for is what upstream says, whatever became of the requests
// that gave it and took it.
func TestNamesWhereRequestsFail(t *testing.T) {
	const insert = "INSERT INTO a (id) VALUES (1)"
	const update = "UPDATE b SET x = 1 WHERE id = 1"
	run := fe{b("", "s"), e(""), syn}
	ran := be{boundOK, c("UPDATE 1"), z('I')}
	for _, tt := range []struct {
		name   string
		script []any
		want   string
	}{
		{"a Parse behind one that is skipped", []any{
			fe{p("", "selec"), p("s", insert), syn, p("s", update), b("", "s"), e(""), syn},
			be{bad("42601"), z('I'), parsed, boundOK, c("UPDATE 1"), z('I')},
			run, ran}, lines(`
			ask UPDATE b write tx1i [PBE]
			got UPDATE done rows=1 [12C]
			end UPDATE done [Z]
			ask UPDATE b write tx2i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)},
		{"a Parse behind one that fails", []any{
			fe{p("s", update), syn, p("s", update), syn}, be{bad("57014"), z('I'), parsed, z('I')},
			run, ran}, lines(`
			ask UPDATE b write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)},
		{"one of two texts", []any{
			fe{p("s", insert), syn, p("s", update), syn}, run,
			be{bad("57014"), z('I'), parsed, z('I')}, ran,
			run, ran}, lines(`
			ask UPDATE b write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)},
		{"a name that upstream had lost, used at once", []any{
			fe{p("s", insert), syn}, be{parsed, z('I')},
			fe{p("s", update), b("", "s"), e(""), syn}, be{parsed, boundOK, c("UPDATE 1"), z('I')}}, lines(`
			ask UPDATE b write tx1i [PBE]
			got UPDATE done rows=1 [12C]
			end UPDATE done [Z]`)},
		{"a Close that is skipped", []any{
			fe{p("s", update), syn}, be{parsed, z('I')},
			fe{p("", "selec"), cs("s"), syn, p("s", insert), syn}, be{bad("42601"), z('I'), bad("42P05"), z('I')},
			run, ran}, lines(`
			ask UPDATE b write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)},
		{"a Close, and the name again", []any{
			fe{p("s", insert), syn}, be{parsed, z('I')},
			fe{cs("s"), p("s", update), syn}, run, be{closed, parsed, z('I')}, ran}, lines(`
			ask UPDATE b write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)},
		{"an unnamed Parse that is skipped", []any{
			fe{p("", update), syn}, be{parsed, z('I')},
			fe{b("", "nosuch"), p("", insert), syn}, be{bad("26000"), z('I')},
			fe{b("", ""), e(""), syn}, ran}, lines(`
			ask UPDATE b write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)},
		{"an unnamed Parse that fails", []any{
			fe{p("", update), syn}, be{parsed, z('I')},
			fe{p("", insert), syn}, be{bad("42P01"), z('I')},
			fe{b("", ""), e(""), syn}, be{bad("26000"), z('I')}}, ""},
		{"DISCARD ALL that is skipped", []any{
			fe{p("s", update), syn}, be{parsed, z('I')},
			fe{b("", "nosuch"), p("", "discard all"), b("", ""), e(""), syn}, be{bad("26000"), z('I')},
			run, ran}, lines(`
			ask UPDATE b write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)},
		{"DISCARD ALL", []any{
			fe{p("s", update), syn}, be{parsed, z('I')},
			fe{q("discard all")}, run, be{c("DISCARD ALL"), z('I'), bad("26000"), z('I')}}, ""},
		{"DEALLOCATE behind what fails", []any{
			fe{p("s", update), syn}, be{parsed, z('I')},
			fe{q("select nosuch; deallocate s")}, be{bad("42703"), z('I')},
			run, ran}, lines(`
			ask UPDATE b write tx1i [BE]
			got UPDATE done rows=1 [2C]
			end UPDATE done [Z]`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2], tt.script...)), 0)
			if got := pl.text(); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if tr := pl.tracker; len(tr.changes) > 0 || tr.forgets != 0 || tr.phase != running {
				t.Errorf("%d changes are left, %d of all names", len(tr.changes), tr.forgets)
			}
		})
	}
}

// A name that was given before all were given up stands for nothing, even while
// neither was answered.
func TestNamesBehindDiscardAll(t *testing.T) {
	tr := newTracker()
	newPlayer(t, tr).play(encode(t, started), 0)
	marks, _ := tr.Client(enc(t, fe{p("s", sqlWrite), syn, q("discard all"), b("", "s", "1", "1"), e(""), syn}), nil)
	if len(marks) != 0 {
		t.Errorf("%+v", marks)
	}
}
