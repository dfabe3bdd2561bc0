// Package record is the wire contract: the sections a rule can select, and the
// records that a hook event yields (design §4, seed §3).
//
// A record is one JSON object on one line. What the session said is carried as
// the bytes the client sent: a record is an envelope written around them, never
// a decoding and encoding of them.
package record
