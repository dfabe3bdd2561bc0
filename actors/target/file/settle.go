package file

import (
	"bufio"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/chain"
)

const (
	// readChunk is how much of a log is read at once, in bytes.
	readChunk = 64 << 10
	// lastChunk is how much of an unknown log's end is looked at for a link,
	// before all of it is.
	lastChunk = 1 << 20
)

// settle finds out what became of an append that nobody has reported about,
// because its writer was killed. Afterwards t.journal says what the log holds.
func (t *Target) settle() error {
	j := &t.journal
	if !j.intent.open {
		return nil
	}
	i := &j.intent
	log, size := t.log, t.size
	if i.log != t.logID {
		// The log was moved since: rotation keeps it beside the new one.
		f, st, err := t.beside(i.log)
		if err != nil {
			return err
		}
		if f == nil {
			j.settle(false)
			return nil
		}
		defer f.Close()
		log, size = f, st.size
	}
	written, err := t.holds(log, size, i)
	if err != nil {
		return err
	}
	if !written && i.lines != nil {
		if written, err = t.shorten(log, size); err != nil {
			return err
		}
	}
	if written {
		if i.synced {
			if err := t.disk.sync(log); err != nil {
				return err
			}
		}
		j.settle(true)
		return nil
	}
	fragment, err := t.fragment(log, size, i)
	if err != nil {
		return err
	}
	if fragment != nil {
		if err := t.cutOff(log, i, fragment); err != nil {
			return err
		}
	}
	j.settle(false)
	return nil
}

// shorten makes the open intent of several records one of those that are in the
// log, from the first on; false when not even that is. What is there of the next is
// moved aside. They were written, and a reader may have seen them, so they are
// neither cut off nor written again.
func (t *Target) shorten(log *os.File, size int64) (bool, error) {
	j := &t.journal
	i := &j.intent
	kept := *i
	kept.size, kept.sum, kept.lines, kept.at = 0, 0, nil, 0
	kept.seq = i.seq
	for _, l := range i.lines[1:] {
		kept.seq -= uint64(l.step)
	}
	for n, l := range i.lines {
		at := i.begin + kept.size
		if at+int64(l.size) > size {
			break
		}
		text := make([]byte, l.size)
		if _, err := t.disk.readAt(log, text, at); err != nil {
			return false, err
		}
		if crc32.Checksum(text, j.table) != l.sum {
			break
		}
		kept.size += int64(l.size)
		kept.sum = crc32.Update(kept.sum, j.table, text)
		kept.lines = i.lines[:n+1]
		if n > 0 {
			kept.seq += uint64(l.step)
		}
		text = bytes.Trim(text, "\n")
		kept.at = max(kept.at, timeOf(text))
		if link, ok := chain.Parse(text); ok && i.chained {
			kept.hash = link.Hash
		}
	}
	switch len(kept.lines) {
	case 0:
		return false, nil
	case 1:
		kept.lines = nil
	}
	rest := intent{oneLine: true, begin: kept.end(), size: i.end() - kept.end(), prefix: []byte{'{'}}
	fragment, err := t.fragment(log, size, &rest)
	if err != nil {
		return false, err
	}
	if fragment != nil {
		rest.seq = kept.seq + 1 // or higher
		if err := t.cutOff(log, &rest, fragment); err != nil {
			return false, err
		}
	}
	*i = kept
	return true, inJournal(j.store())
}

// cutOff moves a fragment aside and makes the log end where it began.
func (t *Target) cutOff(log *os.File, i *intent, fragment []byte) error {
	if err := t.journal.moveAside(i, fragment); err != nil {
		return err
	}
	if err := t.disk.truncate(log, i.begin); err != nil {
		return err
	}
	if log == t.log {
		t.size = i.begin
	}
	return nil
}

// beside looks for a file in the log's directory; nil when it is not there.
func (t *Target) beside(id identity) (*os.File, stat, error) {
	dir := filepath.Dir(t.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, stat{}, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		st, err := t.disk.lstat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, stat{}, err
		}
		if err != nil || st.identity != id {
			continue
		}
		f, err := t.disk.open(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
			return nil, stat{}, nil // whoever rotates it took it away
		}
		if err != nil {
			return nil, stat{}, err
		}
		st, err = t.disk.fstat(f)
		if err != nil || st.identity != id {
			return nil, stat{}, errors.Join(err, f.Close())
		}
		return f, st, nil
	}
	return nil, stat{}, nil
}

// holds reports whether the whole entry of an intent is where it should be.
func (t *Target) holds(log *os.File, size int64, i *intent) (bool, error) {
	if size < i.end() {
		return false, nil
	}
	var sum uint32
	chunk := make([]byte, min(i.size, readChunk))
	for at := i.begin; at < i.end(); {
		n, err := t.disk.readAt(log, chunk[:min(int64(len(chunk)), i.end()-at)], at)
		if n == 0 {
			return false, err
		}
		sum = crc32.Update(sum, t.journal.table, chunk[:n])
		at += int64(n)
	}
	return sum == i.sum, nil
}

// fragment returns what an intent's writer left of its entry when it was killed;
// nil when there is no such fragment at the end of the log.
func (t *Target) fragment(log *os.File, size int64, i *intent) ([]byte, error) {
	if size <= i.begin || size >= i.end() {
		return nil, nil
	}
	left := make([]byte, size-i.begin)
	if _, err := t.disk.readAt(log, left, i.begin); err != nil {
		return nil, err
	}
	n := min(len(left), len(i.prefix))
	if !bytes.Equal(left[:n], i.prefix[:n]) {
		return nil, nil
	}
	// Somebody who knows no lock has written behind the fragment; it is theirs
	// to lose no more.
	if i.oneLine && bytes.IndexByte(left[1:], '\n') >= 0 {
		return nil, nil
	}
	return left, nil
}

// adopt takes up lines of ours that the journal knows nothing of: after a power
// cut that the log outlasted and the journal did not, or when the state directory
// was deleted. Foreign lines are passed over.
func (t *Target) adopt() error {
	j := &t.journal
	if !j.fresh {
		if from := j.intent.end(); t.logID == j.intent.log && t.size > from {
			return t.adoptFrom(from)
		}
		return nil
	}
	if t.size == 0 {
		return nil
	}
	from := max(0, t.size-lastChunk)
	if err := t.adoptFrom(from); err != nil || !t.opts.Chain {
		return err
	}
	if j.head.N == 0 && from > 0 {
		if err := t.adoptFrom(0); err != nil {
			return err
		}
	}
	if j.head.N == 0 {
		return nil
	}
	return t.firstLink()
}

// firstLink notes where the chain begins in a log that has one, for a journal that
// knows nothing.
func (t *Target) firstLink() error {
	j := &t.journal
	lines := bufio.NewReaderSize(io.NewSectionReader(reader{t.disk, t.log}, 0, t.size), readChunk)
	for at := int64(0); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if l, ok := chain.Parse(line[:len(line)-1]); ok && l.Whole() {
			j.chainLog, j.chainBegin, j.chainFirst = t.logID, at, l.N
			return nil
		}
		at += int64(len(line))
	}
}

func (t *Target) adoptFrom(from int64) error {
	j := &t.journal
	lines := bufio.NewReaderSize(io.NewSectionReader(reader{t.disk, t.log}, from, t.size-from), readChunk)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line = line[:len(line)-1]
		if session, rule, seq, at := recordOf(line); seq > 0 {
			if w := keyOf(session, rule); !j.written(false, key{}, w, seq, at) {
				j.remember(w, seq, at)
			}
		}
		if l, ok := chain.Parse(line); ok && (l.Follows(j.head) || j.fresh && l.Whole()) {
			if j.adoptedTo != j.head.N || j.adoptedTo == 0 {
				j.adoptedFrom = l.N
			}
			j.head, j.adoptedTo = l.Head(), l.N
		}
	}
}

// reader is a file for a section reader.
type reader struct {
	disk disk
	file *os.File
}

func (r reader) ReadAt(b []byte, at int64) (int, error) { return r.disk.readAt(r.file, b, at) }

// recordOf reads whose a line is; seq is 0 when it is no record of ours.
func recordOf(line []byte) (session, rule string, seq uint64, at int64) {
	dec := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return "", "", 0, 0
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return "", "", 0, 0
		}
		field := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return "", "", 0, 0
		}
		switch field {
		case "session", "rule":
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return "", "", 0, 0
			}
			if field == "rule" {
				rule = string(text)
			} else {
				session = string(text)
			}
		case "seq":
			seq = parseNumber(value)
		case "ts":
			at = parseTime(bytes.Trim(value, `"`))
		}
	}
	if session == "" || rule == "" {
		return "", "", 0, 0
	}
	return session, rule, seq, at
}

func parseNumber(b []byte) (n uint64) {
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<59 {
			return 0
		}
		n = 10*n + uint64(c-'0')
	}
	return n
}

// parseTime reads a time; 0 when it is none.
func parseTime(b []byte) int64 {
	at, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return 0
	}
	return at.UnixNano()
}

// timeOf returns a record's time, which stands near its beginning; 0 when it has
// none there.
func timeOf(record []byte) int64 {
	const near = 256
	_, rest, ok := bytes.Cut(record[:min(len(record), near)], []byte(`"ts":"`))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return 0
	}
	return parseTime(rest[:end])
}
