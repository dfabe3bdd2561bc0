// Package tally counts what hooks refused, across processes, and keeps a
// bounded log that says what each one was. A hook has no other voice: its
// stdout and exit code belong to the client.
package tally

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/dirs"
	"ways/hooks/temp"
)

// Reason is why a hook did not do its work; the name of its counter.
type Reason string

// The reasons. The first ones are about the payload, the others about us.
const (
	Empty        Reason = "empty"
	NotObject    Reason = "not_object"
	Truncated    Reason = "truncated"
	InvalidJSON  Reason = "invalid_json"
	TooLarge     Reason = "too_large"
	Stalled      Reason = "stalled"
	NoSession    Reason = "no_session"
	NoEvent      Reason = "no_event"
	UnknownEvent Reason = "unknown_event"
	Duplicate    Reason = "duplicate"
	Inbox        Reason = "inbox"
	Unwritten    Reason = "unwritten"
	IndexFailed  Reason = "index_failed"
	LaunchFailed Reason = "launch_failed"
	Panic        Reason = "panic"
	BlockFailed  Reason = "block_failed"
)

// Reasons lists every reason; its order is the order of the counter file's
// slots, so new ones go at the end.
func Reasons() []Reason {
	return []Reason{
		Empty, NotObject, Truncated, InvalidJSON, TooLarge, Stalled, NoSession, NoEvent,
		UnknownEvent, Duplicate, Inbox, Unwritten, IndexFailed, LaunchFailed, Panic,
		BlockFailed,
	}
}

const (
	countsName = "hook-counts"
	logName    = "hook.log"
	// maxLog is where the log is put aside as hook.log.1; two files at most.
	maxLog = 1 << 20
	// slotBytes is the width of one counter: a name, a number, a newline.
	slotBytes = 40
)

// Note counts one refusal, and logs it with what is known of it. fields come in
// pairs of name and value; they never hold text of the session. Nothing is
// returned: there is nobody left to tell.
func Note(d dirs.Dirs, now time.Time, reason Reason, fields ...string) {
	if dirs.MakePrivate(d.State) != nil {
		return
	}
	log := filepath.Join(d.State, logName)
	counts := filepath.Join(d.State, countsName)
	if dirs.Linked(counts) {
		// The other name keeps what it has; the counting goes on in a copy.
		data, err := dirs.ReadFile(counts)
		if err != nil || temp.Write(counts, data, false) != nil {
			return
		}
		logLine(log, now, countsName+" had another name elsewhere, a hard link; it is a copy now")
	}
	count(counts, reason)
	if reason != Duplicate {
		logLine(log, now, "hook refused", append([]string{"reason", string(reason)}, fields...)...)
	}
}

// count adds one to a counter. Each has its own place in the file and is
// rewritten there under a lock, so that a full disk does not stop the counting.
func count(path string, reason Reason) {
	f, err := dirs.Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return
	}
	defer f.Close()
	if !lock(f) {
		return
	}
	// One read and one write, so that the lock is held for microseconds.
	reasons := Reasons()
	slots := make([]byte, len(reasons)*slotBytes)
	have, _ := f.ReadAt(slots, 0)
	have -= have % slotBytes
	at := slices.Index(reasons, reason) * slotBytes
	if at < 0 {
		return
	}
	was := uint64(0)
	if at < have {
		_, was = parseSlot(string(slots[at : at+slotBytes]))
	}
	// Slots are filled from the front: the file is whole at every length.
	var out []byte
	for i := min(have, at); i < at; i += slotBytes {
		out = append(out, formatSlot(reasons[i/slotBytes], 0)...)
	}
	out = append(out, formatSlot(reason, was+1)...)
	for i := max(have, at+slotBytes); i < len(slots); i += slotBytes {
		out = append(out, formatSlot(reasons[i/slotBytes], 0)...)
	}
	_, _ = f.WriteAt(out, int64(min(have, at)))
}

func formatSlot(r Reason, n uint64) string {
	num := strconv.FormatUint(n, 10)
	return string(r) + strings.Repeat(" ", slotBytes-1-len(r)-len(num)) + num + "\n"
}

func parseSlot(s string) (Reason, uint64) {
	words := strings.Fields(s)
	if len(words) != 2 {
		return "", 0
	}
	n, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil {
		return "", 0
	}
	return Reason(words[0]), n
}

// lockWait is how long a hook waits for the counters: it is microseconds unless
// dozens of hooks are refused at once.
const lockWait = 250 * time.Millisecond

// lock waits for the lock a little.
func lock(f *os.File) bool {
	for began := time.Now(); time.Since(began) < lockWait; time.Sleep(200 * time.Microsecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return true
		}
		if !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EWOULDBLOCK) {
			return false
		}
	}
	return false
}

// Counts reads the counters; those never counted are absent.
func Counts(d dirs.Dirs) (map[Reason]uint64, error) {
	data, err := dirs.ReadFile(filepath.Join(d.State, countsName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	counts := map[Reason]uint64{}
	for _, ln := range strings.Split(string(data), "\n") {
		if r, n := parseSlot(ln); n > 0 {
			counts[r] = n
		}
	}
	return counts, nil
}

// LogPath is the log of refusals.
func LogPath(d dirs.Dirs) string { return filepath.Join(d.State, logName) }

func logLine(path string, now time.Time, message string, fields ...string) {
	if dirs.Linked(path) {
		if os.Remove(path) != nil {
			return
		}
		logLine(path, now, "the log had another name elsewhere, a hard link, which keeps it; here begins a new one")
	}
	if info, err := os.Lstat(path); err == nil && info.Size() > maxLog {
		_ = os.Rename(path, path+".1")
	}
	line := append(now.UTC().AppendFormat([]byte(`{"time":"`), time.RFC3339Nano), `","level":"warn","message":`...)
	line, _ = jsontext.AppendQuote(line, message)
	for i := 0; i+1 < len(fields); i += 2 {
		line = append(line, ',')
		line, _ = jsontext.AppendQuote(line, fields[i])
		line = append(line, ':')
		line, _ = jsontext.AppendQuote(line, fields[i+1])
	}
	f, err := dirs.Open(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return
	}
	defer f.Close()
	// Under the lock, so that what a full disk left of a line can go again: the
	// next one would go on in the middle of it.
	locked := lock(f)
	size, statErr := f.Seek(0, io.SeekEnd)
	if n, err := f.Write(append(line, '}', '\n')); err != nil && n > 0 && locked && statErr == nil {
		_ = f.Truncate(size)
	}
}
