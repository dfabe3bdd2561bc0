// Package spool is the durable log between the hooks of one session and its
// dispatcher: many short-lived writers, one reader.
//
// # Files
//
// A session directory (0700, files 0600: the text in it is unmasked) holds
//
//	append.lock    the writers' lock; its content is the state (see state)
//	<seq>.seg      segments, named by the first sequence number in them
//	inbox/         records whose writer could not get the lock in time
//
// # Frames
//
// A frame is one line with a newline in front as well as behind:
//
//	\nW1 <seq> <generation> <length> <crc32c> <json>\n
//
// or, for a note, the same behind N1, with the number of the last record before
// it. Notes are for readers that ask for them; they take no number.
//
// seq and length are decimal, generation and crc32c hexadecimal; the checksum
// covers the line up to the length, and the JSON. JSON holds no raw newline, so a
// frame cut short by its writer's death ends at the newline that the next writer
// puts in front of its own: recovery is to skip to the next newline. A reader
// never takes a damaged line for the end, and nobody cuts anything out of the
// middle.
//
// # Invariants
//
//   - A sequence number is given under the lock, to one record, once; the
//     numbers of whole frames are 1, 2, 3, ... in file order.
//   - Append returns nil only when every frame is completely written (to the page
//     cache: it survives the death of every process, not a power cut).
//   - The state lags the segments, by the frames of writers killed between
//     writing frames and state; it never leads them. The next writer reads that
//     stretch.
//   - A writer that fails (a full disk) takes its own bytes back off the end,
//     under the lock, before anybody else can append.
package spool
