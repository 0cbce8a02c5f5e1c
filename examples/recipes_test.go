package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockfaultd/lockfaultd/internal/testbed"
)

// The projects below ci/ are what docs/ci.md shows, run as it says.
func TestPytestRecipe(t *testing.T) {
	needPython(t)
	need(t, "pytest (Debian: python3-pytest)", exec.Command(python, "-m", "pytest", "--version"))
	recipe(t, "ci/pytest", python, "-m", "pytest", "-q", "-p", "no:cacheprovider")
}

func TestGoTestRecipe(t *testing.T) {
	recipe(t, "ci/gotest", "go", "test", "-count=1", ".")
}

func TestJestRecipe(t *testing.T) {
	need(t, "jest (scripts/need.sh jest)", exec.Command("test", "-x", "ci/jest/node_modules/.bin/jest"))
	recipe(t, "ci/jest", "node_modules/.bin/jest")
}

// need skips the test where something is missing, and fails it in CI.
func need(t *testing.T, what string, there *exec.Cmd) {
	t.Helper()
	if err := there.Run(); err != nil {
		missing := t.Skipf
		if os.Getenv("CI") != "" {
			missing = t.Fatalf
		}
		missing("%s is missing: %v", what, err)
	}
}

// recipe runs a project's tests with lockfaultd in PATH and servers of its own.
func recipe(t *testing.T, dir string, command ...string) {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/lockfaultd").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	red, pg := testbed.Redis(t), testbed.Postgres(t)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "REDIS_URL="+red.URL(), "DATABASE_URL="+pg.URL(), "PATH="+bin+":"+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s in %s: %v\n%s", strings.Join(command, " "), dir, err, out)
	}
}

// What docs/ci.md shows of the projects is in them as it stands there.
func TestRecipesAreAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"python": "ci/pytest/test_stock.py", "go": "ci/gotest/account_test.go", "js": "ci/jest/tickets.test.js"}
	blocks := strings.Split(string(page), "```")
	for i := 1; i < len(blocks); i += 2 {
		language, code, _ := strings.Cut(blocks[i], "\n")
		file, ok := files[language]
		if !ok {
			continue
		}
		delete(files, language)
		text, err := os.ReadFile(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), code) {
			t.Errorf("%s does not have what the page shows of it:\n%s", file, code)
		}
	}
	if len(files) > 0 {
		t.Errorf("the page does not show %v", files)
	}
}
