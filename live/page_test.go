package live

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, h http.Handler, method, path string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Result()
}

func text(t *testing.T, path string) string {
	t.Helper()
	w := httptest.NewRecorder()
	Page("lockfaultd").ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Body.String()
}

func TestPageServes(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		status       int
		kind         string
	}{
		{"GET", "/", 200, "text/html"},
		{"HEAD", "/", 200, "text/html"},
		{"GET", "/page/live.css", 200, "text/css"},
		{"GET", "/page/live.js", 200, "text/javascript"},
		{"GET", "/page/icon.svg", 200, "image/svg+xml"},
		{"GET", "/page/", 404, ""},
		{"GET", "/page/index.html", 404, ""},
		{"GET", "/page/../page.go", 307, ""},
		{"GET", "/v1/state", 404, ""},
		{"POST", "/", 405, ""},
	} {
		r := get(t, Page("lockfaultd"), tt.method, tt.path)
		if r.StatusCode != tt.status || !strings.HasPrefix(r.Header.Get("Content-Type"), tt.kind) {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.path, r.StatusCode, r.Header.Get("Content-Type"), tt.status, tt.kind)
		}
		if tt.status != 200 {
			continue
		}
		csp := r.Header.Get("Content-Security-Policy")
		if strings.Contains(csp, "unsafe") || !strings.HasPrefix(csp, "default-src 'none'") || r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", tt.path, r.Header)
		}
	}
}

func TestPageIsNotSentTwice(t *testing.T) {
	r := httptest.NewRequest("GET", "/page/live.js", nil)
	r.Header.Set("If-None-Match", get(t, Page(""), "GET", "/page/live.js").Header.Get("ETag"))
	w := httptest.NewRecorder()
	Page("").ServeHTTP(w, r)
	if w.Code != http.StatusNotModified {
		t.Error(w.Code)
	}
}

func TestTitleIsEscaped(t *testing.T) {
	w := httptest.NewRecorder()
	Page("</title><script>alert(1)</script>").ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if strings.Contains(w.Body.String(), "<script>alert") || strings.Contains(w.Body.String(), "{{") {
		t.Error(w.Body)
	}
}

// namespace is a name and no address: it is asked for by nobody.
const namespace = "http://www.w3.org/2000/svg"

var outside = regexp.MustCompile(`(?i)https?:|(?:src|href|action|url\(|@import|fetch\(|from)\s*=?\s*["'(]?//`)

func TestPageRefersToNothingOutside(t *testing.T) {
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(path)
		body := strings.ReplaceAll(string(b), namespace, "")
		if at := outside.FindString(body); at != "" {
			t.Errorf("%s refers to the outside: %q", path, at)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`<img src="//cdn.example/x">`, `url(//x)`, `fetch("https://x")`, `@import "//x"`} {
		if !outside.MatchString(bad) {
			t.Errorf("%s was not found", bad)
		}
	}
}

// What the policy forbids must not be in the page, or it would not work; and no text may become markup.
func TestPageHasNoMarkupFromText(t *testing.T) {
	if bad := regexp.MustCompile(`<script>|<script [^>]*>[^<]|<style| style=|\son\w+=|javascript:`).FindString(text(t, "/")); bad != "" {
		t.Errorf("index.html: %q", bad)
	}
	if bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|setAttribute\("style`).FindString(text(t, "/page/live.js")); bad != "" {
		t.Errorf("live.js: %q", bad)
	}
}

// Each id that the script asks for is in the page, once.
func TestScriptAndPageAgree(t *testing.T) {
	page := text(t, "/")
	for _, m := range regexp.MustCompile(`(?:\$|go)\("([\w-]+)"\)`).FindAllStringSubmatch(text(t, "/page/live.js"), -1) {
		if n := strings.Count(page, `id="`+m[1]+`"`); n != 1 {
			t.Errorf("the script asks for %q, which is in the page %d times", m[1], n)
		}
	}
}
