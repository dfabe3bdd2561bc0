// Package survey looks over an installation: what was counted, which dispatchers
// run, what waits. It costs a directory's listing and a few stats for each past
// session, and opens files of those alone that have a dispatcher or something
// left.
package survey

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ways/actors/deadletter"
	"ways/cmd/internal/dispatch"
	"ways/hooks/dirs"
	"ways/hooks/launch"
	"ways/hooks/spool"
	"ways/hooks/tally"
	"ways/metrics/counters"
	"ways/metrics/exposition"
)

// Survey is the state of an installation.
type Survey struct {
	Sum counters.Sum
	// Sessions have a dispatcher or something left, the one that waits longest first.
	Sessions []Session
	// Past counts the other sessions.
	Past int
	// SpoolBytes is the size of all spools.
	SpoolBytes int64
	// DeadLetters counts the records put aside, by rule.
	DeadLetters map[string]int
	// Refused are the events that hooks did not take.
	Refused map[tally.Reason]uint64
	// Opened counts the session directories in which more was done than a stat.
	Opened int
}

// Session is one session with a dispatcher or with something left.
type Session struct {
	ID      string
	Project string
	Running bool
	// PID, Started, Version and Memory (resident, in bytes; 0 when unknown) are a
	// running dispatcher's.
	PID     int
	Started time.Time
	Version string
	Memory  int64
	// Records is the last one that was read; since the last idle exit.
	Records    uint64
	Damaged    uint64
	SpoolBytes int64
	// Waiting is how many records wait, over all rules, Since the oldest one's time.
	Waiting uint64
	Since   time.Time
}

// Take looks now. An error names the directory or file that stands in the way.
func Take(d dirs.Dirs) (Survey, error) {
	s := Survey{DeadLetters: map[string]int{}}
	var err error
	if s.Sum, err = counters.NewStore(d.State).Sum(); err != nil {
		return s, err
	}
	if s.Refused, err = tally.Counts(d); err != nil {
		return s, err
	}
	if err := s.letters(deadletter.NewStore(d.State)); err != nil {
		return s, err
	}
	marked, err := dispatch.Marked(d)
	if err != nil {
		return s, err
	}
	look := map[string][]counters.File{}
	for _, name := range marked {
		look[name] = nil
	}
	for _, f := range s.Sum.Files {
		look[f.Owner()] = append(look[f.Owner()], f)
	}
	names, err := sessions(d)
	if err != nil {
		return s, err
	}
	for _, name := range names {
		dir := filepath.Join(d.Sessions(), name)
		files, known := look[name]
		if !known && spool.Settled(dir) {
			s.Past++
			continue
		}
		s.Opened++
		one := open(dir, name, files)
		s.SpoolBytes += one.SpoolBytes
		if !one.Running && one.Waiting == 0 && one.SpoolBytes == 0 && !spool.InboxWaiting(dir) {
			s.Past++
			continue
		}
		s.Sessions = append(s.Sessions, one)
	}
	slices.SortFunc(s.Sessions, func(a, b Session) int {
		return cmp.Or(byTime(a.Since, b.Since), cmp.Compare(a.ID, b.ID))
	})
	return s, nil
}

// byTime orders the earlier first, and what has no time last.
func byTime(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

func (s *Survey) letters(store deadletter.Store) error {
	rules, err := store.Rules()
	if err != nil {
		return err
	}
	for _, rule := range rules {
		letters, _, err := store.List(rule)
		if err != nil {
			return err
		}
		if len(letters) > 0 {
			s.DeadLetters[rule] = len(letters)
		}
	}
	return nil
}

func sessions(d dirs.Dirs) ([]string, error) {
	entries, err := os.ReadDir(d.Sessions())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func open(dir, name string, files []counters.File) Session {
	s := Session{ID: name, Running: launch.Running(dir)}
	s.SpoolBytes, _ = spool.Bytes(dir)
	for _, f := range files {
		s.ID, s.Records = f.Session.Session, max(s.Records, f.Seq)
		s.Project = cmp.Or(f.Project, s.Project)
		s.Damaged += f.Damaged
		n, since := f.Waiting()
		s.Waiting += n
		if byTime(since, s.Since) < 0 {
			s.Since = since
		}
	}
	if s.Running {
		var info dispatch.Info
		if data, err := dirs.ReadFile(filepath.Join(dir, dispatch.InfoName)); err == nil && json.Unmarshal(data, &info) == nil {
			s.PID, s.Started, s.Version = info.PID, info.Started, info.Version
			s.Memory = resident(info.PID)
		}
	}
	return s
}

// Snapshot is the survey as metrics show it.
func (s Survey) Snapshot(now time.Time, version string) exposition.Snapshot {
	out := exposition.Snapshot{
		Sum: s.Sum, Now: now, Version: version, HookRefusals: map[string]uint64{},
		DeadLetters: maps.Clone(s.DeadLetters), SpoolBytes: s.SpoolBytes,
	}
	for r, n := range s.Refused {
		out.HookRefusals[string(r)] = n
	}
	for _, one := range s.Sessions {
		if one.Running {
			out.Dispatchers++
		}
	}
	return out
}
