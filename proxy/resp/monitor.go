package resp

import "bytes"

// A Command is a command that a server has run, as a line of MONITOR shows it.
type Command struct {
	At   int64    // when, by the server's clock, Unix microseconds
	DB   int      // the database that was selected
	Addr string   // the client's address, or what stands there for a script
	Args [][]byte // the name first
}

// Inner reports whether a script or a function has run the command. Such lines
// follow that of the call, and no other comes between them.
func (c *Command) Inner() bool { return c.Addr == "lua" }

// ParseCommand reads a line of MONITOR, without the sign and the line's end that
// frame it:
//
//	1339518083.107412 [0 127.0.0.1:60866] "set" "key" "a\r\n\x01"
//
// Nothing of line is kept.
func ParseCommand(line []byte) (Command, bool) {
	var c Command
	at, rest, _ := bytes.Cut(line, []byte(" ["))
	head, rest, ok := bytes.Cut(rest, []byte("] \""))
	db, addr, _ := bytes.Cut(head, []byte{' '})
	n, numeric := parseInt(db)
	if !ok || !numeric || n < 0 || n > maxCount || !c.readTime(at) {
		return Command{}, false
	}
	c.DB, c.Addr = int(n), string(addr)
	if !c.readArgs(bytes.Clone(line[len(line)-len(rest)-1:])) {
		return Command{}, false
	}
	return c, true
}

// readTime reads seconds with six decimals.
func (c *Command) readTime(b []byte) bool {
	whole, fraction, ok := bytes.Cut(b, []byte{'.'})
	seconds, ok1 := parseInt(whole)
	micros, ok2 := parseInt(fraction)
	c.At = seconds*1e6 + micros
	return ok && ok1 && ok2 && len(fraction) == 6 && len(whole) <= 12 && seconds >= 0 && micros >= 0
}

// readArgs reads arguments that are quoted and separated by a space each. It
// unquotes them where they are.
func (c *Command) readArgs(b []byte) bool {
	in, out := 0, 0
	for in < len(b) && b[in] == '"' {
		start := out
		var ok bool
		if in, out, ok = splitQuoted(b, in+1, out, '"'); !ok {
			return false
		}
		c.Args = append(c.Args, b[start:out:out])
		if in == len(b) {
			return true
		}
		if b[in] != ' ' {
			return false
		}
		in++
	}
	return false
}
