package pgwire

import (
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lockfaultd/lockfaultd/lock"
)

// The binary and the text format of a value, as pgx writes them, are the same
// value.
func TestValueOfBothFormats(t *testing.T) {
	m := pgtype.NewMap()
	for _, tt := range []struct {
		oid uint32
		v   any
	}{
		{oidInt2, int16(-7)}, {oidInt4, int32(math.MinInt32)}, {oidInt8, int64(math.MaxInt64)}, {oidInt8, int64(0)}, {oidOID, uint32(4e9)},
		{oidBool, true}, {oidBool, false}, {25, "lock"}, {1043, "42"}, {oidBytea, []byte("lo\x00ck")}, {oidBytea, []byte{}},
		{oidUUID, pgtype.UUID{Bytes: [16]byte{0: 11, 1: 14, 8: 0x8a, 15: 255}, Valid: true}}, {oidFloat8, 2.0}, {oidFloat8, 1e6}, {oidFloat8, -0.1}, {oidFloat4, float32(1.5)}, {oidJSONB, `{"a":1}`},
	} {
		value := func(format int16) lock.Value {
			b, err := m.Encode(tt.oid, format, tt.v, nil)
			if err != nil {
				t.Fatal(err)
			}
			return valueOf(hasher, b, tt.oid, format == 1)
		}
		if text, bin := value(0), value(1); text != bin {
			t.Errorf("%v of type %d: text %+v, binary %+v", tt.v, tt.oid, text, bin)
		}
	}
}

func TestNumeric(t *testing.T) {
	m := pgtype.NewMap()
	for _, s := range []string{"0", "5", "-5", "12345", "10000", "100000000", "-0.5", "1.50", "0.0001", "0.00012345", "123456789012.000100", "99999999.9999"} {
		var n pgtype.Numeric
		if err := n.Scan(s); err != nil {
			t.Fatal(err)
		}
		b, err := m.Encode(oidNumeric, 1, n, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, want := string(appendNumeric(nil, b)), s
		if strings.TrimRight(got, "0") != strings.TrimRight(want, "0") && !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", s, got)
		}
	}
	for _, b := range []string{"", "1234567", "\x00\x01\x7f\xff\x00\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\xc0\x00\x00\x00", "\xff\xff\x00\x00\x00\x00\x00\x00"} {
		if got := string(appendNumeric(nil, []byte(b))); got != b {
			t.Errorf("%q: %q, want it as it is", b, got)
		}
	}
}

func TestValueWithoutType(t *testing.T) {
	if valueOf(hasher, []byte{1}, oidBool, true) != hasher.Of([]byte("t")) || valueOf(hasher, []byte("on"), oidBool, false) != hasher.Of([]byte("t")) {
		t.Error("booleans")
	}
	for b, want := range map[string]int64{"\xff\xff": -1, "\x00\x00\x00\x07": 7, "\x00\x00\x00\x00\x00\x00\x00\x08": 8} {
		if v := valueOf(hasher, []byte(b), 0, true); !v.IsInt || v.Int != want {
			t.Errorf("%q: %+v", b, v)
		}
	}
	if v := valueOf(hasher, []byte("token"), 0, true); v != hasher.Of([]byte("token")) {
		t.Errorf("token: %+v", v)
	}
	if v := valueOf(hasher, make([]byte, maxValue+1), 0, false); v.Known() {
		t.Error("a value beyond the limit is known")
	}
}

// Parameters beyond the limit are not known, and those behind them neither.
func TestParametersAreBounded(t *testing.T) {
	params := []string{strings.Repeat("x", maxValue+1), "7"}
	for range maxValues / maxValue {
		params = append(params, strings.Repeat("y", maxValue))
	}
	var set []string
	for i := range params {
		set = append(set, "c = $"+string(rune('0'+(i+1)/10))+string(rune('0'+(i+1)%10)))
	}
	pl := newPlayer(t, newTracker()).play(encode(t, append(started[:2:2],
		fe{p("", "update t set "+strings.Join(set, ", ")), b("", "", params...), e("")})), 0)
	got := pl.marks[0].Op.SQL.Set
	for i, a := range got {
		if known := a.Value.Known(); known != (i > 0 && i < len(params)-2) {
			t.Errorf("parameter %d of %d: known %v", i+1, len(params), known)
		}
	}
}

// A boolean is read as Postgres reads it; what it refuses stays as it is.
func TestBooleans(t *testing.T) {
	for s, want := range map[string]string{
		"t": "t", "tRu": "t", " true\n": "t", "y": "t", "YES": "t", "on": "t", "On ": "t", "1": "t",
		"f": "f", "false": "f", "n": "f", "no": "f", "of": "f", "OFF": "f", "\t0": "f",
		"o": "o", "": "", " ": " ", "trues": "trues", "10": "10", "2": "2",
	} {
		if got := string(appendText(nil, []byte(s), oidBool)); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
