package check

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockfaultd/lockfaultd/lock"
)

func limitsOf(t *testing.T, window, kept int, lines ...string) string {
	s := &script{hash: lock.NewHasher([]byte("t")), label: map[string]uint64{}, lease: time.Hour}
	for _, l := range lines {
		if err := s.line(strings.Fields(l)); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprint(judge(s.in, window, kept).result().Facts.Limits)
}

// Nobody is to take for all that there is what the judge did not look at.
func TestLimitsThatWereMetAreTold(t *testing.T) {
	long := []string{"A acquire lock:c=a 1-2"}
	for i := range 200 {
		long = append(long, fmt.Sprintf("A update t[id=1] v:=%d %d-%d", i, 10+4*i, 11+4*i))
	}
	if got := limitsOf(t, 16, 64, long...); got != fmt.Sprint([]Limit{{boundWords[boundTerms], 1}}) {
		t.Errorf("a long term: %s", got)
	}
	var hung []string
	for i := range mostHangs + 100 {
		hung = append(hung, fmt.Sprintf("A%d update t[id=1] v:=%d %d-?", i, i, 10+i))
	}
	for i := range 100 {
		hung = append(hung, fmt.Sprintf("B update u[id=1] v:=%d %d-%d", i, 5000+4*i, 5001+4*i))
	}
	if got := limitsOf(t, 50, 1<<16, hung...); !strings.Contains(got, boundWords[boundHanging]) {
		t.Errorf("writes without an answer: %s", got)
	}
	var crowd []string
	for i := range mostTogether + 2 {
		crowd = append(crowd, fmt.Sprintf("A%d select t[id=1] v=7 tx1 %d-%d", i, 10+i, 11+i), fmt.Sprintf("A%d update t[id=1] v:=8 tx1 %d-%d", i, 50+i, 51+i),
			fmt.Sprintf("A%d commit tx1 %d-%d", i, 80+i, 81+i))
	}
	if got := limitsOf(t, 1000, 1000, crowd...); got != fmt.Sprint([]Limit{{boundWords[boundCluster], mostTogether + 2}}) {
		t.Errorf("many at once: %s", got)
	}
	if got := limitsOf(t, 1000, 1000, long...); got != "[]" {
		t.Errorf("nothing was met: %s", got)
	}
}

// A sum that was given up has no figures, and says why.
func TestASumThatIsGivenUpSaysWhy(t *testing.T) {
	for _, c := range []struct{ lines, why string }{
		{"A update counter[id=1] value:=8 20-21", ""},
		{"A update counter[name=x] value:=8 20-21", "another row"},
		{"A update counter[id=1] value+=1 20-21; A update counter[id=1,kind=2] value+=1 30-31", "several rows"},
		{"A insert counter id:=1 value:=0 20-25; B update counter[id=1] value+=1 24-28", "on its way"},
	} {
		s := &script{hash: lock.NewHasher([]byte("t")), label: map[string]uint64{}, lease: time.Second}
		for _, l := range append([]string{"counter counter.value 7 9"}, strings.Split(c.lines, "; ")...) {
			if err := s.line(strings.Fields(l)); err != nil {
				t.Fatal(err)
			}
		}
		got := Judge(s.in).Counters[0]
		if c.why == "" && got.GivenUp != "" || !strings.Contains(got.GivenUp, c.why) {
			t.Errorf("%s: %+v", c.lines, got)
		}
		if c.why != "" && (got.Known || !got.Unbounded || got.Acknowledged != 0 || got.NetDeficit != 0) {
			t.Errorf("%s: %+v", c.lines, got)
		}
	}
}
