package spool

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"time"

	"ways/hooks/crc"
)

// ringSize is how many recent event keys the state remembers: the same event
// arrives from its second wiring within the time of a few parallel tool calls.
const ringSize = 64

// state is what a writer must know to append, kept in the lock file itself, so
// that it costs one read and one write and is only touched under the lock.
type state struct {
	generation uint64 // of the state; picks the newer slot
	seq        uint64 // last number given
	segment    uint64 // active segment's name; 0 = none
	end        int64  // where the active segment ended after the last append
	turn       uint64 // key of the prompt whose turn is running
	unwritten  uint64 // records that could not be written, since ever
	ringNext   uint64
	ring       [ringSize]ringEntry
}

type ringEntry struct {
	key uint64
	at  int64 // Unix milliseconds
}

const (
	stateMagic   = 0x31545353_53594157 // "WAYSSST1"
	stateFixed   = 9 * 8
	slotSize     = stateFixed + ringSize*16 + 8
	slotDistance = 2048
)

// Two slots are written in turn: a writer killed inside a write leaves the other
// one whole.
func readState(f *os.File) (state, bool) {
	var buf [2 * slotDistance]byte
	if _, err := f.ReadAt(buf[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return state{}, false
	}
	newer, older := buf[:slotSize], buf[slotDistance:][:slotSize]
	if slotGeneration(newer) < slotGeneration(older) {
		newer, older = older, newer
	}
	if s, ok := decodeState(newer); ok {
		return s, true
	}
	return decodeState(older)
}

func (d disk) writeState(f *os.File, s *state) error {
	s.generation++
	buf := encodeState(s)
	_, err := d.writeAt(f, buf[:], int64(s.generation%2)*slotDistance)
	return err
}

func encodeState(s *state) [slotSize]byte {
	var b [slotSize]byte
	le := binary.LittleEndian
	for i, v := range []uint64{
		stateMagic, s.generation, s.seq, s.segment, uint64(s.end), s.turn, s.unwritten, s.ringNext, 0,
	} {
		le.PutUint64(b[i*8:], v)
	}
	for i, e := range s.ring {
		le.PutUint64(b[stateFixed+i*16:], e.key)
		le.PutUint64(b[stateFixed+i*16+8:], uint64(e.at))
	}
	le.PutUint64(b[slotSize-8:], uint64(crc.Castagnoli(0, b[:slotSize-8])))
	return b
}

// slotGeneration is the generation that a slot says it has, whole or not.
func slotGeneration(b []byte) uint64 { return binary.LittleEndian.Uint64(b[8:]) }

func decodeState(b []byte) (state, bool) {
	le := binary.LittleEndian
	if le.Uint64(b) != stateMagic || le.Uint64(b[slotSize-8:]) != uint64(crc.Castagnoli(0, b[:slotSize-8])) {
		return state{}, false
	}
	s := state{
		generation: le.Uint64(b[8:]), seq: le.Uint64(b[16:]), segment: le.Uint64(b[24:]), end: int64(le.Uint64(b[32:])),
		turn: le.Uint64(b[40:]), unwritten: le.Uint64(b[48:]), ringNext: le.Uint64(b[56:]),
	}
	for i := range s.ring {
		s.ring[i] = ringEntry{le.Uint64(b[stateFixed+i*16:]), int64(le.Uint64(b[stateFixed+i*16+8:]))}
	}
	return s, true
}

// seen reports whether key was noted within the window before now.
func (s *state) seen(key uint64, now time.Time, window time.Duration) bool {
	for _, e := range s.ring {
		age := now.UnixMilli() - e.at
		if e.key == key && age <= window.Milliseconds() && age >= -window.Milliseconds() {
			return true
		}
	}
	return false
}

func (s *state) note(key uint64, now time.Time) {
	s.ring[s.ringNext%ringSize] = ringEntry{key, now.UnixMilli()}
	s.ringNext++
}
