// Package chained links the records of a rule whose target is no file (design
// §9). It stands in front of the http or command target and gives each record its
// place in the rule's one chain before the first try.
//
// All sessions meet at <state>/chains/<sensor>~<rule>, which is the lock, and
// holds the chain's head and the links of the last 128 records. A record that is
// delivered again, by a retry, after a restart, from the dead letters, gets the
// link it had, so the same bytes are sent again. What a receiver can conclude is
// in docs/chain.md: a record may come late, twice, or never (its rule gave it up),
// but each number is one record, and each record names the one before it.
package chained

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ways/actors/target"
	"ways/hooks/chain"
	"ways/hooks/dirs"
)

// Options are what a dispatcher knows.
type Options struct {
	// StateDir is <state>/agent-ways; chains/ lies in it.
	StateDir string
	// Rule is "<sensor>/<rule>".
	Rule string
	// Sync: the disk has a link before its record is sent, so that a power cut
	// does not give a number twice (at_least_once).
	Sync bool
	// Every is after how many records a checkpoint is made; 0 for never.
	Every uint64
	// AtClose: also when the target is closed.
	AtClose bool
	// Write takes note of a head, under the chain's lock. chain is its name.
	Write func(chain string, head chain.Head) error
}

// Name is the name of a rule's chain.
func Name(rule string) string { return strings.ReplaceAll(rule, "/", "~") }

// File is where a rule's chain is, below the state directory.
func File(state, rule string) string { return filepath.Join(state, "chains", Name(rule)) }

// Target links records and hands them to another target. It is used by one
// goroutine at a time.
type Target struct {
	target.Target
	opts      Options
	store     store
	done      []id
	postponed uint64
}

var _ target.Target = (*Target)(nil)

// New returns the target in front of way.
func New(way target.Target, opts Options) *Target {
	return &Target{Target: way, opts: opts, store: store{path: File(opts.StateDir, opts.Rule)}}
}

// lockPause is how long to wait before a lock is tried again.
const lockPause = time.Millisecond

// closeWait is how long Close waits for the lock.
const closeWait = 2 * time.Second

// Deliver links the record and hands it on. Reasons beyond those of the target
// behind: chain (failed), lock (timed out), not_chainable (refused).
func (t *Target) Deliver(ctx context.Context, d target.Dispatch) error {
	if err := t.link(ctx, &d); err != nil {
		return t.failure(ctx, err)
	}
	err := t.Target.Deliver(ctx, d)
	if (err == nil || target.KindOf(err) == target.Refused) && d.ID != "" && len(t.done) < maxLinks {
		// Told to the store with the next link: a link that is kept too long
		// does no harm.
		t.done = append(t.done, idOf(d.ID))
	}
	return err
}

func (t *Target) failure(ctx context.Context, err error) error {
	e := &target.Error{Kind: target.Failed, Reason: "chain", Err: fmt.Errorf("the chain of %s: %w", t.opts.Rule, err)}
	switch {
	case errors.Is(err, chain.ErrNotObject):
		e.Kind, e.Reason = target.Refused, "not_chainable"
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), target.ErrExpired):
		e.Kind, e.Reason = target.TimedOut, "lock"
	}
	return e
}

// link puts the record's link into d.Body.
func (t *Target) link(ctx context.Context, d *target.Dispatch) error {
	s := &t.store
	if err := s.lock(ctx, true); err != nil {
		return err
	}
	defer s.unlock()
	if err := s.load(); err != nil {
		return err
	}
	own := idOf(d.ID)
	if d.ID != "" {
		if l := s.find(own); l != nil {
			body, head, err := d.Body.Link(chain.Head{N: l.n - 1, Hash: l.prev})
			if err != nil {
				return err
			}
			if sumOf(head) == l.sum {
				d.Body = body
				return nil
			}
			// The record was masked otherwise when it was linked, by an older
			// build. Its bytes are others now, so its link must be another.
		}
	}
	body, head, err := d.Body.Link(s.head)
	if err != nil {
		return err
	}
	for _, finished := range t.done {
		if l := s.find(finished); l != nil {
			l.open = false
		}
	}
	s.add(link{id: own, n: head.N, prev: s.head.Hash, sum: sumOf(head), open: d.ID != ""})
	s.head = head
	if err := s.save(t.opts.Sync); err != nil {
		return err
	}
	t.done = t.done[:0]
	d.Body = body
	if t.opts.Every > 0 && head.N >= s.checkpointed+t.opts.Every && head.N >= t.postponed {
		if t.checkpoint() != nil {
			t.postponed = head.N + t.opts.Every
		}
	}
	return nil
}

// checkpoint has the head taken note of. The store is synced first, so that no
// checkpoint knows of a number that a power cut can take back.
func (t *Target) checkpoint() error {
	s := &t.store
	if err := s.file.Sync(); err != nil {
		return err
	}
	if err := t.opts.Write(Name(t.opts.Rule), s.head); err != nil {
		return err
	}
	s.checkpointed = s.head.N
	return s.save(false)
}

// Close makes the last checkpoint and closes the target behind.
func (t *Target) Close() error {
	err := t.lastCheckpoint()
	return errors.Join(err, t.store.close(), t.Target.Close())
}

func (t *Target) lastCheckpoint() error {
	if t.opts.Every == 0 || !t.opts.AtClose {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	s := &t.store
	if err := s.lock(ctx, false); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return t.failure(ctx, err)
	}
	defer s.unlock()
	err := s.load()
	if err == nil && s.head.N > s.checkpointed {
		err = t.checkpoint()
	}
	if err != nil {
		return t.failure(ctx, err)
	}
	return nil
}

// Head returns what the store of a rule's chain says: its head. The error wraps
// fs.ErrNotExist when there is none.
func Head(ctx context.Context, state, rule string) (chain.Head, error) {
	s := store{path: File(state, rule)}
	if err := s.lock(ctx, false); err != nil {
		return chain.Head{}, err
	}
	defer s.close()
	err := s.load()
	return s.head, err
}

// The store is a file of two slots, written in turn.
const (
	maxLinks   = 128
	idSize     = 12
	linkSize   = idSize + 4 + 8 + 8 + sha256.Size
	linksAt    = 96
	slotSize   = 8192 + 512
	sumAt      = slotSize - 8
	storeMagic = 0x3148434e_53594157 // "WAYSNCH1"
)

// id is the beginning of a delivery id's SHA-256.
type id [idSize]byte

func idOf(delivery string) (i id) {
	sum := sha256.Sum256([]byte(delivery))
	copy(i[:], sum[:])
	return i
}

// link is what a record was given. sum is the beginning of its hash.
type link struct {
	id   id
	n    uint64
	prev [sha256.Size]byte
	sum  uint64
	// open: the record may be sent again.
	open bool
}

func sumOf(h chain.Head) uint64 { return binary.LittleEndian.Uint64(h.Hash[:]) }

type store struct {
	path string
	file *os.File

	generation, checkpointed uint64
	head                     chain.Head
	links                    []link // the latest last
}

func (s *store) find(i id) *link {
	for n := len(s.links) - 1; n >= 0; n-- {
		if s.links[n].id == i {
			return &s.links[n]
		}
	}
	return nil
}

// add takes a link up; the oldest that is not open makes room for it.
func (s *store) add(l link) {
	for n := range s.links {
		if s.links[n].id == l.id {
			s.links = append(s.links[:n], s.links[n+1:]...)
			break
		}
	}
	if len(s.links) == maxLinks {
		out := 0
		for n := range s.links {
			if !s.links[n].open {
				out = n
				break
			}
		}
		s.links = append(s.links[:out], s.links[out+1:]...)
	}
	s.links = append(s.links, l)
}

// lock opens the store and waits for its lock until ctx ends.
func (s *store) lock(ctx context.Context, create bool) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		taken, err := s.tryLock(create)
		if taken || err != nil {
			return err
		}
		select {
		case <-time.After(lockPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *store) tryLock(create bool) (bool, error) {
	if s.file == nil {
		flags := os.O_RDWR
		if create {
			flags |= os.O_CREATE
			if err := dirs.MakePrivate(filepath.Dir(s.path)); err != nil {
				return false, err
			}
		}
		f, err := dirs.Open(s.path, flags)
		if err != nil {
			return false, err
		}
		s.file = f
	}
	err := syscall.Flock(int(s.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EINTR), errors.Is(err, syscall.EWOULDBLOCK):
		return false, nil
	case err != nil:
		return false, err
	}
	// A lock on a file that somebody deleted keeps nobody out.
	held, err := s.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(s.path)
	if err == nil && os.SameFile(held, there) {
		return true, nil
	}
	return false, s.close()
}

func (s *store) unlock() {
	if s.file != nil {
		_ = syscall.Flock(int(s.file.Fd()), syscall.LOCK_UN)
	}
}

func (s *store) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// load reads the newest whole slot. A store that holds none, and is not new, is
// an error: a chain must not begin anew without somebody knowing.
func (s *store) load() error {
	buf := make([]byte, 2*slotSize)
	n, err := s.file.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	fresh := store{path: s.path, file: s.file}
	best := fresh
	for i := range 2 {
		slot := fresh
		if slot.decode(buf[i*slotSize:][:slotSize]) && slot.generation > best.generation {
			best = slot
		}
	}
	// A first write that was cut short, or that a power cut left as zeros, is none.
	if best.generation == 0 && n == len(buf) && !bytes.Equal(buf, make([]byte, n)) {
		return fmt.Errorf("%s is damaged; delete it to begin a new chain", s.path)
	}
	*s = best
	return nil
}

func (s *store) save(sync bool) error {
	s.generation++
	b := make([]byte, slotSize)
	s.encode(b)
	if _, err := s.file.WriteAt(b, int64(s.generation%2)*slotSize); err != nil {
		return err
	}
	if sync {
		return s.file.Sync()
	}
	return nil
}

func (s *store) encode(b []byte) {
	le := binary.LittleEndian
	for n, v := range [...]uint64{storeMagic, s.generation, s.head.N, s.checkpointed, uint64(len(s.links))} {
		le.PutUint64(b[8*n:], v)
	}
	copy(b[40:], s.head.Hash[:])
	for n, l := range s.links {
		at := b[linksAt+n*linkSize:]
		copy(at, l.id[:])
		if l.open {
			at[idSize] = 1
		}
		le.PutUint64(at[16:], l.n)
		le.PutUint64(at[24:], l.sum)
		copy(at[32:], l.prev[:])
	}
	le.PutUint32(b[sumAt:], crc32.Checksum(b[:sumAt], crc32.MakeTable(crc32.Castagnoli)))
}

func (s *store) decode(b []byte) bool {
	le := binary.LittleEndian
	if le.Uint64(b) != storeMagic || le.Uint32(b[sumAt:]) != crc32.Checksum(b[:sumAt], crc32.MakeTable(crc32.Castagnoli)) {
		return false
	}
	count := le.Uint64(b[32:])
	if count > maxLinks {
		return false
	}
	s.generation, s.head.N, s.checkpointed = le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	copy(s.head.Hash[:], b[40:])
	s.links = make([]link, count, maxLinks+1)
	for n := range s.links {
		l, at := &s.links[n], b[linksAt+n*linkSize:]
		copy(l.id[:], at)
		l.open, l.n, l.sum = at[idSize] == 1, le.Uint64(at[16:]), le.Uint64(at[24:])
		copy(l.prev[:], at[32:])
	}
	return true
}
