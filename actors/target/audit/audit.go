// Package audit verifies chained logs: it names the first line that was edited,
// removed, inserted, reordered, duplicated or torn, and compares the log with what
// is kept outside it (docs/chain.md). It reads each file as a stream, in memory
// for one line, and a second time only to say what a bad line is.
package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"ways/actors/target/checkpoint"
	"ways/actors/target/file"
	"ways/hooks/chain"
)

// Status is what a log is found to be.
type Status string

// The statuses.
const (
	// OK: every record from the first to the head is as it was written.
	OK Status = "ok"
	// Tampered: the log is not what was written.
	Tampered Status = "tampered"
	// Recoverable: what is odd is what a killed writer or a power cut leaves,
	// and the next record mends it.
	Recoverable Status = "recoverable"
	// Incomplete: what is here is consistent, and more would be needed to say
	// that it is all.
	Incomplete Status = "incomplete"
)

// Kind says what was done to a log.
type Kind string

// The kinds.
const (
	Edited     Kind = "edited"
	Removed    Kind = "removed"
	Inserted   Kind = "inserted"
	Reordered  Kind = "reordered"
	Duplicated Kind = "duplicated"
	Torn       Kind = "torn"
	// Cut: the last records are missing.
	Cut Kind = "cut"
	// Rebuilt: the log is a chain, and another one than was written.
	Rebuilt Kind = "rebuilt"
	// Gone: the whole log is missing.
	Gone Kind = "gone"
	// Forged: a checkpoint's signature is wrong.
	Forged Kind = "forged_checkpoint"
	// Unfinished: a writer was killed in the middle.
	Unfinished Kind = "unfinished"
	// Unknown: records that are not known outside the log.
	Unknown Kind = "unknown_records"
	// Earlier, Later: records before or behind these are not here.
	Earlier Kind = "earlier_records_not_here"
	Later   Kind = "later_records_not_here"
	// Unchained: lines that no chain protects.
	Unchained Kind = "unchained_lines"
	// NoHead: nothing outside the log says where it ends.
	NoHead Kind = "no_head_known"
	// OtherKey: checkpoints by a key that is not known.
	OtherKey Kind = "checkpoints_by_another_key"
)

// Finding is one thing that was found.
type Finding struct {
	Kind Kind `json:"kind"`
	// File and Line say where; Line counts from 1 and is 0 for the whole file.
	File string `json:"file,omitempty"`
	Line uint64 `json:"line,omitempty"`
	// N is the number of the record it is about; 0 for none.
	N     uint64 `json:"n,omitempty"`
	Words string `json:"words"`

	status Status
}

// Input is what to verify.
type Input struct {
	// Files are the log, oldest part first.
	Files []string
	// Known is what the log's journal says; nil when there is none.
	Known *file.Known
	// Current is the one of Files that Known is about; empty when that is not
	// among them.
	Current string
	// Chain is the chain's name; the checkpoints of others are passed over.
	Chain string
	// Delivered says that the files are what a receiver kept of records that were
	// sent: some may have been given up, and one may stand there twice in a row.
	Delivered bool
	// Checkpoints are those to compare with, each in the order they were made.
	Checkpoints []*checkpoint.Reader
}

// Report is what was found.
type Report struct {
	Status Status   `json:"status"`
	Files  []string `json:"files"`
	// Records were read, numbered First to Last.
	Records uint64 `json:"records"`
	First   uint64 `json:"first,omitempty"`
	Last    uint64 `json:"last,omitempty"`
	// Head is the hash of the last one.
	Head string `json:"head,omitempty"`
	// Checkpoints agreed with the log.
	Checkpoints uint64    `json:"checkpoints"`
	Findings    []Finding `json:"findings"`
}

// Verify reads the files. The error is that of a file that cannot be read;
// everything else is in the report.
func Verify(in Input) (Report, error) {
	v := &verifier{in: in, report: Report{Files: in.Files, Findings: []Finding{}}}
	if err := v.run(); err != nil {
		return v.report, err
	}
	v.report.Status = OK
	for _, f := range v.report.Findings {
		if slices.Index(order(), f.status) > slices.Index(order(), v.report.Status) {
			v.report.Status = f.status
		}
	}
	return v.report, nil
}

// order is how bad the statuses are.
func order() []Status { return []Status{OK, Incomplete, Recoverable, Tampered} }

type verifier struct {
	in     Input
	report Report

	// head is that of the last record, began whether there was one.
	head  chain.Head
	began bool
	// last is where the last record is.
	last place
	// unchained counts the lines in front of the first record.
	unchained   uint64
	checkpoints []*cursor
	otherKey    uint64
}

// cursor is a place among checkpoints: next is the one to compare with, and more
// says that there is one.
type cursor struct {
	reader *checkpoint.Reader
	next   checkpoint.Checkpoint
	more   bool
}

type place struct {
	file   string
	line   uint64
	offset int64
}

func (v *verifier) add(s Status, k Kind, at place, n uint64, format string, args ...any) {
	v.report.Findings = append(v.report.Findings, Finding{k, at.file, at.line, n, fmt.Sprintf(format, args...), s})
}

// First returns the number of a file's first chained record; 0 when it has none.
func First(name string) (uint64, error) {
	v := &verifier{}
	l, _, err := v.search([]string{name}, func(place, chain.Link) bool { return true })
	return l.N, err
}

// run reads everything; a tampered line ends it.
func (v *verifier) run() error {
	for _, r := range v.in.Checkpoints {
		c := &cursor{reader: r}
		v.checkpoints = append(v.checkpoints, c)
		if err := v.advance(c); err != nil {
			return err
		}
	}
	for _, name := range v.in.Files {
		done, err := v.file(name)
		if done || err != nil {
			return err
		}
	}
	if v.began {
		v.report.Last, v.report.Head = v.head.N, hex.EncodeToString(v.head.Hash[:])
	}
	v.ends()
	return v.checkpointsBehind()
}

// limit is how much of a file counts: of a live log what was there when the
// journal was read.
func (v *verifier) limit(name string) int64 {
	if v.in.Known != nil && name == v.in.Current && v.in.Known.Size >= 0 {
		return v.in.Known.Size
	}
	return -1
}

// lines calls do for each line of a file, with its newline if it has one, until
// do returns false. The line is do's until it returns.
func (v *verifier) lines(name string, do func(at place, line []byte) (bool, error)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := io.Reader(f)
	if n := v.limit(name); n >= 0 {
		r = io.LimitReader(f, n)
	}
	b := bufio.NewReaderSize(r, 1<<16)
	var long []byte
	for at := (place{name, 1, 0}); ; at.line++ {
		line, err := b.ReadSlice('\n')
		for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); line, err = b.ReadSlice('\n') {
			long = append(long, line...)
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			more, err := do(at, line)
			if !more || err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
		at.offset += int64(len(line))
	}
}

// file reads one file; done says that there is no use in going on.
func (v *verifier) file(name string) (done bool, err error) {
	err = v.lines(name, func(at place, line []byte) (bool, error) {
		ok, err := v.line(at, line)
		done = !ok
		return ok, err
	})
	if errors.Is(err, os.ErrNotExist) && name == v.in.Current && v.in.Known != nil && v.in.Known.Head.N > 0 {
		// What is left of the chain may all be in the files before it.
		if v.began && v.head.N >= v.in.Known.Head.N {
			return false, nil
		}
		v.add(Tampered, Gone, place{file: name}, 0, "the log is gone; its last record was number %d", v.in.Known.Head.N)
		return true, nil
	}
	return done, err
}

// line takes the next line; false when it is not the one that should be there.
func (v *verifier) line(at place, line []byte) (bool, error) {
	body, ended := bytes.CutSuffix(line, []byte{'\n'})
	l, parsed := chain.Parse(body)
	switch {
	case !ended:
		return v.torn(at, body, l), nil
	case v.began && parsed && l.Follows(v.head):
	case v.began && v.in.Delivered && l.Whole() && l.Head() == v.head:
		return true, nil // it was sent twice
	case v.began && v.in.Delivered && l.Whole() && l.N > v.head.N+1:
		v.add(Incomplete, Removed, at, v.head.N+1, "%s not here: given up, still on the way, or removed", are(v.head.N+1, l.N-1))
	case v.began && v.in.Delivered && l.Whole() && l.N <= v.head.N:
		v.add(Incomplete, Reordered, at, l.N, "record %d stands behind record %d: sort the lines by chain_n, and verify again", l.N, v.head.N)
		return false, nil
	case v.began:
		return false, v.misfit(at, l, parsed)
	case !parsed:
		v.unchained++
		return true, nil
	case !l.Whole():
		v.add(Tampered, Edited, at, l.N, "the line was edited: its bytes do not have the hash that it says")
		return false, nil
	default:
		if !v.begin(at, l) {
			return false, nil
		}
	}
	v.head, v.last = l.Head(), at
	v.report.Records++
	v.report.Last = l.N
	return v.compare(at)
}

// begin looks at the first record of all.
func (v *verifier) begin(at place, l chain.Link) bool {
	k := v.in.Known
	current := k != nil && at.file == v.in.Current && k.First > 0
	switch {
	case l.N == 1 && l.Prev != [sha256.Size]byte{}:
		v.add(Tampered, Edited, at, 1, "the chain's first record does not begin with 64 zeros")
		return false
	case current && l.N != k.First:
		v.add(Tampered, Removed, place{at.file, 1, 0}, k.First, "the file began with record %d, and now does with %d", k.First, l.N)
		return false
	case current && at.offset != k.Offset:
		v.add(Tampered, Inserted, place{at.file, 1, 0}, 0, "record %d was at byte %d, and now is at %d", l.N, k.Offset, at.offset)
		return false
	case v.unchained > 0 && l.N > 1 && !current:
		v.add(Tampered, Edited, place{at.file, 1, 0}, l.N-1, "a line in front of record %d has no link; it was edited or inserted", l.N)
		return false
	}
	if v.unchained > 0 {
		status := Incomplete
		if current {
			status = OK
		}
		v.add(status, Unchained, place{at.file, 1, 0}, 0, "%d lines in front of the chain's first record are not protected by it", v.unchained)
	}
	if l.N > 1 {
		v.add(Incomplete, Earlier, at, l.N, "records 1 to %d are in earlier files, which were not given", l.N-1)
	}
	v.began, v.report.First = true, l.N
	v.head = chain.Head{N: l.N - 1, Hash: l.Prev}
	return true
}

// torn judges a last line without a newline; true when it is no harm.
func (v *verifier) torn(at place, body []byte, l chain.Link) bool {
	k := v.in.Known
	if k != nil && k.Open && at.offset+int64(len(body)) < k.End && at.offset >= k.Begin &&
		(k.Head == v.head || v.began && k.Head.N < v.head.N && v.head.N < k.Next.N || !v.began && k.Head.N == 0) {
		v.add(Recoverable, Unfinished, at, v.head.N+1, "a writer was killed inside this line; the next record moves it aside")
		return true
	}
	if l.Follows(v.head) {
		v.add(Tampered, Torn, at, l.N, "the line's end is missing")
	} else {
		v.add(Tampered, Torn, at, v.head.N+1, "the line is torn: it has no end")
	}
	return false
}

// misfit says what a line is that does not follow.
func (v *verifier) misfit(at place, l chain.Link, parsed bool) error {
	want := v.head.N + 1
	if !parsed || !l.Whole() {
		behind, _, err := v.look(at, func(place, chain.Link) bool { return true })
		switch {
		case err != nil:
			return err
		case parsed && l.N == want && l.Prev == v.head.Hash:
			v.add(Tampered, Edited, at, want, "record %d was edited: its bytes do not have the hash that it says", want)
		case behind.Follows(v.head), behind.N == 0 && v.in.Known != nil && v.in.Known.Head == v.head:
			v.add(Tampered, Inserted, at, 0, "a line was inserted between records %d and %d", v.head.N, want)
		default:
			v.add(Tampered, Edited, at, want, "record %d was edited, or something else stands in its place", want)
		}
		return nil
	}
	switch {
	case l.N == want:
		v.add(Tampered, Edited, v.last, v.head.N,
			"record %d was edited and given a new hash: record %d, on line %d, does not follow it", v.head.N, want, at.line)
	case l.N > want:
		_, where, err := v.look(at, func(_ place, later chain.Link) bool { return later.Follows(v.head) })
		if err != nil {
			return err
		}
		if where.line > 0 {
			v.add(Tampered, Reordered, at, l.N, "record %d stands before record %d, which is on line %d of %s", l.N, want, where.line, where.file)
			return nil
		}
		v.add(Tampered, Removed, at, want, "%s removed in front of this line", were(want, l.N-1))
	default:
		earlier, where, err := v.find(at, l.N)
		switch {
		case err != nil:
			return err
		case where.line == 0:
			v.add(Tampered, Reordered, at, l.N, "record %d stands behind record %d", l.N, v.head.N)
		case earlier == l:
			v.add(Tampered, Duplicated, at, l.N, "record %d is here again; it is on line %d of %s", l.N, where.line, where.file)
		default:
			v.add(Tampered, Inserted, at, l.N, "a second record %d was inserted; the first is on line %d of %s", l.N, where.line, where.file)
		}
	}
	return nil
}

func were(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("record %d was", from)
	}
	return fmt.Sprintf("records %d to %d were", from, to)
}

func are(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("record %d is", from)
	}
	return fmt.Sprintf("records %d to %d are", from, to)
}

// errFound ends a search.
var errFound = errors.New("found")

// look returns the first whole record behind a place that is asked for.
func (v *verifier) look(from place, wanted func(place, chain.Link) bool) (found chain.Link, where place, err error) {
	files := v.in.Files[slices.Index(v.in.Files, from.file):]
	return v.search(files, func(at place, l chain.Link) bool {
		return (at.file != from.file || at.line > from.line) && l.Whole() && wanted(at, l)
	})
}

// find returns the record with that number before a place.
func (v *verifier) find(before place, n uint64) (found chain.Link, where place, err error) {
	files := v.in.Files[:slices.Index(v.in.Files, before.file)+1]
	return v.search(files, func(at place, l chain.Link) bool {
		return l.N == n && (at.file != before.file || at.line < before.line)
	})
}

func (v *verifier) search(files []string, wanted func(place, chain.Link) bool) (found chain.Link, where place, err error) {
	for _, name := range files {
		err := v.lines(name, func(at place, line []byte) (bool, error) {
			l, ok := chain.Parse(bytes.TrimSuffix(line, []byte{'\n'}))
			if ok && wanted(at, l) {
				found, where = l, at
				return false, errFound
			}
			return true, nil
		})
		if errors.Is(err, errFound) {
			return found, where, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return found, where, err
		}
	}
	return found, where, nil
}

// compare compares a record that was just read with what is known of it outside.
func (v *verifier) compare(at place) (bool, error) {
	if k := v.in.Known; k != nil && k.Head.N == v.head.N && k.Head != v.head {
		v.add(Tampered, Rebuilt, at, v.head.N, "record %d is another one than was written: the log was rebuilt", v.head.N)
		return false, nil
	}
	for _, c := range v.checkpoints {
		for c.more && c.next.Head.N <= v.head.N {
			switch {
			case c.next.Head.N < v.head.N: // in a file that is not here
			case c.next.Head != v.head:
				v.add(Tampered, Rebuilt, at, v.head.N, "a signed checkpoint says that record %d is another one: the log was rebuilt", v.head.N)
				return false, nil
			default:
				v.report.Checkpoints++
			}
			if err := v.advance(c); err != nil {
				return false, err
			}
		}
	}
	return len(v.report.Findings) == 0 || v.report.Findings[len(v.report.Findings)-1].status != Tampered, nil
}

// advance reads the next checkpoint of this chain that can be trusted.
func (v *verifier) advance(at *cursor) error {
	at.more = false
	for {
		c, err := at.reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("checkpoints: %w", err)
		case c.Chain != v.in.Chain:
		case c.Forged:
			v.add(Tampered, Forged, place{}, c.Head.N, "the signature of a checkpoint of record %d is wrong", c.Head.N)
		case !c.Signed:
			v.otherKey++
		case c.Head.N < at.next.Head.N:
			v.add(Tampered, Rebuilt, place{}, c.Head.N, "a checkpoint of record %d comes behind one of record %d: the chain was begun anew", c.Head.N, at.next.Head.N)
		default:
			at.next, at.more = c, true
			return nil
		}
	}
}

// ends compares the log's end with what is known outside of it.
func (v *verifier) ends() {
	k, n := v.in.Known, v.head.N
	at := v.last
	if len(v.in.Files) > 0 {
		at = place{file: v.in.Files[len(v.in.Files)-1]}
	}
	if !v.began {
		v.head, n = chain.Head{}, 0
	}
	switch {
	case k == nil:
		if !v.began {
			v.add(Incomplete, Unchained, at, 0, "there is no chained record here")
		}
		v.add(Incomplete, NoHead, at, n, "nothing outside the log is known that says where it ends")
	case v.in.Current == "" && n <= k.Head.N:
		if n < k.Head.N {
			v.add(Incomplete, Later, at, n, "records %d to %d are in later files, which were not given", n+1, k.Head.N)
		}
	case k.Head.N == 0 && !k.Open && !v.began && v.unchained > 0:
		v.add(Incomplete, Unchained, at, 0, "there is no chained record here")
	case n < k.Head.N:
		v.add(Tampered, Cut, at, n+1, "%s cut off the log's end", were(n+1, k.Head.N))
	case n == k.Head.N && k.Open && !v.unfinished():
		v.add(Recoverable, Unfinished, at, k.Next.N, "a writer was killed before it wrote record %d", k.Next.N)
	case n == k.Head.N:
	case k.Open && n < k.Next.N && v.unfinished():
	case k.Open && n < k.Next.N:
		v.add(Recoverable, Unfinished, at, n+1, "a writer was killed before it wrote record %d", n+1)
	case k.Open && v.head == k.Next:
		v.add(Recoverable, Unfinished, at, n, "record %d is whole, and its writer was killed before it could say so", n)
	default:
		v.add(Recoverable, Unknown, at, k.Head.N+1,
			"%d records behind number %d are not known outside the log: a power cut took that knowledge, or somebody else wrote them", n-k.Head.N, k.Head.N)
	}
	if k != nil && k.AdoptedFrom > 0 && k.AdoptedTo <= n && k.AdoptedTo >= v.report.First {
		v.add(Recoverable, Unknown, at, k.AdoptedFrom,
			"records %d to %d were found in the log when they were not known outside it: a power cut took that knowledge, or somebody else wrote them", k.AdoptedFrom, k.AdoptedTo)
	}
}

// unfinished reports whether a line was already said to be.
func (v *verifier) unfinished() bool {
	return slices.ContainsFunc(v.report.Findings, func(f Finding) bool { return f.Kind == Unfinished })
}

// checkpointsBehind looks at the checkpoints of records that are not here.
func (v *verifier) checkpointsBehind() error {
	at := place{}
	if len(v.in.Files) > 0 {
		at.file = v.in.Files[len(v.in.Files)-1]
	}
	partial := v.in.Known != nil && v.in.Current == ""
	var highest uint64
	for _, c := range v.checkpoints {
		for c.more {
			if c.next.Head.N > v.head.N {
				highest = max(highest, c.next.Head.N)
			}
			if err := v.advance(c); err != nil {
				return err
			}
		}
	}
	if highest > 0 && !partial {
		v.add(Tampered, Cut, at, v.head.N+1, "a signed checkpoint knows of record %d: the log was cut or rolled back", highest)
	}
	if v.otherKey > 0 {
		v.add(Incomplete, OtherKey, place{}, 0, "%d checkpoints are signed by a key that is not known here", v.otherKey)
	}
	return nil
}
