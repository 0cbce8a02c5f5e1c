package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/lockfaultd/lockfaultd/"

// A Room is what one package may import beyond the standard library.
type Room struct {
	Ours   []string // of this module, by path in it
	Theirs []string // modules of others
	Pure   bool     // no I/O, no clock, no random numbers of its own
}

// Rooms is the table. "cmd wires" means that the commands import what they
// like of ours but the test rooms.
var rooms = map[string]Room{
	"lock":               {Pure: true},
	"fault":              {Pure: true, Ours: []string{"lock", "internal/nearest"}},
	"schedule":           {Pure: true, Ours: []string{"lock"}},
	"sweep":              {Pure: true, Ours: []string{"lock"}},
	"history":            {Ours: []string{"lock"}},
	"internal/nearest":   {Pure: true},
	"internal/flagwords": {Ours: []string{"internal/nearest"}, Theirs: []string{"github.com/urfave/cli/v2"}},
	"internal/orders":    {Pure: true, Ours: []string{"lock"}},
	"internal/urlquery":  {},
	"internal/wire":      {Pure: true, Ours: []string{"lock"}},
	"proxy":              {Ours: []string{"lock", "fault", "schedule", "history", "internal/wire", "proxy/origin"}, Theirs: []string{"golang.org/x/sys"}},
	"proxy/origin":       {},
	"proxy/legs":         {Ours: []string{"proxy/pgwire"}},
	"proxy/resp":         {Pure: true, Ours: []string{"lock", "internal/wire"}, Theirs: []string{"github.com/tidwall/redcon"}},
	"proxy/pgwire":       {Pure: true, Ours: []string{"lock", "internal/wire"}, Theirs: []string{"github.com/jackc/pgproto3/v2"}},
	"witness":            {Ours: []string{"lock", "history", "internal/wire", "proxy", "proxy/resp", "proxy/pgwire"}, Theirs: []string{"github.com/jackc/pgx/v5", "golang.org/x/sys"}},
	"admin":              {},
	"metrics":            {Ours: []string{"lock", "history"}, Theirs: []string{"github.com/prometheus/client_golang"}},
	"freezer":            {Theirs: []string{"golang.org/x/sys", "github.com/mdlayher/netlink"}},
	"probe/check":        {Pure: true, Ours: []string{"lock", "history"}},
	"probe":              {Ours: []string{"lock", "history", "probe/check", "internal/urlquery"}, Theirs: []string{"github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5"}},
	"probe/service":      {Ours: []string{"lock", "history", "metrics", "probe", "probe/check", "live"}, Theirs: []string{"github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5", "github.com/prometheus/client_golang", "golang.org/x/sys"}},
	"report":             {Ours: []string{"lock", "history", "probe/check", "internal/nearest", "docs"}},
	"report/html":        {Ours: []string{"lock", "report"}},
	"docs":               {Pure: true},
	"live":               {},
	"internal/alarm":     {Pure: true},
	"internal/config":    {Ours: []string{"lock", "fault", "internal/urlquery"}, Theirs: []string{"github.com/goccy/go-yaml"}},
	"internal/testbed":   {Theirs: []string{"github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9"}},
	"internal/arch":      {},
	"internal/recorder":  {},
	"cmd/lockfaultd":     {Ours: []string{"lock", "fault", "schedule", "history", "proxy", "proxy/resp", "proxy/pgwire", "proxy/legs", "freezer", "witness", "admin", "metrics", "live", "probe", "probe/check", "report", "report/html", "sweep", "internal/config", "internal/nearest", "internal/flagwords"}, Theirs: []string{"github.com/urfave/cli/v2", "golang.org/x/sys", "github.com/prometheus/client_golang"}},
	"cmd/probe":          {Ours: []string{"lock", "history", "probe", "probe/check", "probe/service", "admin", "live", "report", "report/html", "internal/config", "internal/flagwords"}, Theirs: []string{"github.com/urfave/cli/v2", "github.com/redis/go-redis/v9"}},
	"internal/demo":      {Ours: []string{"internal/testbed", "lock", "history"}},
	"bench":              {Ours: []string{"lock", "fault", "history", "probe/check", "report", "report/html", "proxy", "proxy/resp", "proxy/pgwire", "internal/testbed"}, Theirs: []string{"golang.org/x/sys"}},
	"matrix":             {Ours: []string{"internal/testbed", "lock", "history"}, Theirs: []string{"github.com/jackc/pgx/v5", "github.com/redis/go-redis/v9"}},
	"conformance":        {Ours: []string{"internal/testbed", "internal/recorder", "internal/alarm"}},
	"staging":            {Ours: []string{"internal/testbed"}},
	"soak":               {Ours: []string{"internal/testbed", "internal/alarm", "history"}, Theirs: []string{"github.com/jackc/pgx/v5"}},
	"examples":           {},
	"examples/go":        {Theirs: []string{"github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5"}},
}

// impure lists what a pure room must not import, with the reason.
var impure = map[string]string{
	"net": "does I/O", "os": "does I/O", "log": "does I/O", "log/slog": "does I/O",
	"syscall": "does I/O", "os/exec": "does I/O", "io/ioutil": "does I/O",
	"math/rand": "draws from a global source", "math/rand/v2": "draws from a global source",
	"crypto/rand": "draws from a global source", "context": "carries deadlines of a clock",
}

// A File is one Go file that is not a test.
type File struct {
	Package string // path in the module
	Path    string
	AST     *ast.File
}

// Load parses every Go file below root but tests and testdata.
func Load(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if skipped(root, path, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		f, err := Parse(filepath.ToSlash(rel), path, src)
		files = append(files, f)
		return err
	})
	return files, err
}

func skipped(root, path, name string) bool {
	if path == root {
		return false
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return name == "testdata" || strings.HasPrefix(name, ".") || err == nil
}

// Parse reads one file of a package.
func Parse(pkg, path string, src []byte) (File, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments)
	if err != nil {
		return File{}, fmt.Errorf("parse %s: %w", path, err)
	}
	return File{Package: pkg, Path: path, AST: f}, nil
}

// Check returns what is wrong with the imports and functions of a file.
func Check(f File) []string {
	room, known := rooms[f.Package]
	if !known {
		return []string{fmt.Sprintf("%s: package %s is not in the table of internal/arch", f.Path, f.Package)}
	}
	var wrong []string
	for _, spec := range f.AST.Imports {
		path, _ := strconv.Unquote(spec.Path.Value)
		if why := room.forbids(path); why != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s must not import %s: %s", f.Path, f.Package, path, why))
		}
	}
	return append(wrong, checkBody(f, room)...)
}

func (r Room) forbids(path string) string {
	switch {
	case strings.HasPrefix(path, module):
		if !slices.Contains(r.Ours, strings.TrimPrefix(path, module)) {
			return "it is another room, and the table has no door"
		}
	case strings.Contains(strings.SplitN(path, "/", 2)[0], "."):
		if !slices.ContainsFunc(r.Theirs, func(m string) bool { return path == m || strings.HasPrefix(path, m+"/") }) {
			return "that module belongs to other rooms"
		}
	case r.Pure && (impure[path] != "" || strings.HasPrefix(path, "net/")):
		return "the room is pure, and it " + impure[path]
	}
	return ""
}

// checkBody finds init functions and, in pure rooms, uses of the clock.
func checkBody(f File, room Room) []string {
	var wrong []string
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			if x.Name.Name == "init" && x.Recv == nil {
				wrong = append(wrong, fmt.Sprintf("%s: has an init function", f.Path))
			}
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok && room.Pure && id.Name == "time" && slices.Contains(clock, x.Sel.Name) {
				wrong = append(wrong, fmt.Sprintf("%s: %s is pure and must not use time.%s: time is an argument", f.Path, f.Package, x.Sel.Name))
			}
		}
		return true
	})
	return wrong
}

var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}

// Docs returns what is wrong with the package comments of files.
func Docs(files []File) []string {
	count := map[string]int{}
	for _, f := range files {
		count[f.Package] += 0
		if f.AST.Doc != nil {
			count[f.Package]++
		}
	}
	var wrong []string
	for pkg, n := range count {
		if n != 1 {
			wrong = append(wrong, fmt.Sprintf("package %s has %d package comments, not one", pkg, n))
		}
	}
	slices.Sort(wrong)
	return wrong
}
