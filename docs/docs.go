// Package docs holds the pages of this folder that the program itself prints,
// as they are written: there is one text, for those who read the folder and for
// those who ask on the command line.
//
// It has no code but what hands the text out.
package docs

import _ "embed"

//go:embed verdicts.md
var verdicts string

// Verdicts returns the page about verdicts, in Markdown.
func Verdicts() string { return verdicts }
