package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ways/hooks/crc"
	"ways/hooks/dirs"
	"ways/hooks/temp"
)

// inboxName is the directory of records whose writer did not get the lock.
const inboxName = "inbox"

// An inbox file is one event's records: a header line and one line a record,
//
//	I1 <key> <window ms> <turn> <unix ms> <generation> <crc32c of the rest>
//	<offset of the number> <record with its number left out>
//
// written to a temporary name first, so that a file with the final name is whole.
const inboxMark = "I1"

// leaveInInbox stores a request for the dispatcher to take in.
func (d disk) leaveInInbox(dir string, req Request) error {
	drafts := req.Build(false)
	if len(drafts) == 0 {
		return nil
	}
	if err := checkSizes(drafts); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritten, err)
	}
	var body []byte
	for _, draft := range drafts {
		one, two := draft.Append(nil, 1), draft.Append(nil, 2)
		at := 0
		for at < len(one) && one[at] == two[at] {
			at++
		}
		body = strconv.AppendInt(body, int64(at), 10)
		body = append(body, ' ')
		body = append(body, one[:at]...)
		body = append(body, one[at+1:]...)
		body = append(body, '\n')
	}
	head := fmt.Appendf(nil, "%s %x %d %x %d %x %x\n", inboxMark, req.Key, req.Window.Milliseconds(), req.Turn,
		req.Now.UnixMilli(), req.Generation, crc.Castagnoli(0, body))

	box := filepath.Join(dir, inboxName)
	if err := d.mkdir(box); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%w: %w", ErrUnwritten, err)
	}
	// Time first, so that the dispatcher takes them in in order; the process id
	// keeps two hooks of one nanosecond apart.
	name := filepath.Join(box, fmt.Sprintf("%020d-%d", req.Now.UnixNano(), os.Getpid()))
	if err := d.writeWhole(name, append(head, body...)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritten, err)
	}
	return nil
}

// writeWhole makes a file appear under its name with all its bytes, or not.
func (d disk) writeWhole(name string, data []byte) error {
	f, err := d.temp(filepath.Dir(name))
	if err != nil {
		return err
	}
	_, err = d.write(f, data)
	if err == nil {
		err = d.rename(f.Name(), name)
	}
	if err != nil {
		temp.Discard(f)
		return err
	}
	return f.Close()
}

// inboxFiles lists what waits, oldest first. begun says that a hook is at work on
// another one, or was killed at it.
func inboxFiles(dir string) (names []string, begun bool, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, inboxName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	for _, e := range entries {
		switch {
		case temp.Is(e.Name()):
			begun = true
		case e.Type() == 0 && !strings.HasSuffix(e.Name(), ".bad"):
			names = append(names, filepath.Join(dir, inboxName, e.Name()))
		}
	}
	slices.Sort(names)
	return names, begun, err
}

// InboxWaiting reports whether records wait in the inbox.
func InboxWaiting(dir string) bool {
	names, _, err := inboxFiles(dir)
	return err == nil && len(names) > 0
}

// TakeInbox appends what waits in the inbox to the segments, waiting for the
// lock for at most wait. It returns how many events it took, and one error for
// each file it could not read, which it sets aside under the name *.bad.
func TakeInbox(dir string, wait time.Duration) (int, error) { return disk{}.takeInbox(dir, wait) }

func (d disk) takeInbox(dir string, wait time.Duration) (int, error) {
	names, begun, err := inboxFiles(dir)
	if begun {
		temp.Sweep(filepath.Join(dir, inboxName))
	}
	if err != nil || len(names) == 0 {
		return 0, err
	}
	lock, err := d.lockAppend(dir, wait)
	if err != nil {
		return 0, err
	}
	defer lock.Close()
	took := 0
	var errs []error
	for _, name := range names {
		data, err := dirs.ReadFile(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		req, err := parseInbox(data)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err), d.rename(name, name+".bad"))
			continue
		}
		// Appended, then removed: killed in between, the event's key keeps it
		// from being appended again.
		req.Kept = true // in its file
		res, err := d.appendLocked(lock, dir, req)
		if err != nil {
			errs = append(errs, err)
			break
		}
		err = d.remove(name)
		if err == nil || res.First != 0 {
			took++ // a duplicate that cannot be removed is no progress
		}
		errs = append(errs, err)
	}
	return took, errors.Join(errs...)
}

// inboxDraft is a record read back from the inbox.
type inboxDraft struct{ head, tail []byte }

func (d inboxDraft) Append(dst []byte, seq uint64) []byte {
	return append(strconv.AppendUint(append(dst, d.head...), seq, 10), d.tail...)
}

func (d inboxDraft) Size() int { return len(d.head) + len(d.tail) }

var errInbox = errors.New("not a whole inbox file")

func parseInbox(data []byte) (Request, error) {
	head, body, ok := bytes.Cut(data, []byte{'\n'})
	words := strings.Fields(string(head))
	if !ok || len(words) != 7 || words[0] != inboxMark {
		return Request{}, errInbox
	}
	var n [6]uint64
	for i, base := range []int{16, 10, 16, 10, 16, 16} {
		v, err := strconv.ParseUint(words[i+1], base, 64)
		if err != nil {
			return Request{}, errInbox
		}
		n[i] = v
	}
	if uint64(crc.Castagnoli(0, body)) != n[5] {
		return Request{}, errInbox
	}
	var drafts []Draft
	for len(body) > 0 {
		var rec []byte
		rec, body, _ = bytes.Cut(body, []byte{'\n'})
		num, rec, ok := bytes.Cut(rec, []byte{' '})
		at, err := strconv.Atoi(string(num))
		if !ok || err != nil || at < 0 || at > len(rec) {
			return Request{}, errInbox
		}
		drafts = append(drafts, inboxDraft{rec[:at], rec[at:]})
	}
	return Request{
		Key: n[0], Window: time.Duration(n[1]) * time.Millisecond, Turn: n[2],
		Now: time.UnixMilli(int64(n[3])), Generation: n[4],
		Build: func(bool) []Draft { return drafts },
	}, nil
}
