package sensors

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"gopkg.in/yaml.v3"
)

// ErrNotEditable is returned for a file whose value cannot be replaced in place;
// the file has to be edited by hand.
var ErrNotEditable = errors.New("cannot be changed in place; edit the file")

// Rename returns a sensor file's text with another name; all else stays as it is.
func Rename(text []byte, name string) ([]byte, error) { return setTop(text, "name", name) }

// SetEnabled returns a sensor file's text with the sensor turned on or off; all
// else stays as it is.
func SetEnabled(text []byte, on bool) ([]byte, error) {
	return setTop(text, "enabled", strconv.FormatBool(on))
}

// setTop replaces the value of a top-level key, or adds the key as the last line,
// and checks that nothing else changed.
func setTop(text []byte, key, value string) ([]byte, error) {
	at, size, err := findTop(text, key)
	if err != nil {
		return nil, err
	}
	var out []byte
	if at < 0 {
		out = append(out, text...)
		if len(out) > 0 && out[len(out)-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, key+": "+value+"\n"...)
	} else {
		out = append(append(append(out, text[:at]...), value...), text[at+size:]...)
	}
	var before, after map[string]any
	if err := errors.Join(yaml.Unmarshal(text, &before), yaml.Unmarshal(out, &after)); err != nil {
		return nil, fmt.Errorf("%s: %w", key, ErrNotEditable)
	}
	delete(before, key)
	if got := fmt.Sprint(after[key]); got != value {
		return nil, fmt.Errorf("%s: %w", key, ErrNotEditable)
	}
	delete(after, key)
	if fmt.Sprint(before) != fmt.Sprint(after) {
		return nil, fmt.Errorf("%s: %w", key, ErrNotEditable)
	}
	return out, nil
}

// findTop returns where a top-level key's plain or quoted value is; -1 when the
// key is not there.
func findTop(text []byte, key string) (at, size int, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return 0, 0, err
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode || doc.Content[0].Style&yaml.FlowStyle != 0 {
		return 0, 0, ErrNotEditable
	}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i].Value != key {
			continue
		}
		v := pairs[i+1]
		if v.Kind != yaml.ScalarNode || v.Anchor != "" || v.Style&(yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) != 0 {
			return 0, 0, fmt.Errorf("%s: %w", key, ErrNotEditable)
		}
		spelled := v.Value
		if v.Style&yaml.DoubleQuotedStyle != 0 {
			spelled = `"` + spelled + `"`
		} else if v.Style&yaml.SingleQuotedStyle != 0 {
			spelled = "'" + spelled + "'"
		}
		lines := bytes.SplitAfter(text, []byte{'\n'})
		if v.Line > len(lines) {
			return 0, 0, fmt.Errorf("%s: %w", key, ErrNotEditable)
		}
		start := 0
		for _, ln := range lines[:v.Line-1] {
			start += len(ln)
		}
		// The column counts characters.
		start += len(string([]rune(string(lines[v.Line-1]))[:v.Column-1]))
		if !bytes.HasPrefix(text[start:], []byte(spelled)) || spelled == "" {
			return 0, 0, fmt.Errorf("%s: %w", key, ErrNotEditable)
		}
		return start, len(spelled), nil
	}
	return -1, 0, nil
}
