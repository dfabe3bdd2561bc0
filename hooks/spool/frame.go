package spool

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"ways/hooks/crc"
)

// MaxFrame bounds one frame's JSON, in bytes. It leaves room for an envelope
// around the largest payload; a longer line is damage.
const MaxFrame = 80 << 20

// MaxNote bounds a note, in bytes.
const MaxNote = 64 << 10

// What a frame holds.
const (
	recordMark = "W1 "
	noteMark   = "N1 "
)

// Frame is one record in the spool, or a note.
type Frame struct {
	// Seq is the record's sequence number; of a note, the last record's before it.
	Seq uint64
	// Note: JSON is a note.
	Note bool
	// Generation is the index generation the hook selected the record under.
	Generation uint64
	// JSON is the record.
	JSON []byte
	// At is where the frame begins, Next where the one behind it does.
	At, Next Position
}

// Position is a place in the spool.
type Position struct {
	// Segment is the first sequence number of the segment.
	Segment uint64
	// Offset is in bytes from the segment's beginning.
	Offset int64
}

// checksum is the CRC-32C of b behind what sum covers already, for readers: they
// live long enough for its preparations. Writers take crc.Castagnoli, which is the
// same.
func checksum(sum uint32, b []byte) uint32 {
	return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
}

// appendMarked appends a frame to dst.
func appendMarked(dst []byte, mark string, seq, generation uint64, record []byte) []byte {
	dst = appendHeader(dst, mark, seq, generation, record)
	dst = append(dst, record...)
	return append(dst, '\n')
}

// headerRoom is more than a header takes.
const headerRoom = len("\nW1 ") + 20 + 1 + 16 + 1 + 20 + 1 + 8 + 1

// appendDraft appends the frame of a draft. The header holds what is known when
// the record is spelled: the record is spelled behind room for it, and moved up.
// It can be megabytes, and memory that is new to a process costs more than a move.
func appendDraft(dst []byte, seq, generation uint64, draft Draft) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, headerRoom)...)
	dst = draft.Append(dst, seq)
	record := dst[at+headerRoom:]
	var room [headerRoom]byte
	header := appendHeader(room[:0], recordMark, seq, generation, record)
	n := at + copy(dst[at:], header)
	n += copy(dst[n:], record)
	return append(dst[:n], '\n')
}

func appendHeader(dst []byte, mark string, seq, generation uint64, record []byte) []byte {
	dst = append(dst, '\n')
	start := len(dst)
	dst = append(dst, mark...)
	dst = strconv.AppendUint(dst, seq, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, generation, 16)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, int64(len(record)), 10)
	sum := crc.Castagnoli(crc.Castagnoli(0, dst[start:]), record)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, uint64(sum), 16)
	return append(dst, ' ')
}

// errNotFrame is the error of a line that is no whole frame.
var errNotFrame = errors.New("not a whole frame")

// parseFrame reads one line, without its newlines. The frame's JSON aliases it.
func parseFrame(line []byte) (Frame, error) {
	var f Frame
	rest, ok := bytes.CutPrefix(line, []byte(recordMark))
	if !ok {
		rest, ok = bytes.CutPrefix(line, []byte(noteMark))
		f.Note = ok
	}
	if !ok {
		return f, fmt.Errorf("%w: no W1 mark", errNotFrame)
	}
	var fields [4]uint64
	for i, base := range []int{10, 16, 10, 16} {
		var word []byte
		word, rest, ok = bytes.Cut(rest, []byte{' '})
		if !ok || len(word) > 20 {
			return f, fmt.Errorf("%w: header cut short", errNotFrame)
		}
		n, err := strconv.ParseUint(string(word), base, 64)
		if err != nil {
			return f, fmt.Errorf("%w: header is no number", errNotFrame)
		}
		fields[i] = n
	}
	if fields[2] != uint64(len(rest)) {
		return f, fmt.Errorf("%w: %d of %d bytes", errNotFrame, len(rest), fields[2])
	}
	// The checksum covers the header up to the length, as it is spelled.
	sumWidth := len(strconv.FormatUint(fields[3], 16))
	head := line[:len(line)-len(rest)-sumWidth-2]
	if sum := checksum(checksum(0, head), rest); uint64(sum) != fields[3] {
		return f, fmt.Errorf("%w: checksum differs", errNotFrame)
	}
	f.Seq, f.Generation, f.JSON = fields[0], fields[1], rest
	if f.Seq == 0 && !f.Note {
		return f, fmt.Errorf("%w: sequence number 0", errNotFrame)
	}
	return f, nil
}
