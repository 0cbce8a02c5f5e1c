package check

// Judge says what the history proves.
func Judge(in Input) Result { return Result{} }

// A Result is everything that the judge has to say.
type Result struct {
	Facts    Facts
	Verdicts []Verdict
	Counters []Counter
	Fences   []FenceFigure
}
