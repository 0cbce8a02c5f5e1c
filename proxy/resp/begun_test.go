package resp

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/wire"
)

// A release or renewal that is queued is not carried out before EXEC: what is queued behind it is of what has begun.
func TestBegun(t *testing.T) {
	for _, tt := range []struct {
		name   string
		script string
		begun  []bool // of each op
	}{
		{"a pipeline", "DEL a; SET b t NX PX 9", []bool{false, false}},
		{"a release that is queued", "MULTI; DEL a; SET b t NX PX 9; EXEC; SET b t NX PX 9", []bool{false, true, false}},
		{"a renewal", "MULTI; PEXPIRE a 9; SET b t NX PX 9; DISCARD; SET b t NX PX 9", []bool{false, true, false}},
		{"behind an UNWATCH that is queued", "WATCH w; MULTI; DEL a; UNWATCH; SET b t NX PX 9; EXEC; SET b t NX PX 9", []bool{false, true, false}},
		{"an acquire", "MULTI; SET b t NX PX 9; SET c t NX PX 9; EXEC", []bool{false, false}},
		{"one that is reset", "MULTI; DEL a; RESET; SET b t NX PX 9", []bool{false, false}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTracker()
			var got []bool
			for line := range strings.SplitSeq(tt.script, "; ") {
				marks, _ := tr.Client([]byte(words(line)), nil)
				for _, m := range marks {
					if m.Kind == wire.Request {
						got = append(got, m.Begun)
					}
				}
			}
			if !slices.Equal(got, tt.begun) {
				t.Errorf("begun %v, want %v", got, tt.begun)
			}
		})
	}
}
