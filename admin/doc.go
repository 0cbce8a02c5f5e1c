// Package admin serves the HTTP API by which a daemon that runs is looked at and told things. Its routes are those of
// the OpenAPI document that it serves, openapi.json.
//
// A [Handler] holds the routes; [Listen] opens its listener, on loopback unless there is a token, and
// [Server.Close] ends it. Answers are JSON. A browser's page from elsewhere can change nothing: it is refused by its
// Origin and, where no token guards the API, by the name that it thinks it speaks to.
//
// A request is checked here, as far as that can be without knowing the daemon; everything else is up to the [Parts]
// that it is given. What is not among them is not served.
package admin
