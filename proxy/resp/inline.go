package resp

// splitInline splits an inline request as the server does, unquoting in place,
// and appends where its arguments are. It reports whether the quotes balance.
func splitInline(line []byte, args []argument) ([]argument, bool) {
	in, out := 0, 0
	for {
		for in < len(line) && isSpace(line[in]) {
			in++
		}
		if in == len(line) {
			return args, true
		}
		a := argument{off: int32(out)}
		var ok bool
		in, out, ok = splitWord(line, in, out)
		if !ok {
			return args, false
		}
		a.len = int32(out) - a.off
		if len(args) < maxArgs {
			args = append(args, a)
		}
	}
}

// splitWord moves the word at in to out, which is never ahead of it.
func splitWord(line []byte, in, out int) (int, int, bool) {
	for in < len(line) && !isSpace(line[in]) {
		switch c := line[in]; c {
		case '"', '\'':
			var ok bool
			if in, out, ok = splitQuoted(line, in+1, out, c); !ok {
				return in, out, false
			}
			return in, out, in == len(line) || isSpace(line[in])
		default:
			line[out] = c
			in, out = in+1, out+1
		}
	}
	return in, out, true
}

func splitQuoted(line []byte, in, out int, quote byte) (int, int, bool) {
	for in < len(line) {
		c := line[in]
		if c == quote {
			return in + 1, out, true
		}
		n := 1
		if c == '\\' {
			c, n = escape(line[in:], quote)
		}
		line[out] = c
		in, out = in+n, out+1
	}
	return in, out, false
}

// escape reads the backslash sequence at the front of b.
func escape(b []byte, quote byte) (byte, int) {
	if quote == '\'' {
		if len(b) > 1 && b[1] == '\'' {
			return '\'', 2
		}
		return '\\', 1
	}
	if len(b) > 3 && b[1] == 'x' && isHex(b[2]) && isHex(b[3]) {
		return hexDigit(b[2])<<4 | hexDigit(b[3]), 4
	}
	if len(b) < 2 {
		return '\\', 1
	}
	switch b[1] {
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'b':
		return '\b', 2
	case 'a':
		return '\a', 2
	}
	return b[1], 2
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool { return hexDigit(c) < 16 }

func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}
