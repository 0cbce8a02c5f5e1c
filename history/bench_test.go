package history

import "testing"

// BenchmarkReadOp reads the line of a guarded write.
func BenchmarkReadOp(b *testing.B) {
	line := []byte(`{"type":"op","seq":14,"reply_seq":15,"session":2,"actor":"A1","proto":"pg","kind":"write","verb":"UPDATE","sql":{"table":"counter","set":[{"column":"value","value":{"h":"0b54ff21c7a8e6d3","i":7,"n":true}},{"column":"fence","value":{"h":"0b54ff21c7a8e6d4","i":8,"n":true}}],"where":[{"column":"id","op":"=","value":{"h":"c2a1e0b7d94f5386","i":1,"n":true}},{"column":"fence","op":"\u003c","value":{"h":"c2a1e0b7d94f5386","i":1,"n":true}}]},"tx":9,"implicit":true,"rows":1,"outcome":"done","a":20000000,"f":20010000,"r":20900000,"d":20915000,"z":20900000,"term":{"id":1,"confidence":0.9}}` + "\n")
	same := names{}
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, ok := quickOp(line, same); !ok {
			b.Fatal("it cannot be read")
		}
	}
}
