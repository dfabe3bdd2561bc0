package wiring

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Hook is the entry that is written, in exec form: the client runs Command with
// Args, with no shell in between.
type Hook struct {
	// Command is the absolute path of the ways binary.
	Command string
	// Args is what Command is run with.
	Args []string
	// Timeout is in seconds, the unit of the client's settings. A longer one on
	// SessionEnd also raises the client's 1.5 s budget for that event.
	Timeout int
}

// Sensors is the hook entry for the ways binary at an absolute path.
func Sensors(command string) Hook {
	return Hook{Command: command, Args: sensorArgs(), Timeout: 15}
}

// Event is a hook event that the entry is wired on.
type Event struct {
	Name string
	// Matcher is "*" where the client filters by tool name, else empty: the
	// group is then written without one.
	Matcher string
}

// Events lists the events that are wired (seed §2), in the order they are
// written. WorktreeCreate is not among them, since the client reads a path from
// that hook's stdout, and MessageDisplay is not, since it fires on every piece
// of text shown.
func Events() []Event {
	return []Event{
		{"PreToolUse", "*"},
		{"PostToolUse", "*"},
		{"PostToolUseFailure", "*"},
		{"UserPromptSubmit", ""},
		{"Stop", ""},
		{"SubagentStart", ""},
		{"SubagentStop", ""},
		{"SessionStart", ""},
		{"SessionEnd", ""},
		{"PreCompact", ""},
	}
}

// binary is the base name by which an entry of ours is recognised.
const binary = "ways"

func sensorArgs() []string { return []string{"hook", "sensors"} }

func (h Hook) check() error {
	switch {
	case !filepath.IsAbs(h.Command):
		return fmt.Errorf("the hook command %q is not an absolute path: the client may start it from any directory", h.Command)
	case !utf8.ValidString(h.Command) || strings.ContainsRune(h.Command, 0):
		return fmt.Errorf("the hook command %q cannot be written as JSON: install ways under a path that is valid UTF-8", h.Command)
	case filepath.Base(h.Command) != binary || !slices.Equal(h.Args, sensorArgs()):
		// An entry that would not be recognised later could never be removed.
		return fmt.Errorf("the hook command %q %q is not `%s hook sensors`", h.Command, h.Args, binary)
	case h.Timeout < 1:
		return fmt.Errorf("the hook timeout is %d s; it must be at least 1 s", h.Timeout)
	}
	return nil
}

// form says how a hook entry came to call us.
type form uint8

const (
	foreign   form = iota // somebody else's entry
	execForm              // command and args
	shellForm             // one command string that is nothing but us
	wrapped               // a longer command line of the user's that ends in us
)

// entry is one element of a group's "hooks" array.
type entry struct {
	item
	members []item
	form    form
	// program is what a form other than foreign runs, without quotes.
	program                string
	command, args, timeout *item
}

// ours reports whether the entry is ours to change and to remove. A wrapped
// one is the user's: it counts as wired and is left alone.
func (e entry) ours() bool { return e.form == execForm || e.form == shellForm }

// current reports whether the entry says exactly what h says.
func (e entry) current(src []byte, h Hook) bool {
	return e.form == execForm && e.program == h.Command && e.timeout != nil && isNumber(src, e.timeout.value, h.Timeout)
}

func isNumber(src []byte, s span, want int) bool {
	f, err := strconv.ParseFloat(string(src[s.start:s.end]), 64)
	return err == nil && f == float64(want)
}

// recognise fills in whose entry it is. Only `"type": "command"` entries run
// programs.
func (e *entry) recognise(src []byte) {
	var kind string
	for i := range e.members {
		m := &e.members[i]
		switch m.name {
		case "type":
			kind, _ = text(src, m.value)
		case "command":
			e.command = m
		case "args":
			e.args = m
		case "timeout":
			e.timeout = m
		}
	}
	if kind != "command" || e.command == nil {
		return
	}
	command, ok := text(src, e.command.value)
	if !ok {
		return
	}
	if e.args != nil {
		args, ok := texts(src, e.args.value)
		if ok && slices.Equal(args, sensorArgs()) && filepath.Base(command) == binary {
			e.form, e.program = execForm, command
		}
		return
	}
	e.form, e.program = shellCommand(command)
}

// shellCommand recognises a command line that ends in `ways hook sensors`, as
// the entry looked before clients knew "args".
func shellCommand(line string) (form, string) {
	rest := strings.TrimSpace(line)
	for _, word := range []string{"sensors", "hook"} {
		cut, ok := strings.CutSuffix(rest, word)
		if !ok || strings.TrimRight(cut, " \t") == cut {
			return foreign, ""
		}
		rest = strings.TrimRight(cut, " \t")
	}
	// What is left is the program, perhaps quoted, perhaps with more before it.
	quote := ""
	if n := len(rest); n > 1 && (rest[n-1] == '"' || rest[n-1] == '\'') {
		quote = rest[n-1:]
		rest = rest[:n-1]
	}
	head, program := "", rest
	separators := " \t;&|()"
	if quote != "" {
		separators = quote
	}
	if i := lastUnescaped(rest, separators); i >= 0 {
		head, program = rest[:i], rest[i+1:]
	} else if quote != "" {
		return foreign, "" // an unmatched quote: no shell would run it
	}
	if filepath.Base(program) != binary {
		return foreign, ""
	}
	if strings.TrimSpace(head) == "" {
		return shellForm, program
	}
	return wrapped, program
}

// lastUnescaped is the last place of one of the bytes with no backslash before
// it, or -1.
func lastUnescaped(s, bytes string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if strings.IndexByte(bytes, s[i]) >= 0 && (i == 0 || s[i-1] != '\\') {
			return i
		}
	}
	return -1
}

// texts decodes an array of strings.
func texts(src []byte, s span) ([]string, bool) {
	if src[s.start] != '[' {
		return nil, false
	}
	var list []string
	for _, it := range children(src, s) {
		t, ok := text(src, it.value)
		if !ok {
			return nil, false
		}
		list = append(list, t)
	}
	return list, true
}

// isBlank reports whether the text is nothing but JSON white space.
func isBlank(src []byte) bool { return len(bytes.Trim(src, " \t\r\n")) == 0 }
