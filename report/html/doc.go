// Package html writes a report as one page for a browser: no script, no network, no file
// beside it. It takes a report.View, lays it out and draws each root cause as an inline
// SVG; it says nothing of its own about the run.
//
// Whatever came from the wire goes through html/template, the text of drawings too, and
// the page forbids itself scripts and requests by a Content-Security-Policy. The same Run
// makes the same bytes.
package html
