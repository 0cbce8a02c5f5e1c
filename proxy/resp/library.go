package resp

import "slices"

// learnLibrary takes in the text of a library of functions, and classifies each as
// a script of its own.
func (s *Scripts) learnLibrary(text []byte) {
	toks, ok := tokenize(text)
	if !ok {
		return
	}
	bodies := functionBodies(toks)
	for i := range toks {
		if name, body, ok := registered(toks[i:], bodies); ok {
			p := classifyTokens(body)
			p.bytes = p.cost() + len(name)
			p.purpose = purposeOfTokens(body)
			s.mu.Lock()
			s.addFunction(name, p)
			s.mu.Unlock()
		}
	}
}

// function returns what the function of that name does; nil if its text is not
// known.
func (s *Scripts) function(name []byte) *program {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.functions[string(name)]
}

// addFunction forgets all of them when there are too many.
func (s *Scripts) addFunction(name string, p *program) {
	if s.functions == nil || len(s.functions) >= maxScripts || s.functionBytes+p.bytes > maxScriptBytes {
		s.functions, s.functionBytes = map[string]*program{}, 0
	}
	s.functions[name] = p
	s.functionBytes += p.bytes
}

// functionBodies finds the functions that have names: their parameters and what
// follows, to the end.
func functionBodies(toks []token) map[string][]token {
	bodies := map[string][]token{}
	for i, t := range toks {
		switch {
		case !t.isWord("function"):
		case i+1 < len(toks) && toks[i+1].kind == word:
			bodies[toks[i+1].text] = body(toks[i+2:])
		case i > 1 && toks[i-1].isSymbol("=") && toks[i-2].kind == word:
			bodies[toks[i-2].text] = body(toks[i+1:])
		}
	}
	return bodies
}

// registered reads register_function('name', f) and its form with a table, where
// f is a function or the name of one.
func registered(toks []token, bodies map[string][]token) (name string, out []token, ok bool) {
	if !toks[0].isWord("register_function") || len(toks) < 4 {
		return "", nil, false
	}
	end := min(len(toks), 40)
	for i := 1; i < end; i++ {
		switch t := toks[i]; {
		case t.kind == literal && name == "":
			name = t.text
		case t.isWord("function"):
			return name, body(toks[i+1:]), name != ""
		case t.kind == word && bodies[t.text] != nil:
			return name, bodies[t.text], name != ""
		}
	}
	return "", nil, false
}

// body makes a script of a function whose parameters begin there; nil if it does
// not end.
func body(toks []token) []token {
	var params []string
	i := 0
	for ; i < len(toks) && !toks[i].isSymbol(")"); i++ {
		if toks[i].kind == word {
			params = append(params, toks[i].text)
		}
	}
	var out []token
	depth := 1
	for i++; i < len(toks); i++ {
		t := toks[i]
		switch {
		case t.isWord("function"), t.isWord("if"), t.isWord("do"), t.isWord("repeat"):
			depth++
		case t.isWord("end"), t.isWord("until"):
			depth--
		case t.kind == word:
			t.text = global(t.text, params)
		}
		if depth == 0 {
			return out
		}
		out = append(out, t)
	}
	return nil
}

// global returns the name that a script has for a parameter.
func global(name string, params []string) string {
	switch slices.Index(params, name) {
	case 0:
		return "KEYS"
	case 1:
		return "ARGV"
	}
	return name
}

func (t token) isWord(text string) bool   { return t.kind == word && t.text == text }
func (t token) isSymbol(text string) bool { return t.kind == symbol && t.text == text }
