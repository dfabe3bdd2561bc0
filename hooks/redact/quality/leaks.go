package quality

import (
	"bytes"
	"encoding/json"
	"strings"
)

// minLeak is the length of a piece of a secret that counts as a leak, in
// bytes; a shorter secret leaks whole or not at all.
const minLeak = 16

// Leaks returns what of the parts is still to be seen in a record, at any
// level of escapes, or "".
func Leaks(rec []byte, parts []string) string {
	views := []string{string(rec)}
	for range 4 {
		last := views[len(views)-1]
		next := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, "\t", `\/`, "/", `\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(last)
		if next == last {
			break
		}
		views = append(views, next)
	}
	for _, part := range parts {
		size := min(len(part), minLeak)
		for i := 0; i+size <= len(part); i += max(1, size/2) {
			for _, v := range views {
				if strings.Contains(v, part[i:i+size]) {
					return part[i : i+size]
				}
			}
		}
	}
	return ""
}

// BrokenJSON returns a text that is JSON in a string of the record before, at
// any depth, and no longer is after.
func BrokenJSON(before, after []byte) string {
	var a, b any
	parse := func(text []byte, v *any) error {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // 1e999 is JSON
		return d.Decode(v)
	}
	if parse(before, &a) != nil || !json.Valid(after) || parse(after, &b) != nil {
		return string(after)
	}
	var walk func(a, b any) string
	walk = func(a, b any) string {
		switch a := a.(type) {
		case map[string]any:
			b, _ := b.(map[string]any)
			for k := range a {
				if bad := walk(a[k], b[k]); bad != "" {
					return bad
				}
			}
		case []any:
			b, _ := b.([]any)
			for i := range min(len(a), len(b)) {
				if bad := walk(a[i], b[i]); bad != "" {
					return bad
				}
			}
		case string:
			b, ok := b.(string)
			if ok && strings.HasPrefix(a, "{") && json.Valid([]byte(a)) {
				return BrokenJSON([]byte(a), []byte(b))
			}
		}
		return ""
	}
	return walk(a, b)
}
