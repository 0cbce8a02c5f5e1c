// Package recorder is a plain copying TCP proxy that remembers what passed
// through it, to prove that another proxy changes nothing.
//
// One recorder is put on each side of the proxy under test:
//
//	client -> outer recorder -> proxy -> inner recorder -> server
//
// and [Compare] then says whether each connection of the outer one has a
// connection of the inner one with the same bytes in both directions.
//
// A stream is not stored. It is hashed in blocks of 4 KiB as it passes, and its
// first 4 KiB are kept, so that a difference can be located and, near
// the start, shown.
//
// A recorder passes on a half-close as a half-close and a reset as a reset.
// Bytes that are on their way when a connection is reset may be lost by any
// proxy, so of a connection that one of the two recorders saw break, a stream may be
// shorter on the side that it flowed to: to the client only if the client broke it. Everything before must still be equal; of
// the last, incomplete block of the shorter one only what lies in the first
// 4 KiB can be compared.
package recorder
