package wiring

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Wiring says how far a settings file has our hook entry. Names of events are
// in the order of Events, then of the file.
type Wiring struct {
	// Wired events have an entry that is up to date; a user's own command line
	// that ends in ours counts.
	Wired []string
	// Missing events have none.
	Missing []string
	// Stale entries run another path, or have other arguments or another timeout.
	Stale []Stale
	// Narrowed events are seen in part (for some tools, say): their user moved the entry
	// under a matcher of his own.
	Narrowed []Narrowed
	// Wrapped events run ways inside a longer command line of the user's.
	Wrapped []string
	// Extra events have our entry although we never write it there.
	Extra []string
	// Repeated events have more than one entry of ours under one matcher. The
	// hook drops such copies, so that they cost time alone.
	Repeated []string
	// Commands lists each program that an entry of ours runs, once.
	Commands []string
	// Foreign counts the hook entries of others.
	Foreign int
	// Disabled is true when "disableAllHooks" is set: the client runs no hook.
	Disabled bool
}

// Stale is one entry that Apply would update.
type Stale struct{ Event, Command string }

// Narrowed is one event and the matcher it is limited to.
type Narrowed struct{ Event, Matcher string }

// Complete reports whether every event is wired and up to date.
func (w Wiring) Complete() bool { return len(w.Missing) == 0 && len(w.Stale) == 0 }

// Inspect compares a settings file with what Apply(settings, h) would make of
// it. The error is a *Refusal, as from Apply.
func Inspect(settings []byte, h Hook) (Wiring, error) {
	d, err := read(settings)
	if err != nil {
		return Wiring{}, err
	}
	w := Wiring{Disabled: d.disabled}
	for _, want := range Events() {
		e := d.event(want.Name)
		if e == nil {
			w.Missing = append(w.Missing, want.Name)
			continue
		}
		w.inspectEvent(d.src, want, *e, h)
	}
	for _, e := range d.events {
		extra := false
		for _, g := range e.groups {
			for _, it := range g.entries {
				switch {
				case it.form == foreign:
					w.Foreign++
				case it.ours() && !slices.Contains(w.Commands, it.program):
					w.Commands = append(w.Commands, it.program)
				}
				extra = extra || it.ours()
			}
		}
		if extra && !wired(e.name) {
			w.Extra = append(w.Extra, e.name)
		}
	}
	return w, nil
}

func (w *Wiring) inspectEvent(src []byte, want Event, e event, h Hook) {
	found, stale, everywhere, repeated, wrappedHere := false, false, false, false, false
	matchers := map[string]bool{}
	narrow := ""
	for _, g := range e.groups {
		for _, it := range g.entries {
			if it.form == foreign {
				continue
			}
			found = true
			wrappedHere = wrappedHere || it.form == wrapped
			if it.ours() && !it.current(src, h) {
				stale = true
				w.Stale = append(w.Stale, Stale{want.Name, it.program})
			}
			repeated = repeated || matchers[g.matcher]
			matchers[g.matcher] = true
			if matchesAll(g.matcher) {
				everywhere = true
			} else {
				narrow = g.matcher
			}
		}
	}
	switch {
	case !found:
		w.Missing = append(w.Missing, want.Name)
		return
	case !stale:
		w.Wired = append(w.Wired, want.Name)
	}
	if !everywhere {
		w.Narrowed = append(w.Narrowed, Narrowed{want.Name, narrow})
	}
	if wrappedHere {
		w.Wrapped = append(w.Wrapped, want.Name)
	}
	if repeated {
		w.Repeated = append(w.Repeated, want.Name)
	}
}

// matchesAll reports whether a matcher, which the client reads as a regular
// expression unless it is empty or *, lets everything through.
func matchesAll(matcher string) bool {
	return matcher == "" || matcher == "*" || matcher == ".*"
}

// CheckProgram says why the client could not run the program at a path: it is
// not there, not a file, or not executable for this user.
func CheckProgram(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the program of the hook entry: %w; install ways there, or run `ways reconcile` again", err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("the program of the hook entry, %s, is not a file", path)
	}
	// Root may run a file that has any x bit; others as access(2) says.
	if info.Mode().Perm()&0o111 == 0 || unix.Access(path, unix.X_OK) != nil {
		return fmt.Errorf("the program of the hook entry, %s, is not executable; chmod +x it", path)
	}
	return nil
}
