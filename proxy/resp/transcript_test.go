package resp

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The files hold what client libraries and a real server said to each other:
// > from the client, < from the server, = the ops that the replies since the
// last = completed.
func TestC102Handshakes(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) == 0 {
		t.Fatal("no transcripts")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		scripts := NewScripts()
		for i, connection := range strings.Split(string(text), "--- another connection\n") {
			t.Run(filepath.Base(file)+"/"+strconv.Itoa(i), func(t *testing.T) { transcript(t, scripts, connection) })
		}
	}
}

var tokenName = regexp.MustCompile(`T\((\w+)\)`)

func transcript(t *testing.T, scripts *Scripts, text string) {
	opt := testOptions()
	opt.Scripts = scripts
	tr := NewTracker(opt)
	var got []string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line[0] == '=' {
			want := tokenName.ReplaceAllStringFunc(line[1:], func(s string) string { return tok(s[2 : len(s)-1]) })
			if len(got) == 0 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
			got = got[min(1, len(got)):]
			continue
		}
		if len(got) > 0 {
			t.Errorf("not told: %q", got)
			got = nil
		}
		b, err := strconv.Unquote(line[1:])
		if err != nil {
			t.Fatal(err)
		}
		if line[0] == '>' {
			got = append(got, exchange(t, tr, b, "")...)
		} else {
			got = append(got, exchange(t, tr, "", b)...)
		}
	}
	if len(got) > 0 || tr.told || !tr.queue.empty() {
		t.Errorf("left over: %q, blind %v", got, tr.told)
	}
	if tr.ClientName() == "" {
		t.Error("no client name")
	}
}
