package live

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"html"
	"net/http"
	"path"
	"time"
)

//go:embed page
var files embed.FS

// policy lets the page load what is served beside it, speak to who serves it, and no more: it can have no script but its
// own, and none can make markup of a text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// A file is one that the page is made of, ready to be served.
type file struct {
	name string
	body []byte
	tag  string
}

// Page serves the page that shows snapshots: at / and, below /page/, what it is made of. It has to be mounted where these
// paths lead to it, on the host whose GET /v1/state answers with a [Snapshot]. Nothing in it is secret: a token is asked
// for by the page itself, which shows it to that host alone.
func Page(title string) http.Handler {
	index := load("index.html")
	index.body = bytes.ReplaceAll(index.body, []byte("{{title}}"), []byte(html.EscapeString(title)))
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", seal(index))
	for _, name := range []string{"live.css", "live.js", "icon.svg"} {
		mux.Handle("GET /page/"+name, seal(load(name)))
	}
	return mux
}

func load(name string) file {
	body, err := files.ReadFile(path.Join("page", name))
	if err != nil {
		panic(err) // the file is part of the program
	}
	return file{name: name, body: body}
}

func seal(f file) file {
	f.tag = fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(f.body))[:16])
	return f
}

func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.body))
}
