package record

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// WithoutThinking returns value with each thinking block in it turned into null:
// thinking is never exported, from any source (seed §3), also where a tool's
// answer carries a subagent's messages. A block is an object whose type says so
// and that has the text, the data or the signature of one. What has none comes
// back as it was, without a copy.
func WithoutThinking(value jsontext.Value) jsontext.Value {
	if kind := value.Kind(); kind != '{' && kind != '[' || !mayThink(value) {
		return value
	}
	cuts := thinking(value)
	if len(cuts) == 0 {
		return value
	}
	out := make([]byte, 0, len(value))
	at := 0
	for _, c := range cuts {
		out = append(append(out, value[at:c.from]...), "null"...)
		at = c.to
	}
	return append(out, value[at:]...)
}

// mayThink is a fast no: the word, or a letter of it spelled as an escape, is in
// every value that has such a block.
func mayThink(value []byte) bool {
	for _, mark := range []string{"thinking", `\u006`, `\u007`} {
		if bytes.Contains(value, []byte(mark)) {
			return true
		}
	}
	return false
}

// stretch is a part of a value, in bytes.
type stretch struct{ from, to int }

// open is an object or array that is being read.
type open struct {
	from   int
	object bool
	// name is the member whose value comes next; wantName that a name comes next.
	name     string
	wantName bool
	// typed and bodied: it has the type, and the body, of a thinking block.
	typed, bodied bool
}

// thinking finds the outermost thinking blocks of a value, in order.
func thinking(value []byte) []stretch {
	dec := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	var stack []open
	var cuts []stretch
	for {
		tok, err := dec.ReadToken()
		if errors.Is(err, io.EOF) || err != nil {
			return cuts
		}
		end := int(dec.InputOffset())
		var top *open
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		switch kind := tok.Kind(); kind {
		case '{', '[':
			if top != nil {
				top.wantName = top.object
			}
			stack = append(stack, open{from: end - 1, object: kind == '{', wantName: kind == '{'})
		case '}', ']':
			if top.typed && top.bodied {
				for len(cuts) > 0 && cuts[len(cuts)-1].from > top.from {
					cuts = cuts[:len(cuts)-1]
				}
				cuts = append(cuts, stretch{top.from, end})
			}
			stack = stack[:len(stack)-1]
		default:
			switch {
			case top == nil || !top.object:
			case top.wantName:
				top.name, top.wantName = tok.String(), false
			default:
				top.wantName = true
				top.note(kind, tok)
			}
		}
	}
}

// note looks at one scalar member of an object.
func (o *open) note(kind jsontext.Kind, tok jsontext.Token) {
	if kind != '"' {
		return
	}
	switch o.name {
	case "type":
		switch tok.String() {
		case "thinking", "redacted_thinking", "thinking_delta", "signature_delta":
			o.typed = true
		}
	case "thinking", "data", "signature":
		o.bodied = true
	}
}
