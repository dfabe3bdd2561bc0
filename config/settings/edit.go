package settings

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"
)

// ErrNotEditable is returned for a config.yaml that cannot be changed in place;
// the user has to edit it.
var ErrNotEditable = errors.New("cannot be changed in place; edit the file")

// Trust returns the text of a config.yaml in which a project is listed; all else
// stays as it is. dir is an absolute path.
func Trust(text []byte, dir string) ([]byte, error) {
	item := fmt.Sprintf("%q", dir)
	at, insert, err := placeFor(text, item)
	if err != nil {
		return nil, err
	}
	out := slices.Concat(text[:at], []byte(insert), text[at:])
	return out, same(text, out, func(list []string) []string { return append(list, dir) })
}

// Distrust returns the text without the list's entries that lead to the project,
// whose symbolic links are resolved; home is what ~/ stands for.
func Distrust(text []byte, project, home string) ([]byte, error) {
	leads := func(entry string) bool {
		dir := Settings{Home: home}.resolve(entry)
		real, err := filepath.EvalSymlinks(dir)
		return dir == project || err == nil && real == project
	}
	out := slices.Clone(text)
	for {
		seq, err := listOf(out)
		if err != nil || seq == nil {
			return nil, fmt.Errorf("ways.project_sensors: %w", ErrNotEditable)
		}
		i := slices.IndexFunc(seq.Content, func(n *yaml.Node) bool { return leads(n.Value) })
		if i < 0 {
			break
		}
		from, to, err := spanOf(out, seq, i)
		if err != nil {
			return nil, err
		}
		out = slices.Concat(out[:from], out[to:])
	}
	drop := func(list []string) []string { return slices.DeleteFunc(list, leads) }
	if tidied := withoutEmpty(out); same(text, tidied, drop) == nil {
		return tidied, nil
	}
	return out, same(text, out, drop)
}

// withoutEmpty takes the list's key out when nothing is left in the list, and the
// group's when nothing is left in the group; each only where it is a line by itself.
func withoutEmpty(text []byte) []byte {
	for _, key := range []string{"project_sensors", "ways"} {
		root, err := document(text)
		if err != nil || root == nil {
			return text
		}
		in := root
		if key != "ways" {
			in = child(root, "ways")
		}
		value := child(in, key)
		if value == nil || len(value.Content) > 0 || value.Kind == yaml.ScalarNode && value.Tag != "!!null" {
			return text
		}
		i := slices.IndexFunc(in.Content, func(n *yaml.Node) bool { return n.Value == key })
		from, to := offset(text, in.Content[i].Line, 1), offset(text, in.Content[i].Line+1, 1)
		switch string(bytes.ReplaceAll(bytes.TrimSpace(text[from:to]), []byte(" "), nil)) {
		case key + ":", key + ":[]", key + ":{}":
			text = slices.Concat(text[:from], text[to:])
		case "ways:{project_sensors:[]}":
			return slices.Concat(text[:from], text[to:])
		default:
			return text
		}
	}
	return text
}

// placeFor returns where in the text a new entry goes, and what.
func placeFor(text []byte, item string) (at int, insert string, err error) {
	root, err := document(text)
	if err != nil {
		return 0, "", err
	}
	group := child(root, "ways")
	list := child(group, "project_sensors")
	switch {
	case root == nil || group == nil && root.Style&yaml.FlowStyle == 0:
		newline := ""
		if len(text) > 0 && text[len(text)-1] != '\n' {
			newline = "\n"
		}
		return len(text), newline + "ways:\n  project_sensors:\n    - " + item + "\n", nil
	case list != nil && list.Kind == yaml.SequenceNode && list.Style&yaml.FlowStyle != 0:
		if len(list.Content) > 0 {
			item += ", "
		}
		return offset(text, list.Line, list.Column) + 1, item, nil
	case list != nil && list.Kind == yaml.SequenceNode:
		return offset(text, list.Line, 1), spaces(list.Column-1) + "- " + item + "\n", nil
	case list != nil && list.Tag == "!!null" && list.Value == "" && group.Style&yaml.FlowStyle == 0:
		return offset(text, list.Line+1, 1), spaces(group.Column+1) + "- " + item + "\n", nil
	case group != nil && list == nil && group.Kind == yaml.MappingNode && group.Style&yaml.FlowStyle != 0:
		insert = "project_sensors: [" + item + "]"
		if len(group.Content) > 0 {
			insert += ", "
		}
		return offset(text, group.Line, group.Column) + 1, insert, nil
	case group != nil && list == nil && group.Kind == yaml.MappingNode:
		in := spaces(group.Column - 1)
		return offset(text, group.Line, 1), in + "project_sensors:\n" + in + "  - " + item + "\n", nil
	}
	return 0, "", fmt.Errorf("ways.project_sensors: %w", ErrNotEditable)
}

// spanOf returns the bytes to cut for entry i of a list.
func spanOf(text []byte, seq *yaml.Node, i int) (from, to int, err error) {
	n := seq.Content[i]
	if seq.Style&yaml.FlowStyle == 0 {
		line := bytes.TrimLeft(text[offset(text, n.Line, 1):], " ")
		if !bytes.HasPrefix(line, []byte("- ")) {
			return 0, 0, fmt.Errorf("ways.project_sensors: %w", ErrNotEditable)
		}
		return offset(text, n.Line, 1), offset(text, n.Line+1, 1), nil
	}
	from = offset(text, n.Line, n.Column)
	if i+1 < len(seq.Content) {
		next := seq.Content[i+1]
		return from, offset(text, next.Line, next.Column), nil
	}
	end := bytes.IndexByte(text[from:], ']')
	if end < 0 {
		return 0, 0, fmt.Errorf("ways.project_sensors: %w", ErrNotEditable)
	}
	to = from + end
	if i > 0 {
		if comma := bytes.LastIndexByte(text[:from], ','); comma >= 0 {
			from = comma
		}
	}
	return from, to, nil
}

func spaces(n int) string { return string(bytes.Repeat([]byte(" "), max(n, 0))) }

// offset returns where a place in the text is; columns count characters.
func offset(text []byte, line, col int) int {
	at := 0
	for ; line > 1 && at < len(text); line-- {
		i := bytes.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	for i := range string(text[at:]) {
		if col--; col <= 0 {
			return at + i
		}
	}
	return len(text)
}

func document(text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil, nil
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, ErrNotEditable
	}
	return doc.Content[0], nil
}

func listOf(text []byte) (*yaml.Node, error) {
	root, err := document(text)
	if list := child(child(root, "ways"), "project_sensors"); list != nil && list.Kind == yaml.SequenceNode {
		return list, err
	}
	return &yaml.Node{Kind: yaml.SequenceNode}, err
}

// child returns the value of a mapping's key; nil when there is none.
func child(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// same checks that an edit did to the list what it was meant to, and nothing to
// all else.
func same(before, after []byte, edit func([]string) []string) error {
	was, wasList, err := parts(before)
	is, isList, err2 := parts(after)
	want := edit(wasList)
	slices.Sort(want)
	slices.Sort(isList)
	if errors.Join(err, err2) != nil || !slices.Equal(want, isList) || !reflect.DeepEqual(was, is) {
		return fmt.Errorf("ways.project_sensors: %w", ErrNotEditable)
	}
	return nil
}

// parts decodes a text, and takes the list out of it.
func parts(text []byte) (all map[string]any, list []string, err error) {
	all = map[string]any{}
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, nil, err
	}
	group, _ := all["ways"].(map[string]any)
	entries, _ := group["project_sensors"].([]any)
	for _, e := range entries {
		list = append(list, fmt.Sprint(e))
	}
	delete(group, "project_sensors")
	if len(group) == 0 {
		delete(all, "ways")
	}
	return all, list, nil
}
