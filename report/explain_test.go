package report

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/docs"
)

// Every code has its section, with all four parts, the first of which says its class.
func TestEveryCodeIsExplained(t *testing.T) {
	for _, c := range Codes() {
		section := sectionOf(docs.Verdicts(), c)
		parts := partsOf(section)
		var labels []string
		for _, p := range parts {
			labels = append(labels, p.label)
			if p.text == "" {
				t.Errorf("%s: %s is empty", c.Code, p.label)
			}
		}
		if got := strings.Join(labels, ", "); got != "means, proof, is not, do" {
			t.Errorf("%s: %s", c.Code, got)
		}
		if class, _, _ := strings.Cut(strings.TrimSpace(section), ".*"); !strings.EqualFold(class, "*"+c.Class) {
			t.Errorf("%s: the page says %s, the code %s", c.Code, class, c.Class)
		}
		// One paragraph for each part, so that none is lost.
		if got := strings.Count(strings.TrimSpace(section), "\n\n"); got != 3 {
			t.Errorf("%s: %d paragraphs", c.Code, got+1)
		}
	}
	if got := strings.Count(docs.Verdicts(), "\n## LF"); got != len(Codes()) {
		t.Errorf("the page has %d codes, the program %d", got, len(Codes()))
	}
}

func TestExplain(t *testing.T) {
	for _, name := range []string{"LF104", "lf104", "lost-update", "Lost-Update"} {
		var b strings.Builder
		if err := Explain(&b, name); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"LF104 lost-update (harm)", "\nmeans ", "\nproof ", "\nis not ", "\ndo ", "Claim at the read"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, b.String())
			}
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if len([]rune(line)) > width {
				t.Errorf("%d columns: %s", len([]rune(line)), line)
			}
		}
	}
	var unknown *UnknownCode
	err := Explain(&strings.Builder{}, "lost-updaet")
	if !errors.As(err, &unknown) || unknown.Nearest != "LF104 lost-update" {
		t.Error(err)
	}
	if err := Explain(&full{left: 1}, "LF104"); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	var b strings.Builder
	if err := List(&b); err != nil || strings.Count(b.String(), "\n") != len(Codes()) {
		t.Error(err, b.String())
	}
}
