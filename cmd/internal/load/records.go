package main

import (
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// sample is what tool results are cut from: source text, test output, a diff, a
// page, JSON, log lines. It is a file of its own, so that a change of any of those
// does not change what is measured.
//
//go:embed testdata/sample.txt
var sample string

// maker makes the records of a session: tool results with a piece of the sample,
// each another one.
type maker struct {
	head, project string
	// size is how long a record is, in bytes, near enough.
	size, made int
}

func newMaker(session, project string, size int) *maker {
	return &maker{
		head: fmt.Sprintf(`{"v":1,"section":"tool_result","event":"PostToolUse","source":"hook","ts":%q,"session":%q,"seq":`,
			time.Now().UTC().Format(time.RFC3339Nano), session),
		project: project, size: size,
	}
}

// draft is a record around its number.
type draft struct{ head, tail string }

// Append implements spool.Draft.
func (d draft) Append(dst []byte, seq uint64) []byte {
	return append(strconv.AppendUint(append(dst, d.head...), seq, 10), d.tail...)
}

// Size implements spool.Draft.
func (d draft) Size() int { return len(d.head) + len(d.tail) }

func (m *maker) next() draft {
	m.made++
	tail := fmt.Sprintf(`,"agent_id":"main","agent_type":"main","project":%q,"cwd":"/src",`+
		`"data":{"id":"toolu_%08d","name":"Bash","status":"ok","output":{"stdout":`, m.project, m.made)
	const end = `,"interrupted":false}}}`
	room := max(0, m.size-len(m.head)-len(tail)-len(end)-2)
	return draft{m.head, tail + string(cut(m.made*379, room)) + end}
}

// cut returns about n bytes of JSON string, quotes included, from the sample.
func cut(from, n int) []byte {
	text := make([]byte, 0, n)
	for len(text) < n {
		rest := sample[from%len(sample):]
		text = append(text, rest[:min(len(rest), n-len(text))]...)
		from = 0
	}
	quoted := quote(text)
	if over := len(quoted) - n - 2; over > 0 && n > 0 {
		// What was escaped made it longer: cut less.
		quoted = quote(text[:n*n/(n+over)])
	}
	return quoted
}

func quote(text []byte) []byte {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return []byte(`""`) // a rune was cut in two; the next piece will do
	}
	return quoted
}
