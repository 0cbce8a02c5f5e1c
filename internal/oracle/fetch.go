package main

import (
	"archive/tar"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

const (
	source = "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n"
	pkg    = "postgresql-15"
	within = "/src/test/regress/sql/"
)

// fetch returns the directory of Postgres's regression scripts. They come
// through apt, with lists and a cache of its own, and stay in the user's cache.
func fetch() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory: %w", err)
	}
	dir := filepath.Join(cache, "lockfaultd-oracle")
	sql := filepath.Join(dir, "sql")
	if list, _ := filepath.Glob(filepath.Join(sql, "*.sql")); len(list) > 0 {
		return sql, nil
	}
	if err := download(dir); err != nil {
		return "", err
	}
	archives, err := filepath.Glob(filepath.Join(dir, pkg+"_*.orig.tar.bz2"))
	if err != nil || len(archives) != 1 {
		return "", fmt.Errorf("find the source that apt fetched to %s: %d archives, expected one", dir, len(archives))
	}
	return sql, unpack(archives[0], sql)
}

func download(dir string) error {
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return fmt.Errorf("make cache: %w", err)
		}
	}
	list := filepath.Join(dir, "sources.list")
	if err := os.WriteFile(list, []byte(source), 0o644); err != nil {
		return fmt.Errorf("write sources: %w", err)
	}
	options := []string{
		"-qq", "-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::State::Lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache"),
		"-o", "APT::Sandbox::User=",
	}
	for _, command := range [][]string{{"update"}, {"source", "--download-only", pkg}} {
		c := exec.Command("apt-get", append(options[:len(options):len(options)], command...)...)
		c.Dir, c.Stdout, c.Stderr = dir, os.Stderr, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("apt-get %s (on Debian; elsewhere give -dir): %w", strings.Join(command, " "), err)
		}
	}
	return nil
}

// unpack writes the scripts of an archive to a directory.
func unpack(archive, to string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("open source: %w", err)
	}
	defer f.Close()
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("make cache: %w", err)
	}
	for r := tar.NewReader(bzip2.NewReader(f)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read source: %w", err)
		}
		if !strings.Contains(h.Name, within) || path.Ext(h.Name) != ".sql" {
			continue
		}
		script, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, path.Base(h.Name)), script, 0o644)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}
