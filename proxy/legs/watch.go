package legs

import "strings"

// A Watch is what the legs of one Postgres session have to hear of it. Its
// methods are called by one goroutine at a time.
type Watch struct {
	legs   *Postgres
	forget func()
}

// Watch begins to follow a session.
func (p *Postgres) Watch() *Watch { return &Watch{legs: p, forget: func() {}} }

// KeyData notes the key by which the session may be cancelled.
func (w *Watch) KeyData(pid int32, key []byte) {
	w.forget()
	w.forget = w.legs.Cancels.Issued(w.legs, pid, key)
}

// Refused explains why upstream refused the session, if that is due to TLS
// ending here.
func (w *Watch) Refused(sqlstate, message string) {
	for _, text := range unbound {
		if strings.Contains(message, text) {
			w.legs.Log.Warn("upstream refused a session", "upstream", w.legs.Address, "sqlstate", sqlstate, "err", text, "remedy", remedy)
			return
		}
	}
}

// Ended forgets the session.
func (w *Watch) Ended() { w.forget() }

// unbound are the errors of a server that finds SCRAM bound to another channel
// than its own.
var unbound = []string{"SCRAM channel binding check failed", "SCRAM channel binding negotiation error"}

// remedy is what to do where TLS ends here and a client binds SCRAM to it.
const remedy = "give the listener the server's own certificate and key, or set channel_binding=disable in the client, or use a plaintext client leg"
