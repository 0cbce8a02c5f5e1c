package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A cache holds fetched sources and what was built of them. A folder in it that
// is not whole ends in ".part".
type cache struct {
	dir     string
	updated bool // apt's lists are there and new
}

func openCache(dir string) (*cache, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find cache folder: %w; name one with -cache", err)
		}
		dir = filepath.Join(user, "lockfaultd", "conformance")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &cache{dir: dir}, os.MkdirAll(dir, 0o755)
}

// made returns a folder of the cache, which fill fills the first time, and again
// when it is to be made of something else.
func (c *cache) made(name, of string, fill func(dir string) error) (string, error) {
	dir := filepath.Join(c.dir, name)
	if have, err := os.ReadFile(filepath.Join(dir, madeOf)); err == nil && string(have) == of {
		return dir, nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	if err := os.MkdirAll(part, 0o755); err != nil {
		return "", err
	}
	if err := fill(part); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(part, madeOf), []byte(of), 0o644); err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Rename(part, dir)
}

// madeOf holds what a folder was made of.
const madeOf = ".made-of"

// source returns the unpacked source of a Debian package: of the version in which
// a program of it is installed, or of the newest that can still be had, since the
// archive lists some whose files have gone. Where it cannot be renewed, what was
// fetched before serves.
func (c *cache) source(ctx context.Context, pkg, program string) (string, error) {
	wanted := installed(ctx, program)
	dir, err := c.made(pkg+".src", wanted, func(dir string) error { return c.fetch(ctx, pkg, wanted, dir) })
	if err == nil || ctx.Err() != nil {
		return dir, err
	}
	old := filepath.Join(c.dir, pkg+".src")
	version, missing := os.ReadFile(filepath.Join(old, versionFile))
	if missing != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "conformance: %s %s is used, since %s cannot be fetched: %v\n", pkg, version, wanted, err)
	return old, nil
}

// installed returns the version of the source of an installed package; "" where
// that is not known.
func installed(ctx context.Context, pkg string) string {
	out, err := exec.CommandContext(ctx, "dpkg-query", "-W", "-f", "${source:Version}", pkg).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (c *cache) fetch(ctx context.Context, pkg, wanted, dir string) error {
	if err := c.update(ctx); err != nil {
		return err
	}
	versions, err := c.versions(ctx, pkg)
	if err != nil {
		return err
	}
	var missed []error
	for _, v := range preferring(wanted, versions) {
		_, err := c.apt(ctx, dir, "apt-get", "source", "--download-only", "-qq", pkg+"="+v)
		if err == nil {
			return errors.Join(unpack(ctx, dir), os.WriteFile(filepath.Join(dir, versionFile), []byte(v), 0o644))
		}
		missed = append(missed, err)
	}
	return fmt.Errorf("fetch source of %s: %w", pkg, errors.Join(missed...))
}

// preferring puts the wanted version first, if it is among them.
func preferring(wanted string, versions []string) []string {
	i := slices.Index(versions, wanted)
	if i < 0 {
		return versions
	}
	return append([]string{wanted}, slices.Delete(slices.Clone(versions), i, i+1)...)
}

// versionFile holds the version of a source.
const versionFile = "debian-version"

// programs returns the unpacked files of Debian packages, in the version of a source.
func (c *cache) programs(ctx context.Context, source string, packages ...string) (string, error) {
	version, err := os.ReadFile(filepath.Join(source, versionFile))
	if err != nil {
		return "", err
	}
	return c.made(strings.Join(packages, "+"), string(version), func(dir string) error {
		if err := c.update(ctx); err != nil {
			return err
		}
		for _, pkg := range packages {
			if _, err := c.apt(ctx, dir, "apt-get", "download", "-qq", pkg+"="+string(version)); err != nil {
				return err
			}
		}
		found, _ := filepath.Glob(filepath.Join(dir, "*.deb")) // the pattern is well-formed
		for _, f := range found {
			if err := errors.Join(command(ctx, dir, nil, "dpkg-deb", "-x", f, dir), os.Remove(f)); err != nil {
				return err
			}
		}
		return nil
	})
}

func unpack(ctx context.Context, dir string) error {
	found, _ := filepath.Glob(filepath.Join(dir, "*.orig.tar.*")) // the pattern is well-formed
	if len(found) != 1 {
		return fmt.Errorf("unpack source: %d archives, want one", len(found))
	}
	return command(ctx, dir, nil, "tar", "xf", found[0], "--strip-components=1")
}

// versions lists what the archive has, newest first.
func (c *cache) versions(ctx context.Context, pkg string) ([]string, error) {
	out, err := c.apt(ctx, c.dir, "apt-cache", "showsrc", "--only-source", pkg)
	if err != nil {
		return nil, err
	}
	var versions []string
	for line := range strings.Lines(string(out)) {
		if v, ok := strings.CutPrefix(line, "Version: "); ok {
			versions = append(versions, strings.TrimSpace(v))
		}
	}
	slices.SortFunc(versions, func(a, b string) int {
		if exec.CommandContext(ctx, "dpkg", "--compare-versions", a, "gt", b).Run() == nil {
			return -1
		}
		return 1
	})
	return slices.Compact(versions), nil
}

// update reads lists of packages and sources from where apt gets its packages.
// The system's own lists stay as they are.
func (c *cache) update(ctx context.Context) error {
	if c.updated {
		return nil
	}
	for _, d := range []string{"apt/sources", "apt/lists/partial", "apt/cache/archives/partial", "apt/state"} {
		if err := os.MkdirAll(filepath.Join(c.dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := c.sourcesList(); err != nil {
		return err
	}
	if _, err := c.apt(ctx, c.dir, "apt-get", "update", "-qq"); err != nil {
		return err
	}
	c.updated = true
	return nil
}

// sourcesList asks for the sources too of what Debian's own entries name.
func (c *cache) sourcesList() error {
	found := 0
	for from, change := range map[string]func(string) string{
		"/etc/apt/sources.list":                  wantSource,
		"/etc/apt/sources.list.d/debian.list":    wantSource,
		"/etc/apt/sources.list.d/debian.sources": func(s string) string { return typesLine.ReplaceAllString(s, "Types: deb deb-src") },
	} {
		b, err := os.ReadFile(from)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read apt's sources: %w", err)
		}
		to := filepath.Join(c.dir, "apt/sources", "from-"+filepath.Base(from))
		if filepath.Base(from) == "sources.list" {
			to = filepath.Join(c.dir, "apt/sources", "from.list")
		}
		if err := os.WriteFile(to, []byte(change(string(b))), 0o644); err != nil {
			return err
		}
		found++
	}
	if found == 0 {
		return errors.New("find apt's sources: none in /etc/apt; the suites are fetched on Debian")
	}
	return nil
}

var (
	typesLine = regexp.MustCompile(`(?m)^Types:.*$`)
	debLine   = regexp.MustCompile(`(?m)^deb\s+(.*)$`)
)

func wantSource(list string) string { return debLine.ReplaceAllString(list, "deb-src $1\ndeb $1") }

func (c *cache) apt(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	own := []string{
		"-o", "Dir::Etc::SourceList=/dev/null",
		"-o", "Dir::Etc::SourceParts=" + filepath.Join(c.dir, "apt/sources"),
		"-o", "Dir::State::Lists=" + filepath.Join(c.dir, "apt/lists"),
		"-o", "Dir::Cache=" + filepath.Join(c.dir, "apt/cache"),
		"-o", "APT::Sandbox::User=root",
	}
	cmd := exec.CommandContext(ctx, program, append(own, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// module returns a copy of a Go module's source, in the version that go.mod
// names, in which tests may write.
func (c *cache) module(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", path).Output()
	if err != nil {
		return "", fmt.Errorf("fetch %s: %w: %s", path, err, out)
	}
	var m struct{ Dir, Version string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", fmt.Errorf("fetch %s: %w", path, err)
	}
	return c.made(filepath.Base(filepath.Dir(path))+"-"+m.Version, m.Version, func(dir string) error {
		if err := command(ctx, dir, nil, "cp", "-rT", m.Dir, dir); err != nil {
			return err
		}
		return command(ctx, dir, nil, "chmod", "-R", "u+w", dir)
	})
}

// command runs a program and shows what it said only if it fails. Being started
// by make must not be felt by a make that it starts.
func command(ctx context.Context, dir string, env []string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(environment(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w:\n%s", program, strings.Join(args, " "), err, bytes.TrimSpace(out[max(0, len(out)-4000):]))
	}
	return nil
}

func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") || strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "GOFLAGS=")
	})
}
