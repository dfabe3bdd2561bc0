// Package file is the target that appends records to a local file (design §5),
// one line each (or, in the text format, one entry of whole lines).
//
// Many processes write one log at once: every session has a dispatcher of its
// own. They meet at <state>/targets/<sha256 of the path>, which is the lock, and
// which holds the intent of the append under way. The log is never locked, so
// readers and logrotate are free; it is looked up again at each delivery, so a
// log that was moved or deleted is begun anew.
//
// What holds for the log:
//
//   - Records are never interleaved, and each begins at the start of a line, also
//     behind a foreign last line that nobody ended.
//   - A writer that is killed in the middle leaves a fragment and an intent that
//     says where it began. The next writer moves the fragment to <hash>.torn and
//     cuts the log back to there; it does so only when the fragment lies inside
//     the intent, in the same file, and begins as the intent says.
//   - A write that fails half way (a full disk) is cut back by the writer itself.
//   - A delivery whose line is already in the log is not written again, as long
//     as nobody else has written since: so a dispatcher killed between the append
//     and its own bookkeeping makes no duplicate.
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
	"os"
	"path/filepath"
	"strings"

	"ways/actors/target"
	"ways/actors/target/expand"
	"ways/actors/target/placeholder"
	"ways/actors/target/visible"
	"ways/config/plan"
)

// DefaultTemplate is the text format's template when a rule gives none.
const DefaultTemplate = "{ts} {agent_type} {section}: {data.prompt|data.text|data}"

// indent begins each further line of a value in the text format.
const indent = "    "

// Options are what a dispatcher knows and a rule does not.
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
}

// Target appends to one file. It is used by one goroutine at a time.
type Target struct {
	cfg      plan.File
	opts     Options
	template placeholder.Template
	journal  journal
	log      *os.File
}

var _ target.Target = (*Target)(nil)

// New returns the target of a file rule. It touches no file; an error means a
// format or template that no sensor file may hold.
func New(cfg plan.File, opts Options) (target.Target, error) {
	t := &Target{cfg: cfg, opts: opts}
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
	default:
		return nil, fmt.Errorf("file %s: format %q is neither jsonl nor text", cfg.Path, cfg.Format)
	}
	return t, nil
}

// Describe returns the path as the rule gives it.
func (t *Target) Describe() string { return t.cfg.Path }

// Close gives the descriptors back.
func (t *Target) Close() error {
	err := t.journal.close()
	if t.log != nil {
		err = errors.Join(err, t.log.Close())
		t.log = nil
	}
	return err
}

// Deliver appends the record. It waits for the log's lock until ctx ends; once it
// has the lock it does not wait for anything but the disk.
//
// Reasons: missing_variable, bad_path, is_symlink, is_directory, not_regular,
// hard_linked, not_directory, permission, name_too_long (refused); disk_full,
// file_too_large, read_only, io, cancelled (failed); lock (timed out).
func (t *Target) Deliver(ctx context.Context, d target.Dispatch) error {
	return t.deliver(ctx, d.ID, d.Body.Bytes())
}

func (t *Target) deliver(ctx context.Context, id string, record []byte) error {
	entry := t.entry(record)
	path, err := t.resolve()
	if err != nil {
		return err
	}
	name := sha256.Sum256([]byte(path))
	place := filepath.Join(t.opts.StateDir, "targets", hex.EncodeToString(name[:]))
	if err := t.journal.lock(ctx, place); err != nil {
		return t.failure(ctx, "the lock of "+t.cfg.Path, err)
	}
	defer t.journal.unlock()
	if err := t.openLog(path); err != nil {
		return t.failure(ctx, t.cfg.Path, err)
	}
	if id != "" {
		hash := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(hash[:])
	}
	if err := t.append(entry, id); err != nil {
		return t.failure(ctx, t.cfg.Path, err)
	}
	return nil
}

// entry renders the record, ending in a newline.
func (t *Target) entry(record []byte) []byte {
	if t.cfg.Format == "jsonl" {
		return append(append(make([]byte, 0, len(record)+1), record...), '\n')
	}
	text := t.template.Append(nil, record, func(dst []byte, v string) []byte {
		return visible.Append(dst, strings.TrimRight(v, "\r\n"), indent)
	})
	return append(text, '\n')
}

// resolve returns the log's path with its directory made and free of symlinks,
// so that two ways to one file meet at one lock.
func (t *Target) resolve() (string, error) {
	path, err := expand.Path(t.cfg.Path, t.opts.Home, t.opts.Getenv)
	if err != nil {
		reason := "bad_path"
		if errors.Is(err, expand.ErrMissing) {
			reason = "missing_variable"
		}
		return "", refused(reason, fmt.Errorf("file %s: %w", t.cfg.Path, err))
	}
	if path == "/" {
		return "", refused("is_directory", fmt.Errorf("file %s is a directory; name a file in it", t.cfg.Path))
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", t.failure(context.Background(), "the directory of "+t.cfg.Path, err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", t.failure(context.Background(), "the directory of "+t.cfg.Path, err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}

func (t *Target) append(entry []byte, id string) error {
	stat, err := t.log.Stat()
	if err != nil {
		return err
	}
	size := stat.Size()
	if last, ok := t.journal.read(); ok && last.in(stat) {
		if last.holds(t.log, size, entry, id) {
			return t.sync()
		}
		if size, err = t.recover(last, size); err != nil {
			return err
		}
	}
	begin := size
	if size > 0 {
		end := make([]byte, 1)
		if _, err := t.log.ReadAt(end, size-1); err != nil {
			return err
		}
		if end[0] != '\n' {
			entry = append([]byte{'\n'}, entry...)
		}
	}

	mine := intentFor(stat, begin, entry, id)
	mine.OneLine = t.cfg.Format == "jsonl"
	if err := t.journal.write(mine); err != nil {
		return err
	}
	if n, err := t.log.Write(entry); err != nil {
		t.undo(mine, begin+int64(n))
		return err
	}
	// The line is in the log whatever happens from here; an intent that stays
	// open behind a whole line is read as done.
	mine.Writing = false
	_ = t.journal.write(mine)
	return t.sync()
}

// undo cuts off what a failed write left, if that is still the end of the log;
// if not, the open intent is left for the next writer.
func (t *Target) undo(mine intent, end int64) {
	stat, err := t.log.Stat()
	if err != nil || stat.Size() != end || t.log.Truncate(mine.Begin) != nil {
		return
	}
	mine.Writing = false
	mine.Delivery = ""
	_ = t.journal.write(mine)
}

// recover moves the fragment of a killed writer aside and returns the size of
// the log after it.
func (t *Target) recover(last intent, size int64) (int64, error) {
	fragment, err := last.fragment(t.log, size)
	if err != nil || fragment == nil {
		return size, err
	}
	if err := t.journal.moveAside(last, fragment); err != nil {
		return size, err
	}
	if err := t.log.Truncate(last.Begin); err != nil {
		return size, err
	}
	return last.Begin, nil
}

func (t *Target) sync() error {
	if !t.opts.Sync {
		return nil
	}
	return t.log.Sync()
}
