// Package legs makes the two connections of a session, the client leg and the
// upstream leg, each plaintext or TLS of its own.
//
// [Redis] speaks TLS from the first byte. [Postgres] reads what a client says
// before its StartupMessage (pgwire.Greeter knows what that may be) and answers
// it as a server would by the listener's own policy: SSLRequest with S or N,
// GSSENCRequest with N, a TLS handshake at once if it names the protocol. What a
// session gets begins with the StartupMessage, whatever came before it; nothing
// that was read in plaintext is ever taken for a part of the TLS stream. The
// upstream is dialled only then, and asked for TLS by lockfaultd itself, so that
// a health probe that asks for TLS and leaves disturbs nobody.
//
// A CancelRequest is no session: it goes, as it was read, to the upstream that
// issued its key ([Cancels]), over that upstream's leg, and the client's end is
// closed once the upstream's has been. No rule delays it.
//
// Policies come as *tls.Config and are not changed. Each wait for a peer ends:
// with the context, after [greetingTime] for a client, after [dialTime] for an
// upstream. An upstream that declines TLS is an error, never plaintext.
package legs
