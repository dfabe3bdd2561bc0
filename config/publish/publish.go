// Package publish compiles a project's sensor files and writes the index that
// hooks and dispatchers read.
package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ways/config/compile"
	"ways/config/files"
	"ways/config/plan"
	"ways/config/problem"
	"ways/config/trust"
	"ways/hooks/dirs"
	"ways/hooks/index"
)

// tick is the coarsest step of a file system's clock that is reckoned with: a
// file changed twice within one would look unchanged. Linux steps by up to 10 ms.
const tick = 12 * time.Millisecond

// tries bounds how often a compilation is begun again because a file changed
// meanwhile.
const tries = 10

// ErrUnsettled is returned when files kept changing while they were compiled.
var ErrUnsettled = errors.New("sensor files keep changing")

// Publish compiles what applies to a project and writes its index. Mistakes in
// files are in the result; an error means that no index was written.
func Publish(d dirs.Dirs, reader files.Reader, project string) (compile.Result, error) {
	env := compile.Env{ConfigDir: d.Config, Home: d.Home, State: d.State, Reader: reader}
	for try := range tries {
		began := time.Now()
		res, err := compile.Compile(env, project)
		if err != nil {
			return res, err
		}
		header := headerOf(res)
		header.Project = project
		// Only when nothing changed since a tick before the reading began, and no
		// later change could look the same, is what was read what is there now.
		if age := began.Sub(newest(header.Inputs, began)); age < tick {
			time.Sleep(tick - age)
			continue
		}
		// Times alone do not tell of what went away, or of a symbolic link that
		// leads elsewhere now.
		if changed(res.Inputs, header.Inputs, try == 0) {
			continue
		}
		body, err := json.Marshal(res.Plan)
		if err != nil {
			return res, fmt.Errorf("encode the plan: %w", err)
		}
		var before *index.Header
		if old, err := index.Read(d.Index(project)); err == nil && old.Project == project {
			before = &old
		}
		header.Inherit(before, newest(header.Inputs, began))
		_, err = index.Write(d.Index(project), header, body)
		if noteErr := note(d, res, began); noteErr != nil && err == nil {
			res.Problems = append(res.Problems, compile.Problem{
				File: d.State, Severity: problem.Warning, Message: "a later change of the project's sensor files will not show: " + noteErr.Error(),
			})
		}
		return res, err
	}
	return compile.Result{}, ErrUnsettled
}

// note remembers what a trusted project's files were when it was first compiled,
// so that a later change of them shows; and forgets it when the trust ends.
func note(d dirs.Dirs, res compile.Result, now time.Time) error {
	notes := trust.Notes{State: d.State}
	switch {
	case res.Trusted:
		return notes.Keep(res.Plan.Project, res.Set.Read, now)
	case res.Unlisted:
		return notes.Forget(res.Plan.Project)
	}
	return nil
}

// changed reports whether an input is no longer what was read. One that is there
// and was not read may have appeared since, or be unreadable; which of the two
// shows when all is read again, so it counts only the first time.
func changed(read []compile.Input, now []index.Input, first bool) bool {
	for i, in := range read {
		was := index.Seen(now[i].Kind, in.Path, in.Info)
		if was != now[i] && (was.Present || first) {
			return true
		}
	}
	return false
}

// newest is the latest time of any input. A time far in the future (a clock that
// was set back) is not waited for, and does not count.
func newest(inputs []index.Input, now time.Time) time.Time {
	limit := now.Add(time.Second).UnixNano()
	var latest int64
	for _, in := range inputs {
		for _, t := range []int64{in.Mtime, in.Ctime} {
			if t <= limit {
				latest = max(latest, t)
			}
		}
	}
	return time.Unix(0, latest)
}

func headerOf(res compile.Result) index.Header {
	var h index.Header
	if res.Settings.SpoolSync == "always" {
		h.Flags |= index.Sync
	}
	for _, r := range res.Plan.Rules {
		if r.Mode == plan.Blocking {
			h.Blocking |= r.Sections
		} else {
			h.Async |= r.Sections
		}
	}
	for _, in := range res.Inputs {
		h.Inputs = append(h.Inputs, index.Look(kindOf(in.Kind), in.Path))
	}
	return h
}

func kindOf(k files.Kind) index.Kind {
	switch k {
	case files.Directory:
		return index.Dir
	case files.Root:
		return index.Root
	}
	return index.File
}

// Header reads the header of a project's index, publishing it first when there is
// no usable one.
func Header(d dirs.Dirs, reader files.Reader, project string) (index.Header, error) {
	h, err := index.Read(d.Index(project))
	if err == nil {
		return h, nil
	}
	if _, err := Publish(d, reader, project); err != nil {
		return index.Header{}, err
	}
	return index.Read(d.Index(project))
}

// Fresh is Load for who comes without a hook that has just looked: an index whose
// files have changed is made anew first.
func Fresh(d dirs.Dirs, reader files.Reader, project string) (plan.Plan, uint64, error) {
	if h, err := index.Read(d.Index(project)); err != nil || h.Stale(project) != "" {
		if _, err := Publish(d, reader, project); err != nil {
			return plan.Plan{}, 0, err
		}
	}
	return Load(d, reader, project)
}

// Load reads a project's plan and its generation, publishing it first when there
// is no usable index.
func Load(d dirs.Dirs, reader files.Reader, project string) (plan.Plan, uint64, error) {
	h, body, err := index.ReadPlan(d.Index(project))
	if err != nil || h.Project != project {
		if _, err := Publish(d, reader, project); err != nil {
			return plan.Plan{}, 0, err
		}
		if h, body, err = index.ReadPlan(d.Index(project)); err != nil {
			return plan.Plan{}, 0, err
		}
	}
	var p plan.Plan
	if err := json.Unmarshal(body, &p); err != nil {
		return plan.Plan{}, 0, fmt.Errorf("the plan in %s: %w", d.Index(project), err)
	}
	return p, h.Generation, nil
}
