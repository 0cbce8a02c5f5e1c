package pgwire

import "strings"

// secret reports whether a text may hold a password or another secret, so that
// nothing of it is to be kept: a statement about roles, servers, subscriptions
// or the server's settings, or any that has a string and speaks of a secret.
func secret(text string) bool {
	var s surveyor
	s.start(text)
	for s.found() {
		if s.administers() || s.tells() {
			return true
		}
	}
	return false
}

// administers takes the first words of a statement, and reports whether they
// are those of one that is given passwords.
func (s *surveyor) administers() bool {
	if s.kw != kwCreate && s.kw != kwAlter {
		return false
	}
	s.next()
	for _, object := range []string{"ROLE", "USER", "GROUP", "SERVER", "SUBSCRIPTION", "SYSTEM", "FOREIGN", "DATABASE"} {
		if s.is(object) {
			return true
		}
	}
	return false
}

// tells goes to the end of a statement and reports whether it has both a word
// that secrets are called by and a string, or a string with such a word.
func (s *surveyor) tells() bool {
	word, text := false, false
	for ; s.tok.kind != tokEnd && !s.tok.op(";"); s.next() {
		text = text || s.tok.kind == tokString
		word = word || s.tok.kind <= tokString && sensitive(s.tok.text)
	}
	return word && text
}

// stems are how the words begin that secrets are called by.
var stems = []string{"passw", "passphrase", "passfile", "private_key", "pgp_sym", "secret", "scram-sha", "token", "credential", "crypt", "apikey", "api_key", "access_key"}

// secretWords are those of them that are too short to look for inside others.
var secretWords = []string{"pwd", "pw", "pin", "otp"}

// sensitive reports whether one of the stems is in a text, or one of the words
// by itself, in any case.
func sensitive(text string) bool {
	from := 0
	for i := range len(text) {
		if !isLetter(text[i]) || text[i] == '_' {
			from = i + 1
		} else if i+1 == len(text) || !isLetter(text[i+1]) || text[i+1] == '_' {
			if secretWord(text[from : i+1]) {
				return true
			}
		}
		for _, stem := range stems {
			if text[i]|0x20 == stem[0] && len(text)-i >= len(stem) && strings.EqualFold(text[i:i+len(stem)], stem) {
				return true
			}
		}
	}
	return false
}

func secretWord(s string) bool {
	for _, w := range secretWords {
		if len(s) == len(w) && strings.EqualFold(s, w) {
			return true
		}
	}
	return false
}
