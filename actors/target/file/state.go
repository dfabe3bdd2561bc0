package file

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"

	"ways/hooks/chain"
)

// The journal is a file of fixed size: two slots, written in turn so that a writer
// killed inside a write leaves the other one whole, and a mark that says whether
// the newer slot's append was finished.
const (
	slotSize    = 4096
	markAt      = 2 * slotSize
	markSize    = 16
	journalSize = markAt + markSize

	// maxWriters is how many writers' last records are remembered.
	maxWriters = 100
	// maxIDs is how many deliveries that came in no order are remembered.
	maxIDs = 64
	// prefixSize is how much of an entry its intent repeats, to recognise a
	// fragment of it.
	prefixSize = 64

	keySize    = 12
	writerSize = keySize + 16
	writersAt  = 320
	idsAt      = writersAt + maxWriters*writerSize
	linesAt    = idsAt + maxIDs*keySize
	sumAt      = slotSize - 8

	// maxLines is how many records one append can hold: what the slot has room for.
	maxLines = (sumAt - linesAt - 8) / lineSize
	lineSize = 12

	journalMagic = 0x314c4e4a_53594157 // "WAYSJNL1"
)

// key is the beginning of a SHA-256: of a delivery's id, or of a session and rule.
type key [keySize]byte

func keyOf(parts ...string) key {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	var k key
	copy(k[:], h.Sum(nil))
	return k
}

// intent says which bytes of which file an append is about to write, or wrote.
type intent struct {
	// open: whether it was finished is not known yet.
	open bool
	// oneLine: no newline lies inside the entry, apart from one in front that
	// ends a foreign line.
	oneLine bool
	// synced: the entry counts as written once the disk has it.
	synced bool
	// known: the delivery has an id. unordered: it came in no order.
	known, unordered bool
	chained          bool
	log              identity
	// The entry is the bytes from begin on, size of them, sum their CRC-32C, and
	// prefix how they begin.
	begin, size int64
	sum         uint32
	prefix      []byte
	// writer is the session and rule, seq and at the record's number and time
	// (Unix nanoseconds), id the delivery.
	writer key
	seq    uint64
	at     int64
	id     key
	// hash is the chain's head behind the entry.
	hash [sha256.Size]byte
	// lines are the entry's records when there are several, of one writer and in
	// order; nil for one. seq, at and hash are the last one's then.
	lines []part
}

// part is one of an append's several records: its bytes, newline included, their
// CRC-32C, and how much its number is above that of the record before; 0 for the first.
type part struct{ size, sum, step uint32 }

func (i *intent) end() int64 { return i.begin + i.size }

// records is how many the entry holds.
func (i *intent) records() uint64 { return max(1, uint64(len(i.lines))) }

// writer is the last record of one session and rule that was written.
type writer struct {
	key key
	seq uint64
	// at is the latest time of any of its records.
	at int64
}

// state is what a journal holds.
type state struct {
	generation uint64
	intent     intent
	// head is the chain's, without an open intent.
	head chain.Head
	// checkpointed is the chain's number at its last checkpoint.
	checkpointed uint64
	// In the file chainLog, the chain's record chainFirst is at chainBegin, and
	// none before it.
	chainLog   identity
	chainBegin int64
	chainFirst uint64
	// adoptedFrom to adoptedTo are records that were found in the log and not in
	// the journal.
	adoptedFrom, adoptedTo uint64
	// writers has the most recent first.
	writers []writer
	ids     [maxIDs]key
	nextID  uint32
}

// finish says what became of the open intent.
func (s *state) finish(written bool) {
	i := &s.intent
	i.open = false
	if !written {
		i.size, i.prefix, i.lines = 0, nil, nil
		return
	}
	if i.chained {
		s.head = chain.Head{N: s.head.N + i.records(), Hash: i.hash}
	}
	switch {
	case !i.known:
	case i.unordered:
		s.ids[s.nextID%maxIDs] = i.id
		s.nextID++
	default:
		s.remember(i.writer, i.seq, i.at)
	}
}

// remember moves a writer to the front with its last record.
func (s *state) remember(k key, seq uint64, at int64) {
	w := writer{k, seq, at}
	for i := range s.writers {
		if s.writers[i].key == k {
			w.at = max(at, s.writers[i].at)
			copy(s.writers[1:i+1], s.writers[:i])
			s.writers[0] = w
			return
		}
	}
	if len(s.writers) < maxWriters {
		s.writers = append(s.writers, writer{})
	}
	copy(s.writers[1:], s.writers)
	s.writers[0] = w
}

// written reports whether a record was written before. Of an ordered writer that
// is one not behind its last one, unless it is newer than all of those: then the
// session's numbers have begun anew, because its spool was deleted.
func (s *state) written(unordered bool, id, writer key, seq uint64, at int64) bool {
	if unordered {
		for i := range s.ids {
			if s.ids[i] == id {
				return true
			}
		}
		return false
	}
	for i := range s.writers {
		if s.writers[i].key == writer {
			return seq <= s.writers[i].seq && at <= s.writers[i].at
		}
	}
	return false
}

// Bits of a slot's flags.
const (
	flagOpen = 1 << iota
	flagOneLine
	flagSynced
	flagKnown
	flagUnordered
	flagChained
)

func (s *state) encode(b []byte, table *crc32.Table) {
	clear(b[:slotSize])
	le := binary.LittleEndian
	i := &s.intent
	var flags uint64
	for _, f := range []struct {
		on  bool
		bit uint64
	}{
		{i.open, flagOpen},
		{i.oneLine, flagOneLine},
		{i.synced, flagSynced},
		{i.known, flagKnown},
		{i.unordered, flagUnordered},
		{i.chained, flagChained},
	} {
		if f.on {
			flags |= f.bit
		}
	}
	for n, v := range [...]uint64{
		journalMagic, s.generation, flags, i.log.device, i.log.inode, uint64(i.begin), uint64(i.size),
		uint64(i.sum), i.seq, uint64(i.at), s.head.N, s.checkpointed, s.chainLog.device, s.chainLog.inode,
		uint64(s.chainBegin), s.chainFirst, s.adoptedFrom, s.adoptedTo,
		uint64(len(i.prefix)), uint64(len(s.writers)), uint64(s.nextID),
	} {
		le.PutUint64(b[8*n:], v)
	}
	copy(b[168:], i.writer[:])
	copy(b[180:], i.id[:])
	copy(b[192:], i.hash[:])
	copy(b[224:], s.head.Hash[:])
	copy(b[256:256+prefixSize], i.prefix)
	at := writersAt
	for n := range s.writers {
		w := &s.writers[n]
		copy(b[at:], w.key[:])
		le.PutUint64(b[at+keySize:], w.seq)
		le.PutUint64(b[at+keySize+8:], uint64(w.at))
		at += writerSize
	}
	for n := range s.ids {
		copy(b[idsAt+n*keySize:], s.ids[n][:])
	}
	le.PutUint64(b[linesAt:], uint64(len(i.lines)))
	for n, l := range i.lines {
		at := linesAt + 8 + n*lineSize
		le.PutUint32(b[at:], l.size)
		le.PutUint32(b[at+4:], l.sum)
		le.PutUint32(b[at+8:], l.step)
	}
	le.PutUint32(b[sumAt:], crc32.Checksum(b[:sumAt], table))
}

// slotGeneration is the generation that a slot claims; 0 for one that holds none.
func slotGeneration(b []byte) uint64 {
	if binary.LittleEndian.Uint64(b) != journalMagic {
		return 0
	}
	return binary.LittleEndian.Uint64(b[8:])
}

// decode reads a slot; false for a damaged one. What it reads was written by
// encode, or is refused: nothing in it is out of its range.
func (s *state) decode(b []byte, table *crc32.Table) bool {
	le := binary.LittleEndian
	if slotGeneration(b) == 0 || le.Uint32(b[sumAt:]) != crc32.Checksum(b[:sumAt], table) {
		return false
	}
	var v [21]uint64
	for n := range v {
		v[n] = le.Uint64(b[8*n:])
	}
	prefix, writers := v[18], v[19]
	begin, size := int64(v[5]), int64(v[6])
	if prefix > prefixSize || writers > maxWriters || begin < 0 || size < 0 || begin+size < 0 || v[20] > 1<<32-1 {
		return false
	}
	lines, whole := linesOf(b)
	if lines != nil && whole != size {
		return false
	}
	has := func(bit uint64) bool { return v[2]&bit != 0 }
	*s = state{
		generation: v[1],
		intent: intent{
			open: has(flagOpen), oneLine: has(flagOneLine), synced: has(flagSynced), known: has(flagKnown),
			unordered: has(flagUnordered), chained: has(flagChained),
			log: identity{v[3], v[4]}, begin: begin, size: size, sum: uint32(v[7]),
			prefix: bytes.Clone(b[256 : 256+prefix]), seq: v[8], at: int64(v[9]), lines: lines,
		},
		head:         chain.Head{N: v[10]},
		checkpointed: v[11], chainLog: identity{v[12], v[13]}, chainBegin: int64(v[14]), chainFirst: v[15],
		adoptedFrom: v[16], adoptedTo: v[17], nextID: uint32(v[20]),
		writers: make([]writer, writers, maxWriters),
	}
	copy(s.intent.writer[:], b[168:])
	copy(s.intent.id[:], b[180:])
	copy(s.intent.hash[:], b[192:])
	copy(s.head.Hash[:], b[224:])
	for n := range s.writers {
		w, at := &s.writers[n], writersAt+n*writerSize
		copy(w.key[:], b[at:])
		w.seq, w.at = le.Uint64(b[at+keySize:]), int64(le.Uint64(b[at+keySize+8:]))
	}
	for n := range s.ids {
		copy(s.ids[n][:], b[idsAt+n*keySize:])
	}
	return true
}

// linesOf reads a slot's lines and how long they are together; -1 for what encode
// does not write.
func linesOf(b []byte) (lines []part, size int64) {
	le := binary.LittleEndian
	count := le.Uint64(b[linesAt:])
	if count == 0 {
		return nil, 0
	}
	if count == 1 || count > maxLines {
		return []part{}, -1
	}
	lines = make([]part, count)
	for n := range lines {
		at := linesAt + 8 + n*lineSize
		lines[n] = part{le.Uint32(b[at:]), le.Uint32(b[at+4:]), le.Uint32(b[at+8:])}
		size += int64(lines[n].size)
	}
	return lines, size
}

// The marks of an intent. No mark of its generation: nobody knows yet.
const (
	markNone = iota
	markWritten
	markNotWritten
)

func encodeMark(b []byte, generation uint64, mark uint32, table *crc32.Table) {
	binary.LittleEndian.PutUint64(b, generation)
	binary.LittleEndian.PutUint32(b[8:], mark)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], table))
}

// decodeMark returns what the mark says of a generation.
func decodeMark(b []byte, generation uint64, table *crc32.Table) uint32 {
	le := binary.LittleEndian
	if le.Uint64(b) != generation || le.Uint32(b[12:]) != crc32.Checksum(b[:12], table) {
		return markNone
	}
	return le.Uint32(b[8:])
}
