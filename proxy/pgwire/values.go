package pgwire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/lockfaultd/lockfaultd/lock"
)

const (
	maxValue  = 4 << 10  // bytes of one value that are looked at
	maxValues = 64 << 10 // bytes of all values of one Bind or row
	maxParams = 1024     // parameters of one Bind that are looked at
)

// Type OIDs that are read in binary format.
const (
	oidBool    = 16
	oidBytea   = 17
	oidInt8    = 20
	oidInt2    = 21
	oidInt4    = 23
	oidOID     = 26
	oidFloat4  = 700
	oidFloat8  = 701
	oidNumeric = 1700
	oidUUID    = 2950
	oidJSONB   = 3802
)

// valueOf returns what b, a parameter or a column, stands for. The same value
// in text and in binary format gives the same.
func valueOf(h *lock.Hasher, b []byte, oid uint32, isBinary bool) lock.Value {
	if len(b) > maxValue {
		return lock.Value{}
	}
	var scratch [64]byte
	if isBinary {
		return h.Of(appendBinary(scratch[:0], b, oid))
	}
	return h.Of(appendText(scratch[:0], b, oid))
}

// appendText appends the one form of a value in text format.
func appendText(dst, b []byte, oid uint32) []byte {
	switch {
	case oid == oidBool:
		if v, ok := parseBool(b); ok {
			return append(dst, boolText(v))
		}
	case oid == oidBytea && len(b) >= 2 && b[0] == '\\' && b[1] == 'x':
		if raw, err := hex.AppendDecode(dst, b[2:]); err == nil {
			return raw
		}
	}
	return append(dst, b...)
}

// appendBinary appends the text of a value in binary format, or the value as
// it is where it has no text that is worth it. Without a type, 2, 4 and 8
// bytes are an integer.
func appendBinary(dst, b []byte, oid uint32) []byte {
	switch oid {
	case 0, oidInt2, oidInt4, oidInt8:
		if n, ok := signed(b); ok {
			return strconv.AppendInt(dst, n, 10)
		}
	case oidOID:
		if len(b) == 4 {
			return strconv.AppendUint(dst, uint64(binary.BigEndian.Uint32(b)), 10)
		}
	case oidBool:
		if len(b) == 1 {
			return append(dst, boolText(b[0] != 0))
		}
	case oidUUID:
		if len(b) == 16 {
			return appendUUID(dst, b)
		}
	case oidFloat4, oidFloat8:
		return appendFloat(dst, b)
	case oidNumeric:
		return appendNumeric(dst, b)
	case oidJSONB:
		if len(b) > 0 && b[0] == 1 {
			return append(dst, b[1:]...)
		}
	}
	return append(dst, b...)
}

// parseBool reads a boolean's text as Postgres does: in any case, cut short if
// that is unambiguous, with space around it.
func parseBool(b []byte) (v, ok bool) {
	b = bytes.Trim(b, " \t\n\v\f\r")
	if len(b) == 0 {
		return false, false
	}
	for _, s := range []string{"true", "yes", "on", "1", "false", "no", "off", "0"} {
		if len(b) <= len(s) && bytes.EqualFold(b, []byte(s[:len(b)])) && (s[0] != 'o' || len(b) > 1) {
			return s == "true" || s == "yes" || s == "on" || s == "1", true
		}
	}
	return false, false
}

func boolText(v bool) byte {
	if v {
		return 't'
	}
	return 'f'
}

func signed(b []byte) (int64, bool) {
	switch len(b) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b))), true
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b))), true
	case 8:
		return int64(binary.BigEndian.Uint64(b)), true
	}
	return 0, false
}

func appendUUID(dst, b []byte) []byte {
	for i, part := range [][]byte{b[:4], b[4:6], b[6:8], b[8:10], b[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

func appendFloat(dst, b []byte) []byte {
	var v float64
	bits := 64
	switch len(b) {
	case 4:
		v, bits = float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 32
	case 8:
		v = math.Float64frombits(binary.BigEndian.Uint64(b))
	default:
		return append(dst, b...)
	}
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, bits)
}

// maxDigits bounds the numerics that are read, in groups of four digits.
const maxDigits = 16

// appendNumeric appends the decimal text of a numeric: groups of four digits,
// the first of which counts 10000 to the power of weight.
func appendNumeric(dst, b []byte) []byte {
	if len(b) < 8 {
		return append(dst, b...)
	}
	groups := int(binary.BigEndian.Uint16(b))
	weight := int(int16(binary.BigEndian.Uint16(b[2:])))
	sign := binary.BigEndian.Uint16(b[4:])
	scale := int(binary.BigEndian.Uint16(b[6:]))
	if len(b) != 8+2*groups || groups > maxDigits || weight < -maxDigits || weight > maxDigits || scale > 4*maxDigits || sign != 0 && sign != 0x4000 {
		return append(dst, b...)
	}
	digit := func(i int) int {
		if i < 0 || i >= groups {
			return 0
		}
		return int(binary.BigEndian.Uint16(b[8+2*i:]))
	}
	if sign != 0 {
		dst = append(dst, '-')
	}
	dst = strconv.AppendInt(dst, int64(digit(0))*boolInt(weight >= 0), 10)
	for i := 1; i <= weight; i++ {
		dst = appendGroup(dst, digit(i), 4)
	}
	return appendFraction(dst, digit, weight, scale)
}

func appendFraction(dst []byte, digit func(int) int, weight, scale int) []byte {
	if scale > 0 {
		dst = append(dst, '.')
	}
	for i := weight + 1; scale > 0; i++ {
		dst = appendGroup(dst, digit(i), min(scale, 4))
		scale -= 4
	}
	return dst
}

// appendGroup appends the first n of four digits.
func appendGroup(dst []byte, group, n int) []byte {
	for unit := 1000; n > 0; n-- {
		dst = append(dst, byte('0'+group/unit%10))
		unit /= 10
	}
	return dst
}

func boolInt(v bool) int64 {
	if v {
		return 1
	}
	return 0
}
