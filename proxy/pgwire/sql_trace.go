package pgwire

import (
	"bytes"
	"strings"
)

// maxTrace is how long a trace's id may be.
const maxTrace = 64

// traceOf returns the id of the trace that a comment at either end of a text
// names, "" if none does: as sqlcommenter writes it (traceparent='00-ID-..'), or
// marginalia and kin (trace_id:ID, request_id:ID).
func traceOf(text []byte) string {
	_, front, back := commented(text)
	for _, c := range [][]byte{back, front} {
		if id := traceIn(c); id != "" {
			return id
		}
	}
	return ""
}

// commented parts a text from a comment before it and one behind it. Those it
// leaves where there may be more to it: one within another, or in a string or in a
// comment of one line.
func commented(text []byte) (rest, front, back []byte) {
	rest = bytes.TrimSpace(text)
	if bytes.HasPrefix(rest, []byte("/*")) {
		if inner, behind, ok := bytes.Cut(rest[2:], []byte("*/")); ok && !bytes.Contains(rest[2:len(inner)+3], []byte("/*")) {
			front, rest = inner, bytes.TrimSpace(behind)
		}
	}
	body := bytes.TrimRight(rest, "; \t\r\n")
	if !bytes.HasSuffix(body, []byte("*/")) {
		return rest, front, nil
	}
	from := bytes.Index(body, []byte("/*"))
	if from < 0 || from+4 > len(body) || bytes.Contains(body, []byte("--")) || bytes.Index(body, []byte("*/")) != len(body)-2 || bytes.Contains(body[from+2:], []byte("/*")) {
		return rest, front, nil
	}
	return bytes.TrimSpace(body[:from]), front, body[from+2 : len(body)-2]
}

// traceIn finds the id in a comment.
func traceIn(comment []byte) string {
	if len(comment) == 0 {
		return ""
	}
	for _, name := range []string{"traceparent", "trace_id", "traceid", "trace-id", "request_id"} {
		i := bytes.Index(comment, []byte(name))
		if i < 0 {
			continue
		}
		value := strings.TrimLeft(string(comment[i+len(name):]), "=: ")
		value = strings.TrimPrefix(strings.TrimLeft(value, `'"`), "%27")
		n := strings.IndexFunc(value, func(c rune) bool {
			return c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z')
		})
		if n >= 0 {
			value = value[:n]
		}
		if name == "traceparent" {
			value = parent(value)
		}
		if value != "" && len(value) <= maxTrace {
			return value
		}
	}
	return ""
}

// parent returns the trace of a traceparent: version-trace-span-flags.
func parent(value string) string {
	parts := strings.Split(value, "-")
	if len(parts) < 3 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}
