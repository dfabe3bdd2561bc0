package spool

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// model is what a spool must be: the records that were whole, in order.
type model struct {
	t       *testing.T
	dir     string
	rng     *rand.Rand
	records []string // record i has number i+1
	read    int      // how many the follower has read
	pos     Position
	follow  *Reader
	log     []string
}

func (m *model) say(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(m.log, "\n"))
}

// request is of one to three records, now and then a giant.
func (m *model) request() (Request, []string) {
	var list []Draft
	var whats []string
	for range 1 + m.rng.IntN(3) {
		size := m.rng.IntN(200)
		if m.rng.IntN(40) == 0 {
			size = SegmentBytes / 3
		}
		what := fmt.Sprintf("%d-%s", m.rng.Uint32(), strings.Repeat("x", size))
		whats = append(whats, what)
		list = append(list, draft{`{"seq":`, `,"what":"` + what + `"}`})
	}
	req := one("")
	req.Build = func(bool) []Draft { return list }
	return req, whats
}

func (m *model) append() {
	req, whats := m.request()
	res, err := Append(m.dir, req)
	first := uint64(len(m.records) + 1)
	m.say("append %d: %d to %d at %+v", len(whats), res.First, res.Last, res.At)
	if err != nil || res.First != first || res.Last != first+uint64(len(whats))-1 {
		m.fail("append: %+v, %v; want number %d", res, err, first)
	}
	m.took(whats)
}

func (m *model) took(whats []string) {
	for _, w := range whats {
		m.records = append(m.records, rec(len(m.records)+1, w))
	}
}

// killed appends in a process that dies behind any byte of its frames, or later,
// before or inside the writing of the state.
func (m *model) killed() {
	lock := filepath.Join(m.dir, lockName)
	before, err := os.ReadFile(lock)
	if err != nil {
		m.append() // the very first
		return
	}
	req, whats := m.request()
	res, err := Append(m.dir, req)
	if err != nil {
		m.fail("append: %v", err)
	}
	after, err := os.ReadFile(lock)
	if err != nil {
		m.fail("%v", err)
	}
	path := segmentPath(m.dir, res.At.Segment)
	info, err := os.Stat(path)
	if err != nil {
		m.fail("%v", err)
	}
	size := int(info.Size() - res.At.Offset)
	state := before
	cut := m.rng.IntN(size + 1)
	if m.rng.IntN(3) == 0 {
		// Inside the state: any part of the changed slot is the new one.
		cut, state = size, append([]byte(nil), before...)
		if len(state) < len(after) {
			state = append(state, make([]byte, len(after)-len(state))...)
		}
		copy(state, after[:m.rng.IntN(len(after)+1)])
	}
	if err := os.Truncate(path, res.At.Offset+int64(cut)); err != nil {
		m.fail("%v", err)
	}
	if err := os.WriteFile(lock, state, 0o600); err != nil {
		m.fail("%v", err)
	}
	// A frame is whole when all of it is there but the newline at its end.
	end, whole := 0, 0
	for i, w := range whats {
		seq := uint64(len(m.records) + i + 1)
		end += len(appendFrame(nil, seq, 7, []byte(rec(int(seq), w))))
		if cut >= end-1 {
			whole++
		}
	}
	m.say("killed at byte %d of %d in segment %d: %d of %d whole", cut, size, res.At.Segment, whole, len(whats))
	m.took(whats[:whole])
	if whole < len(whats) && m.rng.IntN(2) == 0 {
		m.append() // ends the torn frame
	}
}

// look lets the follower read some of what there is.
func (m *model) look(most int) {
	for range most {
		f, err := m.follow.Next()
		var d *Damage
		switch {
		case errors.As(err, &d):
			m.pos = m.follow.Position()
			continue
		case errors.Is(err, ErrWait):
			if m.read != len(m.records) {
				m.fail("the follower ends at %d of %d", m.read, len(m.records))
			}
			return
		case err != nil:
			m.fail("follow: %v", err)
		case m.read >= len(m.records):
			m.fail("read %.100q, which was never whole", f.JSON)
		}
		if want := m.records[m.read]; string(f.JSON) != want || f.Seq != uint64(m.read+1) {
			m.fail("read %d %.100q, want %d %.100q", f.Seq, f.JSON, m.read+1, want)
		}
		if again, err := ReadAt(m.dir, f.At); err != nil || again.Seq != f.Seq {
			m.fail("read again at %+v: %d, %v", f.At, again.Seq, err)
		}
		m.read++
		m.pos = f.Next
	}
	m.say("read up to %d", m.read)
}

func (m *model) step() {
	switch m.rng.IntN(12) {
	case 0, 1, 2, 3:
		m.append()
	case 4, 5, 6:
		m.killed()
	case 7, 8:
		m.look(m.rng.IntN(20))
	case 9:
		m.say("reopen at %+v", m.pos)
		m.follow.Close()
		m.follow = NewReader(m.dir, m.pos)
	case 10:
		if _, err := Reclaim(m.dir, m.pos.Segment); err != nil && !errors.Is(err, os.ErrNotExist) {
			m.fail("reclaim: %v", err)
		}
		m.say("give back what lies before %d", m.pos.Segment)
	case 11:
		m.clear()
	}
}

// clear is the dispatcher's idle exit: read to the end under the lock, save the
// cursors, delete everything; and now and then the state is lost after it.
func (m *model) clear() {
	held, err := Lock(m.dir, time.Second)
	if err != nil {
		m.fail("%v", err)
	}
	defer held.Release()
	for {
		f, err := m.follow.Settle(held)
		var d *Damage
		if errors.As(err, &d) {
			continue
		}
		if errors.Is(err, ErrWait) {
			break
		}
		if err != nil || m.read >= len(m.records) || string(f.JSON) != m.records[m.read] {
			m.fail("settle: %d %.100q, %v", f.Seq, f.JSON, err)
		}
		m.read++
	}
	if m.read != len(m.records) {
		m.fail("settled at %d of %d", m.read, len(m.records))
	}
	if _, err := held.Clear(m.dir); err != nil {
		m.fail("clear: %v", err)
	}
	m.pos = Position{Segment: uint64(m.read + 1)}
	if err := SaveCursors(m.dir, Cursors{Read: Cursor{Seq: uint64(m.read), At: m.pos}}); err != nil {
		m.fail("%v", err)
	}
	m.follow.Close()
	m.follow = NewReader(m.dir, m.pos)
	lost := m.rng.IntN(3) == 0
	if lost {
		if err := os.Truncate(filepath.Join(m.dir, lockName), 0); err != nil {
			m.fail("%v", err)
		}
	}
	m.say("cleared at %d, state lost: %v", m.read, lost)
}

// TestAgainstModel plays random lives of a spool: appends, deaths at any byte,
// rotations, readers that come and go, space given back.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &model{t: t, dir: session(t), rng: rand.New(rand.NewPCG(seed, 1))}
			m.follow = NewReader(m.dir, Position{})
			defer func() { m.follow.Close() }()
			m.append()
			for range 80 {
				m.step()
			}
			m.append()
			m.look(1 << 30)
			if last, err := LastSeq(m.dir, time.Second); last != uint64(len(m.records)) || err != nil {
				m.fail("last number %d, %v; want %d", last, err, len(m.records))
			}
		})
	}
}
