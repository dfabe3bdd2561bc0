package wiring

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Undo is what Apply knew and the text it made does not show. It is kept until
// Remove; without it Remove takes out what it empties.
type Undo struct {
	// Document is the whole text when it held nothing but white space.
	Document *string `json:"document,omitempty"`
	// Empty holds the white space inside containers that were there and empty,
	// by path: "", "hooks", "hooks/PreToolUse".
	Empty map[string]string `json:"empty,omitempty"`
}

// Then is the Undo for an edit that was made after this one.
func (u Undo) Then(later Undo) Undo {
	if later.Document != nil {
		return later
	}
	merged := Undo{Document: u.Document, Empty: maps.Clone(u.Empty)}
	if merged.Empty == nil {
		merged.Empty = later.Empty
	} else {
		maps.Copy(merged.Empty, later.Empty)
	}
	return merged
}

// Edit is the outcome of Apply or Remove.
type Edit struct {
	// Settings is the new text; the very text that was given when nothing changed.
	Settings []byte
	Changed  bool
	// Added, Updated and Removed name the events whose entry was written,
	// brought up to date, or taken out.
	Added, Updated, Removed []string
	// Undo belongs to an Apply that changed something.
	Undo Undo
}

// errAstray says that an edit did not come out as it must. It is a bug of ours,
// caught before anything is written.
var errAstray = errors.New("the edit came out wrong and was thrown away; please report the settings file (without its secrets) as a bug of ways")

const (
	pathRoot   = ""
	pathHooks  = "hooks"
	pathEvents = "hooks/"
)

// Apply wires h on every event of Events. An entry of ours that is there, in
// whichever group, is brought up to date in place and never written a second
// time. Blank text counts as {}. The error is a *Refusal when the text cannot
// be edited safely.
func Apply(settings []byte, h Hook) (Edit, error) {
	if err := h.check(); err != nil {
		return Edit{}, err
	}
	d, err := read(settings)
	if err != nil {
		return Edit{}, err
	}
	out := Edit{Settings: settings}
	if d.blank {
		return fresh(settings, h)
	}
	st := d.style()
	root := d.layout(st, d.root, d.members, nil)
	hooks := layout{}
	var named []item
	if d.hooks != nil {
		for _, e := range d.events {
			named = append(named, e.item)
		}
		hooks = d.layout(st, d.hooks.value, named, &root)
	}
	note := func(path string, c span, list []item) {
		if len(list) > 0 {
			return
		}
		if out.Undo.Empty == nil {
			out.Undo.Empty = map[string]string{}
		}
		out.Undo.Empty[path] = d.inner(c)
	}

	var splices []splice
	var missing []any
	for _, want := range Events() {
		at := d.event(want.Name)
		if at == nil {
			missing = append(missing, member{want.Name, array{h.group(want)}})
			out.Added = append(out.Added, want.Name)
			continue
		}
		found := false
		updates := len(splices)
		for _, g := range at.groups {
			for _, e := range g.entries {
				found = found || e.form != foreign
				if e.ours() && !e.current(settings, h) {
					splices = append(splices, d.update(st, e, h)...)
				}
			}
		}
		if len(splices) > updates {
			out.Updated = append(out.Updated, want.Name)
		}
		if !found {
			list := items(at.groups)
			note(pathEvents+want.Name, at.value, list)
			splices = append(splices, d.insert(st, at.value, list, d.layout(st, at.value, list, &hooks), []any{h.group(want)}))
			out.Added = append(out.Added, want.Name)
		}
	}
	if len(missing) > 0 {
		if d.hooks == nil {
			note(pathRoot, d.root, d.members)
			var all object
			for _, m := range missing {
				all = append(all, m.(member))
			}
			splices = append(splices, d.insert(st, d.root, d.members, root, []any{member{"hooks", all}}))
		} else {
			note(pathHooks, d.hooks.value, named)
			splices = append(splices, d.insert(st, d.hooks.value, named, hooks, missing))
		}
	}
	if len(splices) == 0 {
		return out, nil
	}
	out.Settings, out.Changed = cut(settings, splices), true
	return out, checkApplied(out.Settings, h)
}

// fresh makes the settings of a file that held nothing.
func fresh(blank []byte, h Hook) (Edit, error) {
	out := Edit{Changed: true}
	document := string(blank)
	out.Undo.Document = &document
	var all object
	for _, want := range Events() {
		all = append(all, member{want.Name, array{h.group(want)}})
		out.Added = append(out.Added, want.Name)
	}
	st := standard()
	if bytes.Contains(blank, []byte("\r\n")) {
		st.newline = "\r\n"
	}
	var b strings.Builder
	st.write(&b, object{{"hooks", all}}, layout{lines: true, indent: st.unit})
	b.WriteString(st.newline)
	out.Settings = []byte(b.String())
	return out, checkApplied(out.Settings, h)
}

// checkApplied reads the result once more: an edit that is wrong must not reach
// the file.
func checkApplied(settings []byte, h Hook) error {
	w, err := Inspect(settings, h)
	if err != nil || len(w.Missing) > 0 || len(w.Stale) > 0 {
		return errAstray
	}
	return nil
}

// group is the element written into an event's array.
func (h Hook) group(e Event) object {
	hooks := member{"hooks", array{object{
		{"type", quoted("command")},
		{"command", quoted(h.Command)},
		{"args", h.args()},
		{"timeout", raw(strconv.Itoa(h.Timeout))},
	}}}
	if e.Matcher == "" {
		return object{hooks}
	}
	return object{{"matcher", quoted(e.Matcher)}, hooks}
}

func (h Hook) args() array {
	var list array
	for _, a := range h.Args {
		list = append(list, quoted(a))
	}
	return list
}

// update brings one entry of ours up to date. What its user added to it
// ("async", say) stays.
func (d *document) update(st style, e entry, h Hook) []splice {
	var out []splice
	lay := d.layout(st, e.value, e.members, nil)
	st.colon = d.colon(e.members[0], st.colon)
	add := func(behind item, name string, value any) {
		s := d.insert(st, e.value, []item{behind}, lay, []any{member{name, value}})
		out = append(out, s)
	}
	if e.program != h.Command || e.form == shellForm {
		v := e.command.value
		out = append(out, splice{v.start, v.end, string(quoted(h.Command))})
	}
	if e.args == nil {
		add(*e.command, "args", h.args())
	}
	switch {
	case e.timeout == nil:
		add(e.members[len(e.members)-1], "timeout", raw(strconv.Itoa(h.Timeout)))
	case !isNumber(d.src, e.timeout.value, h.Timeout):
		v := e.timeout.value
		out = append(out, splice{v.start, v.end, strconv.Itoa(h.Timeout)})
	}
	return out
}

func (d *document) event(name string) *event {
	for i := range d.events {
		if d.events[i].name == name {
			return &d.events[i]
		}
	}
	return nil
}

func items(groups []group) []item {
	list := make([]item, len(groups))
	for i, g := range groups {
		list[i] = g.item
	}
	return list
}

// Remove takes every entry of ours out, on whichever event it stands, and with
// it the containers that this empties; those that undo says were empty before
// stay, as they were. Nothing else is touched: Remove of what Apply made, with
// the Undo that Apply gave, is the text from before. A command line of the
// user's own that merely ends in ours stays too.
func Remove(settings []byte, undo Undo) (Edit, error) {
	d, err := read(settings)
	if err != nil {
		return Edit{}, err
	}
	out := Edit{Settings: settings}
	var splices []splice
	emptied := make([]bool, len(d.events))
	for i, e := range d.events {
		here, all := removeFrom(e)
		if len(here) == 0 && !all {
			continue
		}
		out.Removed = append(out.Removed, e.name)
		inner, wasThere := undo.Empty[pathEvents+e.name]
		switch {
		case all && wasThere:
			splices = append(splices, splice{e.value.start + 1, e.value.end - 1, inner})
		case all:
			emptied[i] = true
		default:
			splices = append(splices, here...)
		}
	}
	if len(out.Removed) == 0 {
		return out, nil
	}
	out.Changed = true
	named := make([]item, len(d.events))
	for i, e := range d.events {
		named[i] = e.item
	}
	hooksInner, hooksWasThere := undo.Empty[pathHooks]
	switch {
	case slices.Contains(emptied, false) || hooksWasThere:
		splices = append(splices, without(d.hooks.value, named, emptied, hooksInner)...)
	case len(d.members) == 1 && undo.Document != nil:
		splices = []splice{{0, len(settings), *undo.Document}}
	default:
		marked := make([]bool, len(d.members))
		for i, m := range d.members {
			marked[i] = m.name == "hooks"
		}
		// Not the splices inside: they would overlap this one.
		splices = without(d.root, d.members, marked, undo.Empty[pathRoot])
	}
	out.Settings = cut(settings, splices)
	w, err := Inspect(out.Settings, Hook{})
	if err != nil || len(w.Commands) > 0 {
		return Edit{}, errAstray
	}
	return out, nil
}

// removeFrom takes our entries out of one event; all is true when no group is
// left.
func removeFrom(e event) (splices []splice, all bool) {
	gone := make([]bool, len(e.groups))
	var inside []splice
	for i, g := range e.groups {
		marked := make([]bool, len(g.entries))
		list := make([]item, len(g.entries))
		ours := 0
		for j, it := range g.entries {
			list[j] = it.item
			marked[j] = it.ours()
			if marked[j] {
				ours++
			}
		}
		switch {
		case ours == 0:
		case ours == len(list) && g.plain():
			gone[i] = true
		default:
			inside = append(inside, without(g.list.value, list, marked, "")...)
		}
	}
	if !slices.Contains(gone, true) {
		return inside, false
	}
	if !slices.Contains(gone, false) {
		return nil, true
	}
	return append(inside, without(e.value, items(e.groups), gone, "")...), false
}
