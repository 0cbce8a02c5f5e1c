package pgwire

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// read cuts a stream into messages as a tracker does, fed in pieces of n bytes,
// and writes down what its readers make of them.
func read(t *testing.T, stream []byte, n int, client bool) (out []string) {
	t.Helper()
	var s scanner
	var m message
	note := func() {
		if client {
			out = append(out, ofClient(&m))
		} else {
			out = append(out, ofServer(&m))
		}
	}
	for len(stream) > 0 {
		k := min(n, len(stream))
		chunk := bytes.Clone(stream[:k])
		for stream = stream[k:]; ; {
			rest, ok := s.whole(&m, chunk)
			if ok {
				note()
				chunk = rest
				continue
			}
			rest, ev := s.next(chunk)
			chunk = rest
			if ev == evMore {
				break
			}
			switch ev {
			case evHead:
				s.keep(maxKept, chunk)
			case evMessage:
				s.message(&m)
				note()
				s.done()
			case evBad:
				return append(out, "bad")
			}
		}
	}
	return out
}

func ofClient(m *message) string {
	c := cursor{b: m.body}
	switch m.typ {
	case 'Q':
		return fmt.Sprintf("Q %q", c.text())
	case 'P':
		return fmt.Sprintf("P %q %q %v", c.text(), c.text(), c.oids())
	case 'B':
		s := fmt.Sprintf("B %q %q", c.text(), c.text())
		f := c.formats()
		n := c.count()
		for i := range n {
			b, null := c.field()
			s += fmt.Sprintf(" %q %v %v", b, null, f.binary(i))
		}
		f = c.formats()
		return s + fmt.Sprintf(" %v %v", f.binary(0), f.binary(1))
	case 'D', 'C':
		kind, name := kindAndName(m.body)
		return fmt.Sprintf("%c %c %q", m.typ, kind, name)
	case 'E':
		return fmt.Sprintf("E %q", c.text())
	}
	return string(m.typ)
}

func ofServer(m *message) string {
	c := cursor{b: m.body}
	switch m.typ {
	case 'Z':
		return "Z " + string(m.body)
	case 'C':
		return fmt.Sprintf("C %q", c.text())
	case 'E':
		return fmt.Sprintf("E %q %q", sqlState(m.body), errorField(m.body, 'M'))
	case 'K':
		return fmt.Sprintf("K %d %q", c.uint32(), c.b)
	case 't':
		return fmt.Sprintf("t %v", c.oids())
	case 'T':
		s := "T"
		for _, column := range describe(m.body) {
			s += fmt.Sprintf(" %q %d", column.name, column.oid)
		}
		return s
	case 'D':
		s := "D"
		for range c.count() {
			b, null := c.field()
			s += fmt.Sprintf(" %q %v", b, null)
		}
		return s
	}
	return string(m.typ)
}

// saysClient writes the same down from what pgproto3 decoded.
func saysClient(m pgproto3.FrontendMessage) string {
	switch m := m.(type) {
	case *pgproto3.Query:
		return fmt.Sprintf("Q %q", m.String)
	case *pgproto3.Parse:
		return fmt.Sprintf("P %q %q %v", m.Name, m.Query, m.ParameterOIDs[:min(len(m.ParameterOIDs), maxParams)])
	case *pgproto3.Bind:
		s := fmt.Sprintf("B %q %q", m.DestinationPortal, m.PreparedStatement)
		for i, b := range m.Parameters {
			s += fmt.Sprintf(" %q %v %v", b, b == nil, code(m.ParameterFormatCodes, i))
		}
		return s + fmt.Sprintf(" %v %v", code(m.ResultFormatCodes, 0), code(m.ResultFormatCodes, 1))
	case *pgproto3.Describe:
		return fmt.Sprintf("D %c %q", m.ObjectType, m.Name)
	case *pgproto3.Close:
		return fmt.Sprintf("C %c %q", m.ObjectType, m.Name)
	case *pgproto3.Execute:
		return fmt.Sprintf("E %q", m.Portal)
	}
	b, _ := m.Encode(nil)
	return string(b[:1])
}

func code(list []int16, i int) bool {
	if len(list) == 1 {
		i = 0
	}
	return i < len(list) && list[i]&0xff == 1
}

func saysServer(m pgproto3.BackendMessage) string {
	switch m := m.(type) {
	case *pgproto3.ReadyForQuery:
		return "Z " + string([]byte{m.TxStatus})
	case *pgproto3.CommandComplete:
		return fmt.Sprintf("C %q", m.CommandTag)
	case *pgproto3.ErrorResponse:
		return fmt.Sprintf("E %q %q", m.Code, m.Message)
	case *pgproto3.BackendKeyData:
		return fmt.Sprintf("K %d %q", m.ProcessID, m.SecretKey)
	case *pgproto3.ParameterDescription:
		return fmt.Sprintf("t %v", m.ParameterOIDs[:min(len(m.ParameterOIDs), maxParams)])
	case *pgproto3.RowDescription:
		s := "T"
		for i, f := range m.Fields {
			if i == maxColumns || len(f.Name) > maxName {
				break
			}
			if f.TableOID == 0 {
				f.Name = nil
			}
			s += fmt.Sprintf(" %q %d", f.Name, f.DataTypeOID)
		}
		return s
	case *pgproto3.DataRow:
		s := "D"
		for _, b := range m.Values {
			s += fmt.Sprintf(" %q %v", b, b == nil)
		}
		return s
	}
	b, _ := m.Encode(nil)
	return string(b[:1])
}

// valid reports whether a message is what pgproto3 would have sent: it takes
// some whose counts do not agree with their lengths.
func valid(m pgproto3.Message, was []byte) bool {
	e, ok := m.(interface{ Encode([]byte) ([]byte, error) })
	if !ok {
		return false
	}
	b, err := e.Encode(nil)
	return err == nil && bytes.Equal(b, was)
}

// FuzzOracle holds the scanner and its readers against pgproto3: what that can
// decode, all of a stream, we read the same, in any pieces.
func FuzzOracle(f *testing.F) {
	for _, tt := range flows() {
		for _, u := range encode(f, append(started[1:2:2], tt.script...)) {
			f.Add(u.bytes, u.client, uint8(len(u.bytes)))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, client bool, n uint8) {
		var want []string
		in := bytes.NewReader(stream)
		frontend, backend := pgproto3.NewFrontend(in, io.Discard), pgproto3.NewBackend(in, io.Discard)
		frontend.SetMaxBodyLen(1 << 20)
		backend.SetMaxBodyLen(1 << 20)
		for used := 0; used < len(stream); {
			if client && stream[used] == 'p' || !client && stream[used] == 'R' {
				return // what these are depends on what came before
			}
			if left := stream[used:]; len(left) < headSize || int(left[1])<<24|int(left[2])<<16|int(left[3])<<8|int(left[4]) > len(left)-1 {
				return
			}
			from := used
			used += 1 + int(stream[used+1])<<24 + int(stream[used+2])<<16 + int(stream[used+3])<<8 + int(stream[used+4])
			if client {
				m, err := backend.Receive()
				if err != nil || !valid(m, stream[from:used]) {
					return
				}
				want = append(want, saysClient(m))
			} else {
				m, err := frontend.Receive()
				if err != nil || !valid(m, stream[from:used]) {
					return
				}
				want = append(want, saysServer(m))
			}
		}
		if got := read(t, stream, int(n)+1, client); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("read\n%q\npgproto3 says\n%q", got, want)
		}
	})
}
