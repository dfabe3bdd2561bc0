package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ways/hooks/transcript"
)

// item is an item in a word, for tables.
func item(it transcript.Item) string {
	s := it.Kind.String()
	for _, part := range []string{string(it.Text), it.ID, string(it.Name), string(it.Input), string(it.Content), string(it.Output), it.Origin} {
		if part != "" {
			s += " " + part
		}
	}
	if it.Failed {
		s += " failed"
	}
	if it.ForTool {
		s += " tool"
	}
	return s
}

func TestParse(t *testing.T) {
	for _, row := range []struct {
		name, in string
		want     []string
	}{
		{"an unknown kind", `{"type":"from-the-future","message":{"content":[{"type":"text","text":"x"}]}}`, nil},
		{"no kind", `{"x":1}`, nil},
		{"NULs in front", "\x00\x00\x00" + `{"type":"assistant","message":{"content":[{"type":"text","text":"a"}]}}`, []string{`text "a"`}},
		{"blocks", `{"type":"assistant","message":{"id":"m","content":[{"type":"thinking","thinking":"no"},{"type":"text","text":"a"},{"type":"text","text":""},{"type":"redacted_thinking","data":"no"},{"type":"tool_use","id":"t","name":"Bash","input":{"b":1,"a":1e400}},7,{"type":"text","text":5},null]}}`, []string{`text "a"`, `call t "Bash" {"b":1,"a":1e400}`}},
		{"plain content", `{"type":"assistant","message":{"content":"a"}}`, []string{`text "a"`}},
		{"a tool of the API", `{"type":"assistant","message":{"content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[1]}]}}`, []string{`call s "web_search" {}`, `result s [1]`}},
		{"a result", `{"type":"user","toolUseResult":{"stdout":"x"},"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x","is_error":false}]}}`, []string{`result t "x" {"stdout":"x"}`}},
		{"two results", `{"type":"user","toolUseResult":"whose?","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"x","is_error":true},{"type":"tool_result","tool_use_id":"u"}]}}`, []string{`result t "x" failed`, `result u`}},
		{"interrupted", `{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}`, []string{`interrupted "[Request interrupted by user]"`}},
		{"interrupted for a tool", `{"type":"user","message":{"content":"[Request interrupted by user for tool use]"}}`, []string{`interrupted "[Request interrupted by user for tool use]" tool`}},
		{"a prompt", `{"type":"user","promptId":"p","promptSource":"typed","origin":{"kind":"human"},"message":{"content":"hi"}}`, []string{`prompt "hi" human`}},
		{"a prompt of the client's", `{"type":"user","promptId":"p","isMeta":true,"promptSource":"typed","message":{"content":"hi"}}`, nil},
		{"a summary", `{"type":"user","promptId":"p","isCompactSummary":true,"promptSource":"typed","message":{"content":"hi"}}`, nil},
		{"a subagent's prompt", `{"type":"user","promptId":"p","agentId":"a","isSidechain":true,"promptSource":"typed","message":{"content":"hi"}}`, nil},
		{"queued", `{"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","prompt":"q"}}`, []string{`queued "q"`}},
		{"queued, with a picture", `{"type":"attachment","attachment":{"type":"queued_command","commandMode":"prompt","origin":{"kind":"human"},"prompt":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}}`, []string{`queued "a\nb" human`}},
		{"a notification", `{"type":"attachment","attachment":{"type":"queued_command","commandMode":"task-notification","prompt":"q"}}`, []string{`queued "q" task-notification`}},
		{"another attachment", `{"type":"attachment","attachment":{"type":"file","prompt":"q"}}`, nil},
		{"queue", `{"type":"queue-operation","operation":"enqueue","content":"q"}`, []string{`enqueued "q"`}},
		{"of a repeated name the last", `{"type":"user","type":"assistant","message":{},"message":{"content":[{"type":"text","text":"a","text":"b"}]}}`, []string{`text "b"`}},
		{"wrong types all over", `{"type":"assistant","uuid":7,"timestamp":"yesterday","isSidechain":"yes","message":[1]}`, nil},
		{"a lone surrogate", `{"type":"assistant","message":{"content":[{"type":"text","text":"\ud99c"}]}}`, []string{`text "\ud99c"`}},
	} {
		l, err := transcript.Parse([]byte(row.in))
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		var got []string
		for _, it := range l.Items {
			got = append(got, item(it))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
	for _, bad := range []string{"", "[]", `{"type":`, `{"a":1}{"b":2}`, "\x00\x00", `{"type":"assistant","message":{"content":[}}`, `"x"`} {
		if l, err := transcript.Parse([]byte(bad)); err == nil {
			t.Errorf("%q is taken for %+v", bad, l)
		}
	}
}

// read reads what is new and returns the texts.
func read(t *testing.T, r *transcript.Reader, f *transcript.File, final bool) (texts []string, rep transcript.Report) {
	t.Helper()
	rep, err := r.Read(f, final, func(l transcript.Line, again bool) {
		for _, it := range l.Items {
			mark := ""
			if again {
				mark = "again "
			}
			texts = append(texts, mark+string(it.Text))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts, rep
}

func said(uuid, second, text string) string {
	return `{"type":"assistant","uuid":"` + uuid + `","timestamp":"2026-01-01T00:00:` + second + `Z","message":{"content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
}

// TestFile reads a file as it grows, through damage (hard case BR-39), a torn
// end, and a position that was kept as JSON.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	f := transcript.File{Path: path}
	var r transcript.Reader
	step := func(name, add string, final bool, want []string, damaged int) {
		t.Helper()
		h, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = h.WriteString(add)
		if err := errors.Join(err, h.Close()); err != nil {
			t.Fatal(err)
		}
		got, rep := read(t, &r, &f, final)
		if !slices.Equal(got, want) || len(rep.Damaged) != damaged || rep.Rewritten {
			t.Errorf("%s: %q and %v, want %q and %d damaged", name, got, rep.Damaged, want, damaged)
		}
		raw, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		f = transcript.File{}
		if err := json.Unmarshal(raw, &f); err != nil {
			t.Fatal(err)
		}
	}
	if got, rep := read(t, &r, &f, false); got != nil || rep.Lines != 0 {
		t.Errorf("a missing file: %q", got)
	}
	step("two lines", said("a", "01", "one")+said("b", "01", "two"), false, []string{`"one"`, `"two"`}, 0)
	step("half a line", said("c", "02", "three")[:40], false, nil, 0)
	step("the other half", said("c", "02", "three")[40:], false, []string{`"three"`}, 0)
	before := f.Offset
	step("NULs and half a record", strings.Repeat("\x00", 300)+`{"type":"assi`+"\n"+said("d", "03", "four")+"\n\n", false, []string{`"four"`}, 1)
	if f.Offset <= before+313 {
		t.Errorf("at byte %d", f.Offset)
	}
	step("a line of two megabytes", said("e", "04", strings.Repeat("x", 2<<20)), false, []string{`"` + strings.Repeat("x", 2<<20) + `"`}, 0)
	step("a whole line without an end", strings.TrimSuffix(said("f", "05", "five"), "\n"), false, nil, 0)
	step("which nobody will write", "", true, []string{`"five"`}, 0)
	step("goes on", "\n"+said("g", "06", "six")+`{"torn`, true, []string{`"six"`}, 1)
	step("nothing", "", true, nil, 0)
}

// TestRewritten: the file is replaced, cut and rewritten; what was read before is
// said to be.
func TestRewritten(t *testing.T) {
	one, two, three := said("a", "01", "one"), said("b", "02", "two"), said("c", "02", "three")
	for _, row := range []struct {
		name, then string
		want       []string
	}{
		{"the same with more", one + two + three, []string{`again "one"`, `again "two"`, `"three"`}},
		{"in place of it something shorter", one, []string{`again "one"`}},
		{"something else", three, []string{`"three"`}},
		{"nothing", "", nil},
		{"longer, and different in front of the position", said("x", "00", "zero") + one + two + said("d", "03", "four"), []string{`again "zero"`, `again "one"`, `again "two"`, `"four"`}},
	} {
		path := filepath.Join(t.TempDir(), "t.jsonl")
		f := transcript.File{Path: path}
		var r transcript.Reader
		for _, text := range []string{one + two, row.then} {
			if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
			got, rep := read(t, &r, &f, false)
			if rep.Rewritten && !slices.Equal(got, row.want) {
				t.Errorf("%s: %q, want %q", row.name, got, row.want)
			}
		}
	}
	dir := t.TempDir()
	var r transcript.Reader
	if _, err := r.Read(&transcript.File{Path: dir}, false, func(transcript.Line, bool) {}); !errors.Is(err, transcript.ErrNotFile) {
		t.Errorf("a directory: %v", err)
	}
}

// TestRecorded: no line of a recorded transcript is damaged, and no thought comes
// out of one.
func TestRecorded(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/claude-code/*/*/*transcript.jsonl")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d transcripts, %v", len(paths), err)
	}
	for _, path := range paths {
		f := transcript.File{Path: path}
		var r transcript.Reader
		texts, rep := read(t, &r, &f, false)
		if len(rep.Damaged) > 0 || rep.Lines == 0 || len(texts) == 0 {
			t.Errorf("%s: %d lines, %d items, damaged %v", path, rep.Lines, len(texts), rep.Damaged)
		}
		if info, err := os.Stat(path); err != nil || info.Size() != f.Offset {
			t.Errorf("%s: read to byte %d: %v", path, f.Offset, err)
		}
	}
}

// FuzzParse: no line brings the reader down; what comes out of one is on one
// line, valid, and no thought.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("../../testdata/claude-code/*/*/*transcript.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for l := range bytes.Lines(raw) {
			f.Add(bytes.TrimSuffix(l, []byte("\n")))
		}
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.ReplaceAll(line, []byte("\n"), nil)
		l, err := transcript.Parse(line)
		if err != nil {
			return
		}
		for _, it := range l.Items {
			for _, v := range [][]byte{it.Text, it.Name, it.Input, it.Content, it.Output} {
				if len(v) > 0 && (bytes.ContainsAny(v, "\n\r") || !json.Valid(v)) {
					t.Errorf("%s: %q", it.Kind, v)
				}
			}
			_ = transcript.Beginning(it.Content, 40)
		}
	})
}

// BenchmarkTurn is what a turn costs: a few lines are added to a transcript of
// the given size and read.
func BenchmarkTurn(b *testing.B) {
	for _, size := range []int64{1 << 20, 20 << 20, 200 << 20} {
		b.Run(fmt.Sprintf("after_%dMB", size>>20), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "t.jsonl")
			h, err := os.Create(path)
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close()
			filler := said("f", "01", strings.Repeat("y", 20000))
			for n := int64(0); n < size; n += int64(len(filler)) {
				if _, err := h.WriteString(filler); err != nil {
					b.Fatal(err)
				}
			}
			f := transcript.File{Path: path}
			var r transcript.Reader
			for {
				rep, err := r.Read(&f, false, func(transcript.Line, bool) {})
				if err != nil {
					b.Fatal(err)
				}
				if !rep.More {
					break
				}
			}
			turn := strings.Repeat(said("n", "02", strings.Repeat("z", 3000)), 6)
			b.ReportAllocs()
			b.SetBytes(int64(len(turn)))
			for b.Loop() {
				if _, err := h.WriteString(turn); err != nil {
					b.Fatal(err)
				}
				if rep, err := r.Read(&f, false, func(transcript.Line, bool) {}); err != nil || rep.Lines != 6 {
					b.Fatal(rep, err)
				}
			}
		})
	}
}
