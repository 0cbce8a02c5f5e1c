package pgwire

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"time"
)

// A moment is what a value says of time. Its zero value says nothing.
type moment struct {
	is momentKind
	n  float64 // Unix milliseconds, milliseconds, or the number
}

type momentKind uint8

const (
	noMoment   momentKind = iota
	instant               // a point in time
	stretch               // an interval
	plainCount            // a number: of what is for its column to say
)

// Type OIDs that speak of time.
const (
	oidDate        = 1082
	oidTimestamp   = 1114
	oidTimestamptz = 1184
	oidInterval    = 1186
)

// epochOffset is how many seconds Postgres's own epoch is behind Unix's.
const epochOffset = 946684800

// momentOf reads a parameter as a time.
func momentOf(b []byte, oid uint32, isBinary bool) moment {
	if len(b) == 0 || len(b) > 64 {
		return moment{}
	}
	if !isBinary {
		return textMoment(string(b), oid)
	}
	switch oid {
	case oidTimestamp, oidTimestamptz:
		if us, ok := signed(b); ok && len(b) == 8 && us != math.MaxInt64 && us != math.MinInt64 {
			return moment{instant, float64(us)/1000 + epochOffset*1000}
		}
	case oidInterval:
		if len(b) == 16 {
			days := float64(int32(binary.BigEndian.Uint32(b[8:]))) + 30*float64(int32(binary.BigEndian.Uint32(b[12:])))
			return moment{stretch, float64(int64(binary.BigEndian.Uint64(b)))/1000 + days*24*3600*1000}
		}
	case 0, oidInt2, oidInt4, oidInt8, oidFloat4, oidFloat8, oidNumeric:
		if n, err := strconv.ParseFloat(string(appendBinary(nil, b, oid)), 64); err == nil {
			return moment{plainCount, n}
		}
	}
	return moment{}
}

// textMoment reads a text as a time: a number, a timestamp or an interval.
func textMoment(s string, oid uint32) moment {
	s = strings.TrimSpace(s)
	if n, err := strconv.ParseFloat(s, 64); err == nil && oid != oidInterval && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return moment{plainCount, n}
	}
	if at, ok := timestamp(s); ok {
		return moment{instant, float64(at.UnixMicro()) / 1000}
	}
	if d, ok := interval(s); ok {
		return moment{stretch, float64(d) / float64(time.Millisecond)}
	}
	return moment{}
}

// timestamp reads a timestamp in ISO's form, in UTC if it has no zone.
func timestamp(s string) (time.Time, bool) {
	if len(s) < len("2006-01-02") || s[4] != '-' {
		return time.Time{}, false
	}
	s = strings.Replace(s, "T", " ", 1)
	for _, form := range []string{"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z0700",
		"2006-01-02 15:04:05.999999999 Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04"} {
		if at, err := time.Parse(form, s); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// interval reads an interval as drivers write them: 30 seconds, 1 day 02:00:00.5,
// PT30S, or a number of seconds.
func interval(s string) (time.Duration, bool) {
	if rest, ok := strings.CutPrefix(s, "PT"); ok {
		d, err := time.ParseDuration(strings.ToLower(rest))
		return d, err == nil
	}
	var total float64
	fields := strings.Fields(strings.ReplaceAll(s, ",", " "))
	for i := 0; i < len(fields); i++ {
		if clock, ok := clockTime(fields[i]); ok {
			total += clock
			continue
		}
		n, unit := splitUnit(fields[i])
		if unit == "" && i+1 < len(fields) {
			i++
			unit = fields[i]
		}
		v, err := strconv.ParseFloat(n, 64)
		each, known := unitOf(unit)
		if err != nil || !known {
			return 0, false
		}
		total += v * each.Seconds()
	}
	if len(fields) == 0 || math.Abs(total) > 1e9 {
		return 0, false
	}
	return time.Duration(total * float64(time.Second)), true
}

// clockTime reads 02:00:30.5 as seconds.
func clockTime(s string) (float64, bool) {
	parts := strings.Split(s, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, false
	}
	total := 0.0
	for i, part := range parts {
		v, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, false
		}
		total += v * []float64{3600, 60, 1}[i]
	}
	return total, true
}

// splitUnit parts 30s into its number and its unit.
func splitUnit(s string) (number, unit string) {
	n := strings.IndexFunc(s, func(c rune) bool { return c != '.' && c != '-' && c != '+' && (c < '0' || c > '9') })
	if n < 0 {
		return s, ""
	}
	return s[:n], s[n:]
}

// unitOf returns how long a unit of time is. None is a second.
func unitOf(word string) (time.Duration, bool) {
	word = strings.ToLower(word)
	if len(word) > 2 {
		word = strings.TrimSuffix(word, "s")
	}
	switch word {
	case "", "s", "sec", "second":
		return time.Second, true
	case "ms", "msec", "millisecond":
		return time.Millisecond, true
	case "us", "usec", "microsecond":
		return time.Microsecond, true
	case "m", "min", "minute":
		return time.Minute, true
	case "h", "hr", "hour":
		return time.Hour, true
	case "d", "day":
		return 24 * time.Hour, true
	case "w", "week":
		return 7 * 24 * time.Hour, true
	}
	return 0, false
}

// unix returns a moment as Unix milliseconds: a number by how large it is, which
// is of this century in seconds, milliseconds, microseconds or nanoseconds.
func (m moment) unix() (int64, bool) {
	switch {
	case m.is == instant:
		return int64(m.n), true
	case m.is != plainCount:
		return 0, false
	}
	for _, each := range []float64{1e-3, 1, 1e3, 1e6} { // of the unit in a millisecond
		if ms := m.n / each; ms > epochOffset*1000 && ms < 4.2e12 {
			return int64(ms), true
		}
	}
	return 0, false
}

// long returns a moment as a length of time, if it is a number of units.
func (m moment) long(unit time.Duration) (time.Duration, bool) {
	ms := m.n
	switch m.is {
	case stretch:
	case plainCount:
		ms *= float64(unit) / float64(time.Millisecond)
	default:
		return 0, false
	}
	if math.Abs(ms) > 1e12 {
		return 0, false
	}
	return time.Duration(ms * float64(time.Millisecond)), true
}
