package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A line of docs/conformance.md.
type line struct {
	number             int
	what, tests, state string
}

// lastLine is the highest number of the table.
const lastLine = 108

func TestConformanceTableIsTrue(t *testing.T) {
	doc, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, wrong := tableLines(string(doc))
	have, err := namedTests("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range append(wrong, faults(lines, have)...) {
		t.Error(w)
	}
}

// tableLines reads every row that begins with a number.
func tableLines(doc string) (lines []line, wrong []string) {
	for _, row := range strings.Split(doc, "\n") {
		cells := strings.Split(strings.ReplaceAll(row, `\|`, "/"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) < 2 || cells[0] != "" {
			continue
		}
		number, err := strconv.Atoi(cells[1])
		if err != nil {
			continue
		}
		if len(cells) != 6 || cells[5] != "" {
			wrong = append(wrong, fmt.Sprintf("line %d has not four cells: %s", number, row))
			continue
		}
		lines = append(lines, line{number, cells[2], cells[3], cells[4]})
	}
	return lines, wrong
}

var testName = regexp.MustCompile(`\b(?:TestC\d{3}\w*|c\d{3}-[\w-]+\.txt(?:ar)?)`)

// faults lists what is wrong with the table: a number that is missing or there
// twice, a test that does not exist, a line that does not say how it stands.
func faults(lines []line, have map[string]bool) []string {
	var wrong []string
	seen := map[int]bool{}
	for _, l := range lines {
		if seen[l.number] {
			wrong = append(wrong, fmt.Sprintf("line %d is there twice", l.number))
		}
		seen[l.number] = true
		if l.number < 1 || l.number > lastLine || l.what == "" || l.state == "" {
			wrong = append(wrong, fmt.Sprintf("line %d has no right number, says not what happens, or has no state", l.number))
		}
		names := testName.FindAllString(l.tests, -1)
		for _, name := range names {
			if !have[name] {
				wrong = append(wrong, fmt.Sprintf("line %d names %s, which does not exist", l.number, name))
			}
		}
		own := regexp.MustCompile(fmt.Sprintf(`(?i)\b(Test)?c%03d`, l.number)).MatchString(l.tests)
		if strings.HasPrefix(l.state, "held") && (len(names) == 0 || !own) {
			wrong = append(wrong, fmt.Sprintf("line %d is held, but no test with its number is named", l.number))
		}
	}
	for n := 1; n <= lastLine; n++ {
		if !seen[n] {
			wrong = append(wrong, fmt.Sprintf("line %d is missing", n))
		}
	}
	return wrong
}

var testFunc = regexp.MustCompile(`(?m)^func (TestC\d{3}\w*)\(`)

// namedTests collects the test functions and script files with a number.
func namedTests(root string) (map[string]bool, error) {
	have := map[string]bool{}
	return have, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path != root && strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
		case testName.FindString(d.Name()) == d.Name():
			have[d.Name()] = true
		case strings.HasSuffix(path, "_test.go"):
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range testFunc.FindAllStringSubmatch(string(src), -1) {
				have[m[1]] = true
			}
		}
		return nil
	})
}

func TestFaultsOfTheConformanceTableAreFound(t *testing.T) {
	have := map[string]bool{"TestC002Right": true, "TestC003Other": true, "c004-right.txt": true}
	all := func(change map[int]string) string {
		var doc strings.Builder
		for n := 1; n <= lastLine; n++ {
			row, changed := change[n]
			if !changed {
				row = fmt.Sprintf("| %d | something | | for a reason |", n)
			}
			fmt.Fprintln(&doc, row)
		}
		return doc.String()
	}
	for _, tt := range []struct {
		row  string // in place of line 2
		want string
	}{
		{"| 2 | something | TestC002Right (proxy) | held |", ""},
		{"| 2 | something | TestC002Right, c004-right.txt | held |", ""},
		{"| 2 | something | TestC002Wrong (proxy) | held |", "does not exist"},
		{"| 2 | something | TestC003Other (proxy) | held |", "no test with its number"},
		{"| 2 | something | | held |", "no test with its number"},
		{"| 2 | something | TestC002Right (proxy) | |", "no state"},
		{"| 2 | something | TestC002Right (proxy) held |", "four cells"},
		{"| 3 | something | | for a reason |", "line 3 is there twice"},
		{"", "line 2 is missing"},
	} {
		lines, wrong := tableLines(all(map[int]string{2: tt.row}))
		got := strings.Join(append(wrong, faults(lines, have)...), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want it to say %q", tt.row, got, tt.want)
		}
	}
}
