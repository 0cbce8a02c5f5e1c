// Package witness tells, over side connections, what the wire cannot.
//
// A [Clock] looks at the wall clock of a Redis, since leases end by that, and at
// who answers, since a lock does not outlive a failover for sure.
//
// Side connections go straight to the server, secured as the proxied ones are,
// and never through the proxy. A witness that is down, slow or refused is said
// once and counted; nothing that is proxied waits for it longer than a reply may
// ([proxy.Patience]).
package witness
