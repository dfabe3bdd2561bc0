package transcript

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"ways/hooks/record"
	"ways/hooks/transcript"
)

// History is what the transcripts of a past session show, in the order of time.
type History struct {
	actor   Actor
	st      *state
	session string
	// Project is the directory that the session began in.
	Project string
	// Damaged counts the stretches that could not be read.
	Damaged int
}

// ReadHistory reads a session's transcript and its subagents'. It keeps where
// things are and not what they are, so that a long session fits into memory.
func ReadHistory(ctx context.Context, path string) (*History, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	h := &History{st: newState()}
	h.st.Transcript = path
	h.st.history = true
	h.st.discover()
	list := (&run{Actor: &h.actor, st: h.st}).paths()
	for _, p := range list {
		f := h.st.Files[p]
		var first, last time.Time
		for {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			rep, err := h.actor.reader.Read(&f.File, true, func(l transcript.Line, again bool) {
				if h.session == "" {
					h.session = l.Session
				}
				if h.Project == "" {
					h.Project = l.Cwd
				}
				if !l.Time.IsZero() {
					if first.IsZero() {
						first = l.Time
					}
					last = l.Time
				}
				h.st.line(f, l, again, l.Time)
			})
			h.Damaged += len(rep.Damaged)
			if err != nil {
				return nil, err
			}
			if !rep.More {
				break
			}
		}
		if f.Agent != "" && !first.IsZero() {
			h.subagent(f.Agent, "start", first)
			h.subagent(f.Agent, "stop", last)
		}
	}
	if h.session == "" {
		return nil, fmt.Errorf("%s is not a transcript: no line of it names a session", path)
	}
	h.actor.Session = h.session
	h.st.Project, h.st.Cwd = h.Project, h.Project
	slices.SortStableFunc(h.st.Items, func(a, b *item) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Agent, b.Agent)) })
	return h, nil
}

// subagent adds the record of a subagent's start or stop, of which a transcript
// tells by beginning and ending.
func (h *History) subagent(id, phase string, at time.Time) {
	h.st.Items = append(h.st.Items, &item{Section: record.Subagent, Agent: id, Status: phase, Time: at})
}

// Session is the session's id, and Len how many records there are.
func (h *History) Session() string { return h.session }

// Len is how many records there are.
func (h *History) Len() int { return len(h.st.Items) }

// Record is one record of a past session.
type Record struct {
	Section record.Section
	// Ref names it for good.
	Ref  string
	Seq  uint64
	JSON []byte
}

// errGone is the error of a record whose transcript has changed meanwhile.
var errGone = errors.New("the transcript changed while it was read")

// At returns record i, counted from 0; its JSON is marked as replayed, and its
// number is i+1.
func (h *History) At(i int) (Record, error) {
	it := h.st.Items[i]
	var d record.Draft
	ref := it.ref()
	if it.Section == record.Subagent {
		ref = "subagent:" + it.Agent + ":" + it.Status
		kind := h.st.agent(it.Agent).Type
		d = record.FromEntry(record.Entry{
			Section: record.Subagent, Time: it.Time, Session: h.session, AgentID: it.Agent, AgentType: kind,
			Project: h.Project, Cwd: h.Project, Ref: ref, Replayed: true,
			Data: []record.Field{
				record.Text("phase", it.Status), record.Text("id", it.Agent), record.Text("type", kind), record.Bool("inferred", true),
			},
		})
	} else {
		var err error
		if d, err = h.actor.entryOf(h.st, it); errors.Is(err, errMoved) || errors.Is(err, fs.ErrNotExist) {
			err = errGone
		}
		if err != nil {
			return Record{}, err
		}
	}
	n := uint64(i + 1)
	return Record{it.Section, ref, n, d.Append(nil, n)}, nil
}
