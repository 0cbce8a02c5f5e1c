// Package admin serves the HTTP API by which a daemon that runs is told things.
//
//	GET  /v1/signals         the signals that armed rules wait for, and how many gates do now
//	POST /v1/signals/NAME    give the signal that gates wait for as until:signal:NAME
//	GET  /v1/events          the history while it is written
//
// A [Handler] holds the routes; [Listen] opens its listener, on loopback unless there is a token, and
// [Server.Close] ends it. Answers are JSON. A browser's page from elsewhere can give no signal: it is refused by its
// Origin and, where no token guards the API, by the name that it thinks it speaks to.
//
// The package decides nothing: what a signal does is up to the [Gates] that it is given.
package admin
