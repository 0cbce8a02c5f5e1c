package fault

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The pages that explain rules and faults show only rules that compile, quote what a shell would change,
// and leave no flag out.
func TestDocsCompile(t *testing.T) {
	rules, err := os.ReadFile("../docs/rules.md")
	faults, err2 := os.ReadFile("../docs/faults.md")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	page, used := append(rules, faults...), map[string]bool{}
	shown := regexp.MustCompile(`--((?:stall|freeze|reset)-(?:before|after)|hold|hold-reply|drop-reply|lose-key|kill-backend) ('[^']*'|[^ ]+)`)
	n := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "    lockfaultd") {
			continue
		}
		for _, m := range shown.FindAllStringSubmatch(strings.TrimSpace(line), -1) {
			n++
			used[m[1]] = true
			text := strings.Trim(m[2], "'")
			if _, err := Parse(m[1], text); err != nil {
				t.Error(err)
			}
			if quoted := text != m[2]; quoted != strings.ContainsAny(text, "()#*") {
				t.Errorf("%s: quoted %t", m[2], quoted)
			}
		}
	}
	if n < 17 {
		t.Errorf("%d rules found on the pages", n)
	}
	for _, f := range Flags() {
		if !used[f.Name] || !strings.Contains(string(rules), "| `--"+f.Name+"` |") || !strings.Contains(string(faults), "`--"+f.Name+"`") {
			t.Errorf("the pages do not explain --%s, or show no rule of it", f.Name)
		}
	}
}

func TestDocsNameEveryReason(t *testing.T) {
	page, err := os.ReadFile("../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{InBaseline, EarlierRule, BudgetSpent, CoolingDown, NotFreezable, NoActor, AlreadyFrozen,
		TooManyFrozen, TooLong, UnknownTTL, NoLease, UnknownLock, NoKey, NoBackend, TooManyNames, LateTick} {
		if !strings.Contains(string(page), "| `"+reason+"` |") {
			t.Errorf("the page does not explain %q", reason)
		}
	}
	for _, c := range classes() {
		if !strings.Contains(string(page), "| `"+c+"` |") {
			t.Errorf("the page does not explain %s", c)
		}
	}
}

// Without parentheses, # and * no shell changes a rule.
func TestShellKeepsRules(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell: ", err)
	}
	for _, text := range []string{
		"SETNX=800ms", "redis:SET@0.5%=ttl+20%", "write=ttl-1.5s,scope=process,max=3,cooldown=10m",
		"acquire=ttl,name=a_b-c.d:e/f", "write=until:lease-expired+next-write,timeout=5s",
	} {
		out, err := exec.Command("sh", "-c", "printf %s "+text).Output()
		if err != nil || string(out) != text {
			t.Errorf("%s became %s (%v)", text, out, err)
		}
	}
}

// The table of globs in docs/rules.md, column by column.
func TestGlobsOfTablesAsDocumented(t *testing.T) {
	for _, tt := range []struct{ glob, matches, not string }{
		{"invoice", "invoice billing.invoice public.invoice", "invoices billing.invoices"},
		{"billing.invoice", "billing.invoice", "invoice public.invoice"},
		{"public.invoice", "public.invoice invoice", "billing.invoice"},
		{"*.invoice", "invoice public.invoice billing.invoice", "invoices"},
	} {
		r := &Rule{Glob: tt.glob}
		for _, table := range strings.Fields(tt.matches) {
			if !r.matchesTable(table) {
				t.Errorf("%s does not match %s", tt.glob, table)
			}
		}
		for _, table := range strings.Fields(tt.not) {
			if r.matchesTable(table) {
				t.Errorf("%s matches %s", tt.glob, table)
			}
		}
	}
}
