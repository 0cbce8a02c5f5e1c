package pgwire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A write names the other tables that it writes, and says so where there may be
// more than it names.
func TestAWriteNamesTheTablesBesideItsOwn(t *testing.T) {
	var many []string
	for i := range maxTables + 2 {
		many = append(many, fmt.Sprint("t", i))
	}
	for _, c := range []struct {
		text    string
		cut     bool
		also    []string
		cascade bool
	}{
		{"TRUNCATE users, s.t, \"T\"", false, []string{"s.t", "T"}, false},
		{"TRUNCATE ONLY (users), t CONTINUE IDENTITY RESTRICT", false, []string{"t"}, false},
		{"TRUNCATE users CASCADE", false, nil, true},
		{"truncate table users, t restart identity cascade; select 1", false, []string{"t"}, true},
		{"TRUNCATE users, t, oth", true, []string{"t"}, true},
		{"WITH d AS (DELETE FROM t RETURNING a) INSERT INTO users SELECT a FROM d", false, []string{"t"}, false},
		{"INSERT INTO users SELECT a FROM t", false, nil, false},
		{"DROP TABLE users, t", false, nil, false},
		{"TRUNCATE " + strings.Join(many[:maxTables+1], ", "), false, many[1 : maxTables+1], false},
		{"TRUNCATE " + strings.Join(many, ", "), false, many[1 : maxTables+1], true},
	} {
		s := readSQL(c.text, c.cut)[0].fill(nil)
		if !slices.Equal(s.Also, c.also) || s.Cascade != c.cascade {
			t.Errorf("%.80s: also %q, cascade %v", c.text, s.Also, s.Cascade)
		}
	}
}
