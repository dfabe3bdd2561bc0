// Package front is the hook process: stdin to record to spool, in the order of
// design §6, and the rule that nothing that goes wrong here may reach the
// client. Nothing is printed, and the caller exits 0 whatever is returned.
package front

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ways/hooks/client"
	"ways/hooks/crc"
	"ways/hooks/dirs"
	"ways/hooks/index"
	"ways/hooks/launch"
	"ways/hooks/note"
	"ways/hooks/payload"
	"ways/hooks/record"
	"ways/hooks/spool"
	"ways/hooks/tally"
	"ways/hooks/ticket"
)

// Marker is the environment variable that every consumer we run is given. A
// hook that finds it does nothing: a consumer that runs the client must not
// start a loop (hard case BR-33).
const Marker = "WAYS_CONSUMER"

// Bounds of a hook's waits.
const (
	// stall is how long stdin may stay silent inside a payload. A client writes its
	// payload in one go: only a machine out of breath comes near it.
	stall = 10 * time.Second
	// drainStall is how long a refused payload's writer may stay silent.
	drainStall = 250 * time.Millisecond
	// drainMost bounds a drain: a writer that never ends is left to its EPIPE.
	drainMost = 5 * time.Second
	// lockWait is how long a hook waits for the append lock; past it the record
	// goes to the inbox. SessionEnd hooks have 1.5 s in all.
	lockWait = 500 * time.Millisecond
)

// Windows in which an equal event is a duplicate from a second wiring. A tool
// call's id names one call for good; other events can repeat, though not within
// the moment in which the client runs all hooks of one event.
const (
	toolWindow  = 5 * time.Minute
	otherWindow = 2 * time.Second
)

// Process is what a hook process needs of the world.
type Process struct {
	// Stdin is a descriptor below 32.
	Stdin  int
	Getenv func(string) string
	Now    func() time.Time
	// Environ and Executable are os's. They are asked when another program is
	// started, which is rare.
	Environ    func() []string
	Executable func() (string, error)
}

// hook is one run.
type hook struct {
	Process
	in   stdin
	dirs dirs.Dirs
	// event is the hook event's name, once known.
	event string
	// tickets are the records that blocking rules may want.
	tickets []ticket.Ticket
}

// Run takes one hook event. It returns when the process may exit with 0; it
// never panics.
func Run(p Process) {
	h := &hook{Process: p, in: stdin{fd: p.Stdin, silence: stall}}
	d, err := dirs.From(p.Getenv)
	defer func() {
		if r := recover(); r != nil && err == nil {
			// The value is not logged: it may quote the payload.
			h.refuse(tally.Panic)
		}
	}()
	h.dirs = d
	raw, readErr := payload.Read(&h.in)
	mute := err != nil || p.Getenv(Marker) != ""
	switch {
	case errors.Is(readErr, errSilent):
		if !mute {
			h.refuse(tally.Stalled)
		}
		return
	case readErr != nil:
		h.in.drain(drainStall)
		if !mute {
			h.refusePayload(readErr, len(raw))
		}
		return
	case mute:
		return
	}
	h.handle(raw)
	h.in.drain(0)
}

func (h *hook) refuse(reason tally.Reason, fields ...string) {
	if h.event != "" {
		fields = append(fields, "hook", h.event)
	}
	tally.Note(h.dirs, h.Now(), reason, fields...)
}

// refusePayload counts a payload that cannot be used, by the sentinel in err.
func (h *hook) refusePayload(err error, size int) {
	for _, s := range []error{
		payload.ErrEmpty, payload.ErrNotObject, payload.ErrTruncated, payload.ErrSyntax,
		payload.ErrTooLarge, payload.ErrNoSession, payload.ErrNoEvent,
	} {
		if errors.Is(err, s) {
			h.refuse(tally.Reason(s.Error()), "detail", err.Error(), "bytes", strconv.Itoa(size))
			return
		}
	}
	h.refuse(tally.Truncated, "detail", "read error")
}

// handle takes one whole payload.
func (h *hook) handle(raw []byte) {
	ev, err := payload.Parse(raw)
	if err != nil {
		h.refusePayload(err, len(raw))
		return
	}
	possible := record.Yields(ev.Name)
	if possible == 0 {
		h.refuse(tally.UnknownEvent, "name", eventName(ev.Name))
		return
	}
	h.event = ev.Name
	project := h.Getenv("CLAUDE_PROJECT_DIR")
	if project == "" {
		project = ev.Cwd
	}
	idx, ok := h.index(project)
	if !ok {
		return
	}
	want := (idx.Async | idx.Blocking) & possible
	dir := h.dirs.Session(ev.Session)
	var res spool.Result
	// Where a transcript may show what no hook tells, its reader must know of
	// turns that end, also when no rule asks for that event itself.
	noted := note.Wanted(ev.Name) && (idx.Async | idx.Blocking).Intersects(record.Shown())
	if want != 0 || noted {
		var ok bool
		if res, ok = h.append(dir, ev, project, want, noted, idx); !ok {
			return
		}
		h.wake(dir, ev.Session)
	} else {
		// A dispatcher that runs may still hold records for a rule that the index
		// has no more: it looks when it is woken.
		launch.Wake(dir, launch.Appended)
	}
	if ev.Name == "SessionEnd" {
		launch.End(dir)
	}
	if len(h.tickets) > 0 {
		h.in.drain(0)
		h.block(ev, project, res)
	}
}

// index reads the project's index, compiled anew when one of its files changed.
func (h *hook) index(project string) (index.Header, bool) {
	path := h.dirs.Index(project)
	var runErr error
	// Twice, since another hook's compilation, begun before the change, may put
	// its index over the one that was just made.
	for range 2 {
		idx, changed, err := index.Fresh(path, project)
		if err == nil && changed == "" {
			return idx, true
		}
		var compiler string
		if compiler, runErr = h.operator(); runErr != nil {
			break
		}
		runErr = launch.Run(launch.Command{
			Path: compiler, Args: []string{"sensors", "compile", "--project=" + project}, Env: h.Environ(),
		})
		if runErr != nil {
			break
		}
	}
	idx, err := index.Read(path)
	switch {
	case err == nil && runErr == nil:
		return idx, true
	case err == nil:
		// An older plan is better than none: it is what held until now.
		h.refuse(tally.IndexFailed, "detail", runErr.Error(), "used", "the last index")
		return idx, true
	case runErr == nil:
		runErr = err
	}
	h.refuse(tally.IndexFailed, "detail", runErr.Error(), "used", "none")
	return index.Header{}, false
}

// append puts the event's records into the session's spool. It reports whether
// there is something for the dispatcher to do.
func (h *hook) append(dir string, ev payload.Event, project string, want record.Set, noted bool, idx index.Header) (spool.Result, bool) {
	now := h.Now()
	req := spool.Request{
		Key: eventKey(ev), Window: otherWindow,
		Generation: idx.Generation, Now: now, Wait: lockWait, Sync: idx.Flags&index.Sync != 0,
		Build: func(inTurn bool) []spool.Draft {
			var drafts []spool.Draft
			for _, d := range record.FromEvent(ev, record.Context{Time: now, Project: project, InTurn: inTurn}, want) {
				drafts = append(drafts, d)
			}
			return drafts
		},
	}
	if noted {
		req.Note = note.Of(ev, now, project, client.Of(os.Getppid())).Encode()
	}
	if ev.ToolUseID != "" {
		req.Window = toolWindow
	}
	if ev.Name == "UserPromptSubmit" && ev.PromptID != "" {
		req.Turn = sum64([]byte(ev.PromptID))
	}
	if idx.Blocking.Intersects(want) {
		req.Claim = func(first, last uint64) {
			var err error
			if h.tickets, err = ticket.Claim(dir, first, last); err != nil {
				// The dispatcher hands the records out instead, without the wait.
				h.refuse(tally.BlockFailed, "detail", err.Error())
			}
		}
	}
	res, err := spool.Append(dir, req)
	switch {
	case err != nil:
		h.refuse(tally.Unwritten, "detail", err.Error())
		h.tickets = nil // what was written of the event is the dispatcher's
		return res, res.First != 0
	case res.Duplicate:
		h.refuse(tally.Duplicate)
		return res, false
	case res.Inbox:
		h.refuse(tally.Inbox, "session", dirs.SessionName(ev.Session))
		return res, true
	}
	return res, res.First != 0 || res.Noted
}

// block becomes the operator binary, which hands the records to the blocking
// rules and waits (design §8). It returns only when that cannot be: the
// dispatcher then takes the records over.
func (h *hook) block(ev payload.Event, project string, res spool.Result) {
	operator, err := h.operator()
	if err != nil {
		h.refuse(tally.BlockFailed, "detail", err.Error())
		return
	}
	args := []string{
		operator, "sensors", "block", "--session=" + ev.Session, "--project=" + project,
		"--first=" + strconv.FormatUint(res.First, 10),
		"--segment=" + strconv.FormatUint(res.At.Segment, 10), "--offset=" + strconv.FormatInt(res.At.Offset, 10),
	}
	for _, t := range h.tickets {
		fd, err := t.Keep()
		if err != nil {
			h.refuse(tally.BlockFailed, "detail", err.Error())
			return
		}
		args = append(args, "--ticket-fd="+strconv.Itoa(fd))
	}
	err = syscall.Exec(operator, args, launch.Environment(h.Environ()))
	h.refuse(tally.BlockFailed, "detail", err.Error())
}

// wake tells the session's dispatcher of the record, or starts one.
func (h *hook) wake(dir, session string) {
	lock, err := launch.TryLock(dir)
	if errors.Is(err, launch.ErrRunning) {
		launch.Wake(dir, launch.Appended)
		return
	}
	if err == nil {
		defer lock.Close()
		err = h.start(session, lock)
	}
	if err != nil {
		h.refuse(tally.LaunchFailed, "detail", err.Error())
	}
}

// start starts the session's dispatcher under its lock.
func (h *hook) start(session string, lock *os.File) error {
	operator, err := h.operator()
	if err != nil {
		return err
	}
	return launch.Start(launch.Command{
		Path: operator,
		Args: []string{"sensors", "dispatch", "--session=" + session, "--lock-fd=" + strconv.Itoa(launch.LockFD)},
		Env:  launch.Environment(h.Environ()),
	}, lock)
}

// operator is the operator binary beside the running one.
func (h *hook) operator() (string, error) {
	self, err := h.Executable()
	return Sibling(self, "waysctl"), err
}

// Sibling is a program in the directory of self.
func Sibling(self, name string) string { return filepath.Join(filepath.Dir(self), name) }

// eventKey tells events apart: a hash of the event's name, agent and ids, and
// of the whole payload. The ids are the client's and the API's, so that an agent
// that makes two payloads collide still has two calls.
func eventKey(ev payload.Event) uint64 {
	ids := strings.Join([]string{ev.Name, ev.AgentID, ev.ToolUseID, ev.PromptID}, "\x00")
	return sum64([]byte(ids))*31 + sum64(ev.Raw)
}

// sum64 is never 0, which would be no key.
func sum64(b []byte) uint64 { return crc.Sum64(b) | 1 }

// eventName is an unknown event's name for the log. The names of events are
// words; what has a digit or a sign in it may be anything.
func eventName(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }) {
		return "no word"
	}
	return printable(s)
}

// printable keeps a name from outside short and plain, for the log.
func printable(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, s), "?")
}

// IsPayload reports whether stdin may hold a hook payload: it is a pipe, a
// socket or a file, neither a terminal nor a device.
func IsPayload(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0 && !info.IsDir()
}
