package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ways/hooks/dirs"
)

// ErrCursors is returned for a cursor file that does not hold what was written
// to it. The reader then begins at the oldest record: twice is better than never.
var ErrCursors = errors.New("cursor file damaged")

// Cursor is how far one rule is.
type Cursor struct {
	// Seq: the rule is done with every record up to this number.
	Seq uint64
	// RuleSeq is how many records the rule was handed up to there.
	RuleSeq uint64
	// At is where the rule's next record is looked for.
	At Position
}

// Cursors is the content of a session's cursor file.
type Cursors struct {
	// Read is how far the spool was read for all rules; a rule that is new
	// begins there.
	Read Cursor
	// Unwritten is how many records that could not be written have been told of.
	Unwritten uint64
	// Rules holds each rule's own cursor, by rule id.
	Rules map[string]Cursor
}

const cursorsName = "cursors"

// LoadCursors reads a session's cursor file. An error that is os.ErrNotExist:
// nothing was saved yet. ErrCursors: damaged.
func LoadCursors(dir string) (Cursors, error) {
	data, err := dirs.ReadFile(filepath.Join(dir, cursorsName))
	if errors.Is(err, dirs.ErrNotFile) {
		return Cursors{}, fmt.Errorf("%w: %w", ErrCursors, err)
	}
	if err != nil {
		return Cursors{}, err
	}
	return parseCursors(data)
}

// SaveCursors replaces the cursor file and flushes it: a cursor may lag behind
// what was done, and must never be ahead of it, also not after a power cut.
func SaveCursors(dir string, c Cursors) error { return disk{}.saveCursors(dir, c) }

func (d disk) saveCursors(dir string, c Cursors) error {
	path := filepath.Join(dir, cursorsName)
	dirs.Clear(path + ".tmp")
	f, err := d.open(path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fmt.Errorf("save cursors: %w", err)
	}
	_, err = d.write(f, formatCursors(c))
	if err == nil {
		err = d.sync(f)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = d.rename(path+".tmp", path)
	}
	if err != nil {
		_ = os.Remove(path + ".tmp")
		return fmt.Errorf("save cursors: %w", err)
	}
	return d.syncDir(dir)
}

// formatCursors spells one cursor a line, under a line with the checksum.
func formatCursors(c Cursors) []byte {
	var body []byte
	add := func(name string, c Cursor) {
		body = fmt.Appendf(body, "%d %d %d %d %s\n", c.Seq, c.RuleSeq, c.At.Segment, c.At.Offset, name)
	}
	add("", Cursor{Seq: c.Read.Seq, RuleSeq: c.Unwritten, At: c.Read.At})
	for _, id := range sortedKeys(c.Rules) {
		add(id, c.Rules[id])
	}
	return append(fmt.Appendf(nil, "C1 %x\n", checksum(0, body)), body...)
}

func sortedKeys(m map[string]Cursor) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func parseCursors(data []byte) (Cursors, error) {
	head, body, _ := bytes.Cut(data, []byte{'\n'})
	var sum uint32
	if _, err := fmt.Sscanf(string(head), "C1 %x", &sum); err != nil || sum != checksum(0, body) {
		return Cursors{}, ErrCursors
	}
	c := Cursors{Rules: map[string]Cursor{}}
	for i, ln := range strings.Split(strings.TrimSuffix(string(body), "\n"), "\n") {
		var cur Cursor
		var rest string
		n, err := fmt.Sscanf(ln, "%d %d %d %d %s", &cur.Seq, &cur.RuleSeq, &cur.At.Segment, &cur.At.Offset, &rest)
		switch {
		case i == 0 && n == 4:
			// The head has no numbering of its own.
			c.Read, c.Unwritten = Cursor{Seq: cur.Seq, At: cur.At}, cur.RuleSeq
		case i > 0 && err == nil:
			c.Rules[rest] = cur
		default:
			return Cursors{}, ErrCursors
		}
	}
	return c, nil
}
