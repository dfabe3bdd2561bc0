package counters

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Names in the state directory.
const (
	// Dir holds the files of dispatchers.
	Dir        = "counters"
	totalsName = "totals.json"
	lockName   = "totals.lock"
	suffix     = ".json"
	// unfinished ends the name of a file whose writer is at work, or was killed.
	unfinished = ".tmp"
)

// lockWait is how long the totals' lock is waited for. It is held for
// milliseconds, unless its holder was stopped.
const lockWait = 5 * time.Second

// maxFile bounds what is read of one file.
const maxFile = 64 << 20

// ErrBusy is returned when the totals' lock was not to be had in time.
var ErrBusy = errors.New("the totals are locked by another process")

// Store is the counters of a state directory.
type Store struct{ state string }

// NewStore returns the counters of a state directory; it is made at the first
// save.
func NewStore(state string) Store { return Store{state} }

// Session is the content of one dispatcher's file.
type Session struct {
	Session string `json:"session"`
	Project string `json:"project,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// Seq is the highest sequence number that was counted, Marks the highest number
	// of each rule: a record that comes again after a restart is counted once.
	Seq   uint64            `json:"seq"`
	Marks map[string]uint64 `json:"marks,omitempty"`
	Counts
}

// CountRead counts a record of the spool, unless it was counted. source says
// whether a hook wrote it ("hook") or it was found elsewhere.
func (s *Session) CountRead(seq uint64, section, source string) {
	if seq <= s.Seq {
		return
	}
	s.Seq = seq
	s.Records++
	by := &s.Hooks
	if source != "hook" {
		by = &s.Transcript
	}
	if *by == nil {
		*by = map[string]uint64{}
	}
	(*by)[section]++
}

// CountMatched counts a rule's record number ruleSeq, unless it was counted.
func (s *Session) CountMatched(rule string, ruleSeq uint64, now time.Time) {
	r := s.Rule(rule)
	if r.Since.IsZero() {
		r.Since = now.UTC()
	}
	if ruleSeq <= s.Marks[rule] {
		return
	}
	s.Mark(rule, ruleSeq)
	r.Matched++
}

// Mark notes that a rule's records up to ruleSeq were counted.
func (s *Session) Mark(rule string, ruleSeq uint64) {
	if s.Marks == nil {
		s.Marks = map[string]uint64{}
	}
	s.Marks[rule] = max(s.Marks[rule], ruleSeq)
}

// totals is the content of the totals' file.
type totals struct {
	Counts
	// Folded names the files that the last fold added. One of them that is still
	// there was not removed before the folding process died: it counts no more.
	Folded []string `json:"folded,omitempty"`
}

// File is one dispatcher's counters, as they were read.
type File struct {
	// Name is the file's name in Dir, Written when it was written.
	Name    string
	Written time.Time
	Session
}

// Owner is the name of the session's directory.
func (f File) Owner() string {
	owner, _, _ := cutName(f.Name)
	return owner
}

// Sum is everything that was counted.
type Sum struct {
	// Counts are the totals and all files together. What waits and what is paused
	// comes from the files alone.
	Counts
	// Files are those of dispatchers that run, were killed, or left records behind.
	Files []File
	// Unreadable lists files that could not be read, with the reason; what they
	// counted is missing from the sum.
	Unreadable []error
}

func (s Store) dir() string { return filepath.Join(s.state, Dir) }

// lock takes the totals' lock, shared or exclusive.
func (s Store) lock(how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(s.state, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the totals: %w", err)
	}
	until := time.Now().Add(lockWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		case time.Now().After(until):
			f.Close()
			return nil, fmt.Errorf("%s: %w", f.Name(), ErrBusy)
		}
		time.Sleep(pause)
	}
}

// Sum reads everything. An error means that no sum is to be had; one file that
// cannot be read is among Unreadable.
func (s Store) Sum() (Sum, error) {
	out := Sum{Counts: Counts{Rules: map[string]*Rule{}}}
	if _, err := os.Stat(s.state); errors.Is(err, os.ErrNotExist) {
		return out, nil
	}
	lock, err := s.lock(syscall.LOCK_SH)
	if err != nil {
		return out, err
	}
	defer lock.Close()
	t, err := s.totals()
	if err != nil {
		return out, err
	}
	out.Counts = t.Counts
	names, _, err := s.names()
	if err != nil {
		return out, err
	}
	for _, name := range names {
		if slices.Contains(t.Folded, name) {
			continue
		}
		f, err := s.read(name)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				out.Unreadable = append(out.Unreadable, err)
			}
			continue
		}
		out.Files = append(out.Files, f)
		out.Counts.Add(f.Counts)
	}
	return out, nil
}

// Of returns the counters of a session that are not folded, all of its files
// together. name is its directory's. Without any it is empty.
func (s Store) Of(name string) (Session, error) {
	out := Session{Counts: Counts{Rules: map[string]*Rule{}}}
	sum, err := s.Sum()
	for _, f := range sum.Files {
		if owner, _, _ := cutName(f.Name); owner == name {
			out.Session, out.Project = f.Session.Session, f.Project
			out.Add(f.Counts)
		}
	}
	return out, err
}

// Fold adds files to the totals and removes them. It may be called for any file
// at any time: a dispatcher that is still writing one notices, and counts on from
// there in a new one. What waits, as the files had it, is forgotten. What writers
// that were killed had begun to write is removed, also when no file is named.
func (s Store) Fold(now time.Time, names ...string) error {
	lock, err := s.lock(syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer lock.Close()
	s.sweep()
	if len(names) == 0 {
		return nil
	}
	t, err := s.totals()
	if err != nil {
		return err
	}
	// Only when the last fold's files are gone for good may its list be forgotten.
	if err := s.remove(t.Folded); err != nil {
		return err
	}
	t.Folded = nil
	var unread []error
	for _, name := range names {
		f, err := s.read(name)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) {
				unread = append(unread, err)
			}
			continue
		}
		for _, r := range f.Rules {
			r.settle()
		}
		t.Add(f.Counts)
		t.Folded = append(t.Folded, name)
	}
	if len(t.Folded) == 0 {
		return errors.Join(unread...)
	}
	t.Updated = now.UTC()
	if _, err := replace(filepath.Join(s.state, totalsName), t); err != nil {
		return err
	}
	return errors.Join(append(unread, s.remove(t.Folded))...)
}

// sweep removes what killed writers left. The caller holds the totals' lock
// alone, and every writer holds it shared while it writes: none of the files is
// anybody's. One that cannot be removed is in nobody's way.
func (s Store) sweep() {
	entries, _ := os.ReadDir(s.dir())
	for _, e := range entries {
		if stray(e.Name()) {
			_ = os.Remove(filepath.Join(s.dir(), e.Name()))
		}
	}
}

// remove removes files of the directory, for good.
func (s Store) remove(names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(s.dir(), name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove counters that are in the totals: %w", err)
		}
	}
	return syncDir(s.dir())
}

func (s Store) totals() (totals, error) {
	t := totals{Counts: Counts{Rules: map[string]*Rule{}}}
	err := load(filepath.Join(s.state, totalsName), &t)
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	t.tidy()
	return t, err
}

// names lists the files, oldest name first. strays says that some are there that
// have not got their names yet: their writers are at work, or dead.
func (s Store) names() (names []string, strays bool, err error) {
	entries, err := os.ReadDir(s.dir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	for _, e := range entries {
		if _, _, ok := cutName(e.Name()); ok {
			names = append(names, e.Name())
		}
		strays = strays || stray(e.Name())
	}
	return names, strays, err
}

// stray reports whether a name is that of a file that is not whole.
func stray(name string) bool {
	whole, ok := strings.CutSuffix(name, unfinished)
	_, _, ours := cutName(whole)
	return ok && ours
}

func (s Store) read(name string) (File, error) {
	f := File{Name: name}
	path := filepath.Join(s.dir(), name)
	info, err := os.Lstat(path)
	if err != nil {
		return f, err
	}
	f.Written = info.ModTime()
	err = load(path, &f.Session)
	f.tidy()
	return f, err
}

// fileName names the file of one life of a session's dispatcher; session is the
// name of its directory.
func fileName(session string, life int64, pid int) string {
	return session + "~" + strconv.FormatInt(life, 36) + "." + strconv.Itoa(pid) + suffix
}

// cutName splits a file's name into the session's directory and the rest.
func cutName(name string) (session, life string, ok bool) {
	rest, ok := strings.CutSuffix(name, suffix)
	i := strings.LastIndexByte(rest, '~')
	if !ok || i < 1 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

// load reads a JSON file of ours.
func load(path string, into any) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file; remove it", path)
	case info.Size() > maxFile:
		return fmt.Errorf("%s has %d bytes; it cannot be ours", path, info.Size())
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil && len(data) > 0 {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is damaged: %w; what it counted is lost when you remove it", path, err)
	}
	return nil
}

// replace gives a JSON file a new content, whole or not at all, and on the disk:
// a power cut that brought an old one back would make numbers go backwards. done
// says that the new one is there, whatever the error.
func replace(path string, content any) (done bool, err error) {
	data, err := json.Marshal(content)
	if err != nil {
		return false, fmt.Errorf("save %s: %w", path, err)
	}
	tmp := path + unfinished
	if info, err := os.Lstat(tmp); err == nil && !info.Mode().IsRegular() {
		_ = os.Remove(tmp) // nothing of ours, and in the way
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return false, fmt.Errorf("save counters: %w", err)
	}
	_, err = f.Write(append(data, '\n'))
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("save counters: %w", err), os.Remove(tmp))
	}
	return true, syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
