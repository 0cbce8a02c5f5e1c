package arch

import (
	"os/exec"
	"strings"
	"testing"
)

func TestWalls(t *testing.T) {
	files, err := Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, wrong := range Check(f) {
			t.Error(wrong)
		}
	}
	for _, wrong := range Docs(files) {
		t.Error(wrong)
	}
	have := map[string]bool{}
	for _, f := range files {
		have[f.Package] = true
	}
	for pkg := range rooms {
		if !have[pkg] {
			t.Errorf("the table names package %s, which does not exist", pkg)
		}
	}
}

func TestForbiddenImportsAreFound(t *testing.T) {
	for _, tt := range []struct{ pkg, src, want string }{
		{"proxy/resp", `package resp; import "github.com/lockfaultd/lockfaultd/fault"`, "no door"},
		{"proxy/pgwire", `package pgwire; import _ "github.com/lockfaultd/lockfaultd/fault"`, "no door"},
		{"probe/check", `package check; import "github.com/lockfaultd/lockfaultd/proxy"`, "no door"},
		{"probe/check", `package check; import "github.com/lockfaultd/lockfaultd/fault"`, "no door"},
		{"probe", `package probe; import "github.com/lockfaultd/lockfaultd/freezer"`, "no door"},
		{"report", `package report; import "github.com/lockfaultd/lockfaultd/proxy"`, "no door"},
		{"lock", `package lock; import "net"`, "does I/O"},
		{"lock", `package lock; import "os"`, "does I/O"},
		{"fault", `package fault; import "math/rand/v2"`, "global source"},
		{"fault", `package fault; import "net/http"`, "pure"},
		{"fault", `package fault; import "time"; var x = time.Now()`, "time is an argument"},
		{"proxy", `package proxy; import "github.com/jackc/pgproto3/v2"`, "other rooms"},
		{"probe", `package probe; import "github.com/tidwall/redcon"`, "other rooms"},
		{"freezer", `package freezer; import "github.com/cilium/ebpf"`, "other rooms"},
		{"proxy", `package proxy; func init() {}`, "init function"},
		{"witchcraft", `package witchcraft`, "not in the table"},
	} {
		f, err := Parse(tt.pkg, "x.go", []byte(tt.src))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(Check(f), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s: got %q, want it to say %q", tt.pkg, tt.src, got, tt.want)
		}
	}
	if f, _ := Parse("lock", "x.go", []byte(`package lock; import "time"; type D = time.Duration`)); len(Check(f)) != 0 {
		t.Error("a pure room may speak of durations")
	}
}

func TestMissingPackageCommentIsFound(t *testing.T) {
	f, _ := Parse("lock", "x.go", []byte("package lock"))
	if len(Docs([]File{f})) != 1 {
		t.Error("a package without a comment was not found")
	}
	g, _ := Parse("lock", "y.go", []byte("// Package lock is.\npackage lock"))
	if len(Docs([]File{f, g})) != 0 || len(Docs([]File{g, g})) != 1 {
		t.Error("one comment is right, two are not")
	}
}

func TestNoEBPF(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	if strings.Contains(strings.ToLower(string(out)), "ebpf") {
		t.Error("an eBPF package is linked")
	}
}
