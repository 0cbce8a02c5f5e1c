package urlquery

import (
	"net/url"
	"testing"
)

func TestEditLeavesTheOthersAsTyped(t *testing.T) {
	const others = "options=-c%20search_path%3Dx&b=+&%62=~!,/&c&d=a;b&%zz=1&&b=2"
	for _, c := range []struct{ raw, want string }{
		{others + "&ssl=1", others + "&mode=off"},
		{"ssl=1&" + others, others + "&mode=off"},
		{others + "&ssl=1&mode=on&ssl=2", others + "&mode=off"},
		{"m%6fde=on&" + others, "m%6fde=off&" + others},
		{"mode=%6Fff&" + others, "mode=%6Fff&" + others},
		{"mode=on&mode=off&ssl", "mode=off"},
		{"", "mode=off"},
		{"ssl=1", "mode=off"},
	} {
		q, _ := url.ParseQuery(c.raw)
		q.Del("ssl")
		q.Set("mode", "off")
		if got := Edit(c.raw, q); got != c.want {
			t.Errorf("%s: %s, want %s", c.raw, got, c.want)
		}
	}
	if got := Edit("", nil); got != "" {
		t.Errorf("nothing became %q", got)
	}
	if got := Edit("a=1", url.Values{"b": {"x y", "&"}}); got != "b=x+y&b=%26" {
		t.Errorf("new ones: %q", got)
	}
}
