package check

import (
	"strings"
	"testing"
)

// TestTheWordsOfACycle: why it is not proven is said as it is.
func TestTheWordsOfACycle(t *testing.T) {
	some := &showing{orders: 10, rowsMay: 7, manyMay: 2}
	all := &showing{orders: 3, rowsMay: 3}
	for _, c := range []struct {
		code  string
		level Level
		every bool
		of    *showing
		says  string
	}{
		{"LF104", Proven, true, all, "in all of the orders"},
		{"LF104", Likely, true, all, "whose each statement was"},
		{"LF104", Possible, false, all, "which read a write was computed from"},
		{"LF104", Possible, false, some, "(7 of 10)"},
		{"LF106", Possible, false, some, "(2 of 10)"},
	} {
		text := inWhichOrders(c.code, c.level, c.every, c.of)
		if !strings.Contains(text, c.says) || (c.level == Proven) == strings.Contains(text, "not proven") {
			t.Errorf("%s %s: %s", c.code, c.level, text)
		}
	}
}
