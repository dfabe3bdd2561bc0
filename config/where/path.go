package where

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of a path. Steps fit a 64-bit mask with one bit for "arrived".
const (
	maxPath  = 1024
	maxSteps = 32
)

// step is one step of a path, from a value to some of its children.
type step struct {
	kind stepKind
	// descend is set for a step written after `..`: it is tried at every depth
	// below, not only at the next one.
	descend bool
	name    string
	glob    *Glob
	index   int
}

type stepKind uint8

const (
	stepName  stepKind = iota // .name
	stepGlob                  // .na*e
	stepIndex                 // [3]
	stepEach                  // [*]
)

func (s *step) member(name []byte) bool {
	switch s.kind {
	case stepName:
		return string(name) == s.name
	case stepGlob:
		return s.glob.Match(name)
	}
	return false
}

func (s *step) element(i int) bool {
	return s.kind == stepEach || s.kind == stepIndex && s.index == i
}

// parsePath reads a path into a record:
//
//	data.input.file_path   a property of a property; a leading `$` or `$.` changes nothing
//	data.input.*           every property; `*` and `?` are globs over names
//	data.edits[0]          an element, from 0
//	data.edits[*].text     every element
//	data..command          `command` at any depth below data
//	data['odd.name']       a name with dots or brackets in it; `\` before a character does the same
func parsePath(text string) ([]step, error) {
	switch {
	case text == "":
		return nil, errors.New("the path is empty")
	case len(text) > maxPath:
		return nil, fmt.Errorf("the path is longer than %d bytes", maxPath)
	case strings.ContainsRune(text, 0):
		return nil, errors.New("the path holds a NUL")
	}
	rest := text
	if rest[0] == '$' && (len(rest) == 1 || rest[1] == '.' || rest[1] == '[') {
		rest = rest[1:]
		if rest == "" {
			return nil, errors.New("the path names the whole record; name a field, such as data.name")
		}
	} else if rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	var steps []step
	for rest != "" {
		var st step
		var err error
		switch {
		case strings.HasPrefix(rest, "..."):
			return nil, errors.New("`...` is no step; `..` is \"at any depth\"")
		case strings.HasPrefix(rest, ".."):
			st.descend = true
			rest = rest[2:]
			if !strings.HasPrefix(rest, "[") {
				rest, err = nameStep(&st, rest)
			} else {
				rest, err = bracketStep(&st, rest)
			}
		case rest[0] == '.':
			rest, err = nameStep(&st, rest[1:])
		default:
			rest, err = bracketStep(&st, rest)
		}
		if err != nil {
			return nil, err
		}
		if rest != "" && rest[0] != '.' && rest[0] != '[' {
			return nil, fmt.Errorf("after a ] comes a . or a [, not %q", rest[:1])
		}
		if steps = append(steps, st); len(steps) > maxSteps {
			return nil, fmt.Errorf("the path has more than %d steps", maxSteps)
		}
	}
	return steps, nil
}

func nameStep(st *step, rest string) (string, error) {
	var name, pattern strings.Builder
	wild := false
	i := 0
scan:
	for ; i < len(rest); i++ {
		switch c := rest[i]; c {
		case '.', '[':
			break scan
		case ']':
			return "", errors.New("a ] without its [; write \\] for a plain bracket")
		case '\\':
			i++
			if i == len(rest) {
				return "", errors.New("the path ends in a \\ that escapes nothing")
			}
			name.WriteByte(rest[i])
			pattern.WriteByte('\\')
			pattern.WriteByte(rest[i])
		case '*', '?':
			wild = true
			pattern.WriteByte(c)
		default:
			name.WriteByte(c)
			pattern.WriteByte(c)
		}
	}
	if i == 0 {
		return "", errors.New("a name is missing after a dot")
	}
	if !wild {
		st.kind, st.name = stepName, name.String()
		return rest[i:], nil
	}
	g, err := CompileGlob(pattern.String())
	if err != nil {
		return "", err
	}
	st.kind, st.glob = stepGlob, g
	return rest[i:], nil
}

func bracketStep(st *step, rest string) (string, error) {
	if len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"') {
		return quotedStep(st, rest)
	}
	end := strings.IndexByte(rest, ']')
	if end < 0 {
		return "", errors.New("a [ without its ]")
	}
	inside, after := rest[1:end], rest[end+1:]
	switch {
	case inside == "*":
		st.kind = stepEach
		return after, nil
	case inside == "":
		return "", errors.New("[] is empty; write [*] for every element, [0] for the first")
	case strings.HasPrefix(inside, "?"):
		return "", errors.New("filters in [..] are not available; add a second condition instead")
	case strings.ContainsAny(inside, ":,"):
		return "", errors.New("ranges and lists in [..] are not available; write [*] or one number")
	case inside[0] == '-':
		return "", errors.New("elements are counted from 0 at the front, never from the end")
	}
	// A sign in front would pass Atoi, and `01` would be two spellings of one element.
	n, err := strconv.Atoi(inside)
	if err != nil || strconv.Itoa(n) != inside {
		return "", fmt.Errorf("[%s] is no element: write [*], a number, or a name in quotes: ['%s']", inside, inside)
	}
	st.kind, st.index = stepIndex, n
	return after, nil
}

func quotedStep(st *step, rest string) (string, error) {
	quote := rest[1]
	var name strings.Builder
	for i := 2; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\' && i+1 < len(rest):
			i++
			name.WriteByte(rest[i])
		case c == quote:
			if i+1 == len(rest) || rest[i+1] != ']' {
				return "", errors.New("a quoted name in [..] must be followed by ]")
			}
			st.kind, st.name = stepName, name.String()
			return rest[i+2:], nil
		default:
			name.WriteByte(c)
		}
	}
	return "", fmt.Errorf("the quoted name in [..] has no closing %c", quote)
}

// FirstName returns the plain name that a path begins with, so that a caller
// can check it against the names there are; ok is false when it begins with
// anything else, or is no path.
func FirstName(path string) (name string, ok bool) {
	steps, err := parsePath(path)
	if err != nil || steps[0].kind != stepName || steps[0].descend {
		return "", false
	}
	return steps[0].name, true
}
