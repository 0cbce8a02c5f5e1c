package resp

// A Call is a request whose effect only a witness can tell for sure: EVAL,
// EVALSHA, FCALL or one of their kin. Its fields must not be changed.
type Call struct {
	Session uint64
	DB      int      // selected, if every SELECT before it succeeds; the script may select another
	Verb    string   // as Op.Verb
	Script  string   // its sha1 in hexadecimal and lower case; of a function its name, behind a slash
	Keys    [][]byte // KEYS and ARGV: nil stands for one that was too long to be kept
	Args    [][]byte
	Partial bool // there are more of them
}
