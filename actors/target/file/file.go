// Package file is the target that appends records to a local file (design §5),
// one line each (or, in the text format, one entry of whole lines).
//
// Many processes write one log at once: every session has a dispatcher of its
// own. They meet at <state>/targets/<sha256 of the path>: the journal, which is
// their lock and holds the intent of the append under way, the last record of
// each writer, and the head of the chain. The log is never locked, so readers and
// logrotate are free.
//
// What holds for the log:
//
//   - Records that wait for the log together are appended together, up to sixteen
//     at once: what an append costs, a flush above all, they share. Each is a line,
//     and each is settled by itself: the intent has the lengths and checksums of all,
//     and those that a killed writer had written whole stay.
//   - Records are never interleaved, and each begins at the start of a line, also
//     behind a foreign last line that nobody ended.
//   - An append is an intent in the journal, the write, and a mark in the journal
//     that it was done. A writer that is killed leaves an intent without a mark.
//     The next writer, whoever it is, settles it: the bytes are there, length and
//     checksum, and it was done; some of them are there, and the fragment goes
//     to <hash>.torn and the log is cut back to where it began; or none are. It
//     cuts only what lies inside the intent, in the same file, at its end, and
//     begins as the intent says.
//   - A write that fails half way (a full disk) is cut back by the writer itself.
//   - A record is written once, however often it is delivered: a record of a
//     session and rule that is not behind that writer's last one was written
//     before. Where records come in no order (target.Dispatch.Unordered), the
//     last 64 delivery ids are remembered instead. The last records of 100
//     writers are remembered; a record of one that has been idle for longer is
//     written again if its dispatcher was killed before it could take note.
//   - With Options.Sync an append is done once the disk has it, and the journal
//     says so only then. The journal itself is not synced: after a power cut it
//     may be older than the log. What the log has more is taken up from its
//     lines (their session, rule, seq and link). Where the journal is gone or
//     damaged, that is from the log's last megabyte.
//
// Rotation, at any instant:
//
//   - The log was renamed (logrotate's default), or deleted, or replaced as an
//     editor does: the next record begins a new file at its path, or goes on in
//     the one that is there. The chain goes on. An open intent is settled in the
//     renamed file while that is in the same directory; where it is gone, nobody
//     can know, and the record is written again.
//   - It was copied and truncated (copytruncate): the next record is at its
//     beginning. What was appended between the copy and the cut is lost, as
//     always with that method; a chain shows it. What an open intent was for is
//     written again: the copy, which may have it, is another file.
//
// The file is made with mode 0600, its directories with 0700. An existing file
// keeps its mode, and may belong to another user, if only it can be read and
// written: an audit log often does. A final symlink, anything but a regular file,
// and a file with several hard links are refused: a link may be somebody else's,
// and a second name would be a second lock.
package file

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ways/actors/target"
	"ways/actors/target/expand"
	"ways/actors/target/placeholder"
	"ways/actors/target/visible"
	"ways/config/plan"
	"ways/hooks/chain"
)

// DefaultTemplate is the text format's template when a rule gives none.
const DefaultTemplate = "{ts} {agent_type} {section}: {data.prompt|data.text|data}"

const (
	// keepEntry is the largest buffer that is kept for the next record, in bytes.
	keepEntry = 128 << 10
	// mostTogether is how many bytes of records one append takes before it takes no
	// more.
	mostTogether = 64 << 10
	// closeWait is how long Close waits for the lock.
	closeWait = 2 * time.Second
)

// indent begins each further line of a value in the text format.
const indent = "    "

// Options are what a dispatcher knows and a rule's target does not.
type Options struct {
	// StateDir is <state>/agent-ways; targets/ lies in it.
	StateDir string
	// Home is what ~/ stands for; empty refuses such paths.
	Home string
	// Getenv reads the dispatcher's environment, for ${NAME}.
	Getenv func(string) string
	// Sync makes every delivery wait until the disk has the line (at_least_once:
	// design §9).
	Sync bool
	// Chain links each line to the one before it (docs/chain.md). For the jsonl
	// format alone.
	Chain bool
	// Checkpoints are made of the chain.
	Checkpoints Checkpoints
}

// Checkpoints say when the head of a chain is told to somebody outside the log.
type Checkpoints struct {
	// Every is after how many records; 0 for never.
	Every uint64
	// AtClose: also when the target is closed with records behind the last one.
	AtClose bool
	// Write takes note of a head, under the log's lock and after the log was
	// synced. chain is the journal's name. An error makes it be asked again
	// after Every further records; the record itself is delivered.
	Write func(chain string, head chain.Head) error
}

// Target appends to one file. It is used by one goroutine at a time.
type Target struct {
	cfg      plan.File
	opts     Options
	template placeholder.Template
	disk     disk
	journal  journal

	// given is the path with its variables filled in, path the same in a
	// directory without symlinks, place the journal's. They are found out once,
	// and again when given leads to another file.
	given, path, place string

	// log is the open log, logID the file it is, and size its length when the
	// lock was taken.
	log   *os.File
	logID identity
	size  int64

	entry []byte
	// session and rule are those of the last record, and writer is their key.
	session, rule string
	writer        key
	// postponed is the chain's number before which no checkpoint is tried again.
	postponed uint64
}

var _ target.Batch = (*Target)(nil)

// New returns the target of a file rule. It touches no file; an error means a
// format or template that no sensor file may hold.
func New(cfg plan.File, opts Options) (target.Target, error) { return newTarget(cfg, opts, realDisk{}) }

func newTarget(cfg plan.File, opts Options, d disk) (*Target, error) {
	t := &Target{cfg: cfg, opts: opts, disk: d, journal: newJournal(d)}
	switch cfg.Format {
	case "jsonl":
	case "text":
		text := cfg.Template
		if text == "" {
			text = DefaultTemplate
		}
		var err error
		if t.template, err = placeholder.Parse(text); err != nil {
			return nil, fmt.Errorf("file %s: template: %w", cfg.Path, err)
		}
		if opts.Chain {
			return nil, fmt.Errorf("file %s: lines in the text format cannot be chained", cfg.Path)
		}
	default:
		return nil, fmt.Errorf("file %s: format %q is neither jsonl nor text", cfg.Path, cfg.Format)
	}
	return t, nil
}

// Describe returns the path as the rule gives it.
func (t *Target) Describe() string { return t.cfg.Path }

// Close makes the last checkpoint and gives the descriptors back. It waits a
// moment at most for the log's lock.
func (t *Target) Close() error {
	err := t.lastCheckpoint()
	if t.log != nil {
		err = errors.Join(err, t.log.Close())
		t.log = nil
	}
	return errors.Join(err, t.journal.close())
}

// Deliver appends the record, if it is not in the log yet. It waits for the log's
// lock until ctx ends; once it has the lock it does not wait for anything but the
// disk.
//
// Reasons: missing_variable, bad_path, is_symlink, is_directory, not_regular,
// hard_linked, not_directory, permission, name_too_long, not_chainable (refused);
// disk_full, file_too_large, read_only, io, cancelled (failed); lock (timed out).
func (t *Target) Deliver(ctx context.Context, d target.Dispatch) error {
	_, err := t.DeliverAll(ctx, []target.Dispatch{d})
	return err
}

// DeliverAll implements target.Batch: up to sixteen records cost one append and,
// with Options.Sync, one flush. Of an append that fails none is accepted.
func (t *Target) DeliverAll(ctx context.Context, ds []target.Dispatch) (accepted int, err error) {
	if t.place == "" {
		if err := t.resolve(true); err != nil {
			return 0, err
		}
	}
	if err := t.journal.lock(ctx, t.place); err != nil {
		return 0, t.failure(ctx, "the journal of "+t.cfg.Path, err)
	}
	defer t.journal.unlock()
	if !t.unchanged() {
		held := t.place
		if err := t.resolve(true); err != nil {
			return 0, err
		}
		if t.place != held {
			t.journal.unlock()
			if err := t.journal.lock(ctx, t.place); err != nil {
				return 0, t.failure(ctx, "the journal of "+t.cfg.Path, err)
			}
		}
		if err := t.openLog(os.O_CREATE); err != nil {
			return 0, t.failure(ctx, t.cfg.Path, err)
		}
	}
	if err := t.prepare(); err != nil {
		return 0, t.failure(ctx, t.cfg.Path, err)
	}
	for accepted < len(ds) {
		// A flush is long enough for somebody to rotate the log.
		if size := t.size; accepted > 0 && (!t.unchanged() || t.size != size) {
			more, err := t.DeliverAll(ctx, ds[accepted:])
			return accepted + more, err
		}
		n, err := t.append(ds[accepted:])
		if err != nil {
			return accepted, t.failure(ctx, t.cfg.Path, err)
		}
		accepted += n
	}
	return accepted, nil
}

// prepare makes the journal say what the log holds, under the lock.
func (t *Target) prepare() error {
	if err := t.journal.load(); err != nil {
		return inJournal(err)
	}
	if err := t.settle(); err != nil {
		return err
	}
	return t.adopt()
}

// render appends the record's entry to dst, ending in a newline, behind a chain's
// head, and returns the head behind it.
func (t *Target) render(dst, record []byte, head chain.Head) ([]byte, chain.Head, error) {
	switch {
	case t.cfg.Format == "text":
		dst = t.template.Append(dst, record, func(dst []byte, v string) []byte {
			return visible.Append(dst, strings.TrimRight(v, "\r\n"), indent)
		})
	case t.opts.Chain:
		var err error
		if dst, head, err = chain.Append(dst, record, head); err != nil {
			return nil, head, err
		}
	default:
		dst = append(dst, record...)
	}
	return append(dst, '\n'), head, nil
}

// resolve finds the log's path, its directory free of symlinks so that two ways
// to one file meet at one journal. With create the directory is made.
func (t *Target) resolve(create bool) error {
	t.place = ""
	path, err := expand.Path(t.cfg.Path, t.opts.Home, t.opts.Getenv)
	if err != nil {
		reason := "bad_path"
		if errors.Is(err, expand.ErrMissing) {
			reason = "missing_variable"
		}
		return refused(reason, fmt.Errorf("file %s: %w", t.cfg.Path, err))
	}
	if path == "/" {
		return refused("is_directory", fmt.Errorf("file %s is a directory; name a file in it", t.cfg.Path))
	}
	dir := filepath.Dir(path)
	if create {
		if err := t.disk.mkdirAll(dir); err != nil {
			return t.failure(context.Background(), "the directory of "+t.cfg.Path, err)
		}
	}
	if dir, err = t.disk.resolve(dir); err != nil {
		return t.failure(context.Background(), "the directory of "+t.cfg.Path, err)
	}
	t.given, t.path = path, filepath.Join(dir, filepath.Base(path))
	t.place = filepath.Join(t.opts.StateDir, "targets", JournalName(t.path))
	return nil
}

// JournalName is the name of a log's journal, and of its chain: the SHA-256 of
// its path, which is absolute and has no symlink in it.
func JournalName(path string) string {
	name := sha256.Sum256([]byte(path))
	return hex.EncodeToString(name[:])
}

// append writes the first records of ds under the lock, as many as one append can
// hold, and returns how many; those that are in the log already count.
func (t *Target) append(ds []target.Dispatch) (int, error) {
	j := &t.journal
	mine := t.intentOf(&ds[0])
	if n := t.already(ds, &mine); n > 0 {
		return n, t.sync()
	}
	entry := t.entry[:0]
	if ended, err := t.lineEnded(); err != nil {
		return 0, err
	} else if !ended {
		entry = append(entry, '\n')
	}
	first := int64(len(entry))
	head, number := j.head, j.head.N+1
	n := 0
	for ; n < len(ds) && (n == 0 || t.fits(&mine, ds[n-1:n+1], len(entry)) && !t.due(head.N)); n++ {
		record, from := ds[n].Body.Bytes(), len(entry)
		if n == 0 {
			from = 0
		}
		longer, next, err := t.render(entry, record, head)
		if err != nil && n > 0 {
			break // its own failure, not that of those in front of it
		}
		if err != nil {
			return 0, err
		}
		entry, head = longer, next
		if mine.known && n > 0 {
			mine.seq, mine.at = ds[n].Seq, max(mine.at, timeOf(record))
		}
		if len(ds) > 1 {
			l := part{size: uint32(len(entry) - from), sum: crc32.Checksum(entry[from:], j.table)}
			if n > 0 {
				l.step = uint32(ds[n].Seq - ds[n-1].Seq)
			}
			mine.lines = append(mine.lines, l)
		}
	}
	if n == 1 {
		mine.lines = nil
	}
	if cap(entry) <= keepEntry {
		t.entry = entry
	}
	mine.size, mine.sum = int64(len(entry)), crc32.Checksum(entry, j.table)
	mine.prefix = entry[:min(len(entry), prefixSize)]
	if mine.chained {
		mine.hash = head.Hash
		if j.chainLog != t.logID || t.size == 0 || j.chainFirst == 0 {
			j.chainLog, j.chainBegin, j.chainFirst = t.logID, t.size+first, number
		}
	}

	before := j.intent
	j.intent = mine
	if err := j.store(); err != nil {
		j.intent = before
		return 0, inJournal(err)
	}
	if n, err := t.disk.append(t.log, entry); err != nil {
		t.undo(mine.begin, mine.begin+int64(n))
		return 0, err
	}
	if err := t.sync(); err != nil {
		// A second fsync may succeed though the first lost the bytes, so they
		// have to be written again.
		t.undo(mine.begin, mine.end())
		return 0, err
	}
	j.settle(true)
	t.size = mine.end()
	if t.due(j.head.N) && t.checkpoint() != nil {
		t.postponed = j.head.N + t.opts.Checkpoints.Every
	}
	return n, nil
}

// intentOf is the intent of an append that begins with d, without its bytes.
func (t *Target) intentOf(d *target.Dispatch) intent {
	mine := intent{
		open: true, oneLine: t.cfg.Format == "jsonl", synced: t.opts.Sync,
		known: d.ID != "", unordered: d.Unordered, chained: t.opts.Chain, log: t.logID, begin: t.size,
	}
	if !mine.known {
		return mine
	}
	if t.session != d.Session || t.rule != d.Rule {
		t.session, t.rule, t.writer = d.Session, d.Rule, keyOf(d.Session, d.Rule)
	}
	mine.writer, mine.seq, mine.at = t.writer, d.Seq, timeOf(d.Body.Bytes())
	if d.Unordered {
		mine.id = keyOf(d.ID)
	}
	return mine
}

// already is how many of ds, from the first on, were written before; mine is the
// first one's intent.
func (t *Target) already(ds []target.Dispatch, mine *intent) int {
	n := 0
	for ; n < len(ds); n++ {
		i := *mine
		if n > 0 {
			i = t.intentOf(&ds[n])
		}
		if !i.known || !t.journal.written(i.unordered, i.id, i.writer, i.seq, i.at) {
			break
		}
	}
	return n
}

// fits reports whether the second of two records can be in one append with the
// first, which already is in mine, of size bytes. The entries of the text format have
// lines of their own, so that after a kill nobody could say where one ends.
func (t *Target) fits(mine *intent, two []target.Dispatch, size int) bool {
	a, b := &two[0], &two[1]
	return mine.oneLine && mine.known && !mine.unordered && len(mine.lines) < maxLines && size < mostTogether &&
		b.ID != "" && !b.Unordered && b.Session == a.Session && b.Rule == a.Rule && b.Seq > a.Seq && b.Seq-a.Seq <= math.MaxUint32
}

// due reports whether a checkpoint is to be made when the chain is that long.
func (t *Target) due(n uint64) bool {
	every := t.opts.Checkpoints.Every
	return every > 0 && t.opts.Chain && n >= t.journal.checkpointed+every && n >= t.postponed
}

// lineEnded reports whether the log ends with a whole line.
func (t *Target) lineEnded() (bool, error) {
	last := &t.journal.intent
	if t.size == 0 || last.log == t.logID && last.size > 0 && last.end() == t.size {
		return true, nil
	}
	end := make([]byte, 1)
	if _, err := t.disk.readAt(t.log, end, t.size-1); err != nil {
		return false, err
	}
	return end[0] == '\n', nil
}

// undo cuts off what a failed write left, if that is still the end of the log;
// if not, the intent stays open for the next writer.
func (t *Target) undo(begin, end int64) {
	st, err := t.disk.fstat(t.log)
	if err == nil && st.size == end && (end == begin || t.disk.truncate(t.log, begin) == nil) {
		t.journal.settle(false)
	}
}

func (t *Target) sync() error {
	if !t.opts.Sync {
		return nil
	}
	return t.disk.sync(t.log)
}

// checkpoint has the chain's head taken note of. The log is synced first, so that
// no checkpoint knows of a record that a power cut can take.
func (t *Target) checkpoint() error {
	j := &t.journal
	if err := t.disk.sync(t.log); err != nil {
		return err
	}
	if err := t.opts.Checkpoints.Write(filepath.Base(t.place), j.head); err != nil {
		return err
	}
	j.checkpointed = j.head.N
	return inJournal(j.store())
}

// lastCheckpoint makes one of what no checkpoint covers, whoever wrote it.
func (t *Target) lastCheckpoint() error {
	if !t.opts.Chain || !t.opts.Checkpoints.AtClose || t.opts.Checkpoints.Every == 0 {
		return nil
	}
	if t.place == "" && t.resolve(false) != nil {
		return nil // nothing was ever written
	}
	if _, err := t.disk.lstat(t.place); err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if err := t.journal.lock(ctx, t.place); err != nil {
		return t.failure(ctx, "the last checkpoint of "+t.cfg.Path, err)
	}
	defer t.journal.unlock()
	err := t.journal.load()
	if err == nil && !t.unchanged() {
		err = t.openLog(0)
	}
	if err == nil {
		err = t.settle()
	}
	if err == nil && t.journal.head.N > t.journal.checkpointed {
		err = t.checkpoint()
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil // a log that is gone gets no checkpoint
	}
	return t.failure(ctx, "the last checkpoint of "+t.cfg.Path, err)
}
