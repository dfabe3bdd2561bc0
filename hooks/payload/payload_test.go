package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// take reads and parses what a hook is given on stdin.
func take(r io.Reader) (Event, error) {
	raw, err := Read(r)
	if err != nil {
		return Event{}, err
	}
	return Parse(raw)
}

const whole = `{"session_id":"s","hook_event_name":"Stop","x":1}`

// TestHostileInput has a row for each thing that has arrived on a hook's stdin,
// or could.
func TestHostileInput(t *testing.T) {
	deep := func(n int) string {
		return `{"session_id":"s","hook_event_name":"Stop","d":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for _, row := range []struct {
		name, in string
		want     error // nil: accepted
	}{
		{"nothing", "", ErrEmpty},
		{"blanks only", " \t\r\n ", ErrEmpty},
		{"null", "null", ErrNotObject},
		{"true", "true", ErrNotObject},
		{"number", "12", ErrNotObject},
		{"negative number", "-1", ErrNotObject},
		{"string", `"{}"`, ErrNotObject},
		{"array", "[]", ErrNotObject},
		{"array of an object", "[" + whole + "]", ErrNotObject},
		{"text", "hello", ErrNotObject},
		{"closing brace first", "}" + whole, ErrNotObject},
		{"NUL first", "\x00" + whole, ErrNotObject},
		{"byte order mark", "\ufeff" + whole, ErrNotObject},
		{"random bytes", "\x8f\x1b\xe2\x28\xa1", ErrNotObject},
		{"empty object", "{}", ErrNoSession},
		{"no session", `{"hook_event_name":"Stop"}`, ErrNoSession},
		{"empty session", `{"session_id":"","hook_event_name":"Stop"}`, ErrNoSession},
		{"session is a number", `{"session_id":7,"hook_event_name":"Stop"}`, ErrNoSession},
		{"session is null", `{"session_id":null,"hook_event_name":"Stop"}`, ErrNoSession},
		{"session is an object", `{"session_id":{"a":"b"},"hook_event_name":"Stop"}`, ErrNoSession},
		{"no event", `{"session_id":"s"}`, ErrNoEvent},
		{"event is a list", `{"session_id":"s","hook_event_name":["Stop"]}`, ErrNoEvent},
		{"one brace", "{", ErrTruncated},
		{"inside a key", `{"session_id`, ErrTruncated},
		{"inside an escape", `{"session_id":"\`, ErrTruncated},
		{"brackets that do not match", `{"session_id":"s","hook_event_name":"Stop"]`, ErrSyntax},
		{"raw newline in a string", "{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"p\":\"a\nb\"}", ErrSyntax},
		{"raw NUL in a string", "{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"p\":\"a\x00b\"}", ErrSyntax},
		{"bad escape", `{"session_id":"s","hook_event_name":"Stop","p":"\x"}`, ErrSyntax},
		{"bad number", `{"session_id":"s","hook_event_name":"Stop","p":01}`, ErrSyntax},
		{"single quotes", `{'session_id':'s'}`, ErrSyntax},
		{"trailing comma", `{"session_id":"s","hook_event_name":"Stop",}`, ErrSyntax},
		{"nested too deep", deep(20_000), ErrSyntax},

		{"whole", whole, nil},
		{"blanks around", "\r\n\t " + whole + " \n", nil},
		{"raw newlines between tokens", "{\n\"session_id\"\r\n:\"s\"\n,\n\"hook_event_name\":\n\"Stop\"\n}", nil},
		{"text behind", whole + "garbage", nil},
		{"a second object behind", whole + whole, nil},
		{"braces in strings", `{"session_id":"s","hook_event_name":"Stop","p":"}]\"}{\\"}`, nil},
		{"lone surrogate", `{"session_id":"s","hook_event_name":"Stop","p":"a\ud99c b"}`, nil},
		{"no UTF-8", "{\"session_id\":\"s\",\"hook_event_name\":\"Stop\",\"p\":\"a\xff\xfeb\"}", nil},
		{"nested deep", deep(5_000), nil},
		{"numbers that no float holds", `{"session_id":"s","hook_event_name":"Stop","p":[1e400,-0,9007199254740993]}`, nil},
		{"NUL as an escape", `{"session_id":"s","hook_event_name":"Stop","p":"\u0000"}`, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"at once":          strings.NewReader(row.in),
				"byte by byte":     iotest.OneByteReader(strings.NewReader(row.in)),
				"with the last":    iotest.DataErrReader(strings.NewReader(row.in)),
				"half at a time":   iotest.HalfReader(strings.NewReader(row.in)),
				"empty reads amid": &stutter{r: strings.NewReader(row.in)},
			} {
				ev, err := take(r)
				if !errors.Is(err, row.want) {
					t.Fatalf("%s: %v, want %v", how, err, row.want)
				}
				if err == nil && (ev.Session != "s" || ev.Name != "Stop") {
					t.Errorf("%s: session %q, event %q", how, ev.Session, ev.Name)
				}
				if err == nil && bytes.ContainsAny(ev.Raw, "\r\n") {
					t.Errorf("%s: a newline is left in %q", how, ev.Raw)
				}
			}
		})
	}
}

// stutter returns no bytes at every other read, as a reader may.
type stutter struct {
	r io.Reader
	n int
}

func (s *stutter) Read(p []byte) (int, error) {
	if s.n++; s.n%2 == 1 {
		return 0, nil
	}
	return s.r.Read(p[:min(len(p), 3)])
}

// TestErrorsQuoteNothing keeps the session's text out of the log.
func TestErrorsQuoteNothing(t *testing.T) {
	for _, in := range []string{
		`{"session_id":"s","p":"topsecret" "x"}`, `{"session_id":"s","p":topsecret}`, `{"topsecret":1,topsecret}`,
		`topsecret`, `{"topsecret`, "{\"a\":\"topsecret\n\"}",
	} {
		_, err := take(strings.NewReader(in))
		if err == nil || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/claude-code/*/*/[0-9]*.json")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d recorded payloads, %v", len(paths), err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		if all[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestRecordedPayloads takes everything a real client sent.
func TestRecordedPayloads(t *testing.T) {
	for path, raw := range fixtures(t) {
		ev, err := take(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if base := strings.TrimSuffix(filepath.Base(path), ".json"); !strings.HasSuffix(base, "-"+ev.Name) {
			t.Errorf("%s: event %q", path, ev.Name)
		}
		for key, got := range rawFields(ev) {
			if !bytes.Equal(got, want[key]) {
				t.Errorf("%s: %s is %q, want %q", path, key, got, want[key])
			}
		}
		for key, got := range map[string]string{
			"session_id": ev.Session, "cwd": ev.Cwd, "agent_id": ev.AgentID, "agent_type": ev.AgentType,
			"prompt_id": ev.PromptID, "tool_use_id": ev.ToolUseID, "transcript_path": ev.Transcript,
		} {
			var s string
			if want[key] != nil {
				if err := json.Unmarshal(want[key], &s); err != nil {
					t.Fatal(err)
				}
			}
			if got != s {
				t.Errorf("%s: %s is %q, want %q", path, key, got, s)
			}
		}
	}
}

func rawFields(ev Event) map[string][]byte {
	return map[string][]byte{
		"prompt": ev.Prompt, "last_assistant_message": ev.LastMessage, "tool_name": ev.ToolName,
		"tool_input": ev.ToolInput, "tool_use_id": ev.ToolUse, "tool_response": ev.ToolResponse, "error": ev.Error,
		"is_interrupt": ev.IsInterrupt, "duration_ms": ev.DurationMS, "mcp_server": ev.MCPServer, "source": ev.Source, "model": ev.Model,
		"reason": ev.Reason, "trigger": ev.Trigger, "custom_instructions": ev.CustomInstructions,
	}
}

// TestTruncatedAnywhere cuts a real payload behind every byte.
func TestTruncatedAnywhere(t *testing.T) {
	raw := bytes.TrimSpace(fixtures(t)["../../testdata/claude-code/2.1.197/tools/03-PreToolUse.json"])
	if len(raw) < 300 {
		t.Fatalf("a payload of %d bytes", len(raw))
	}
	for size := range raw {
		want := ErrTruncated
		if size == 0 {
			want = ErrEmpty
		}
		if _, err := take(bytes.NewReader(raw[:size])); !errors.Is(err, want) {
			t.Fatalf("cut at %d: %v, want %v", size, err, want)
		}
		// Parse alone must hold as well: its input is outside text.
		if _, err := Parse(raw[:size]); err == nil {
			t.Fatalf("cut at %d: parsed", size)
		}
	}
}

// TestStopsAtTheEnd reads a value from a writer that never closes (hard case
// BR-04), and nothing behind it.
func TestStopsAtTheEnd(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		for _, b := range []byte(whole) {
			w.Write([]byte{b})
		}
	}()
	raw, err := Read(r)
	if err != nil || string(raw) != whole {
		t.Errorf("%q, %v", raw, err)
	}
	r.Close()

	raw, err = Read(strings.NewReader(whole + "\nbehind"))
	if err != nil || string(raw) != whole {
		t.Errorf("%q, %v", raw, err)
	}
}

func TestLargePayloads(t *testing.T) {
	head, tail := `{"session_id":"s","hook_event_name":"Stop","last_assistant_message":"`, `"}`
	body := func(total int) io.Reader {
		return io.MultiReader(strings.NewReader(head),
			io.LimitReader(fill('x'), int64(total-len(head)-len(tail))), strings.NewReader(tail))
	}
	ev, err := take(body(20 << 20))
	if err != nil || len(ev.LastMessage) != 20<<20-len(head)-len(tail)+2 {
		t.Errorf("20 MiB: %d bytes, %v", len(ev.LastMessage), err)
	}
	if raw, err := Read(body(MaxBytes)); err != nil || len(raw) != MaxBytes {
		t.Errorf("the largest: %d bytes, %v", len(raw), err)
	}
	// Replacing what is no UTF-8 makes it three times as long.
	noText := io.MultiReader(strings.NewReader(head), io.LimitReader(fill(0xff), MaxBytes/3), strings.NewReader(tail))
	if _, err := take(noText); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a third of that, none of it UTF-8: %v", err)
	}

	// Refused for one byte.
	if _, err := Read(body(MaxBytes + 1)); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
}

type fill byte

func (f fill) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(f)
	}
	return len(p), nil
}

// TestVerbatim keeps the client's own spelling, whatever it is.
func TestVerbatim(t *testing.T) {
	for _, value := range []string{
		`{"id":9007199254740993,"f":1.0,"g":1e400,"h":-0,"i":0.10}`,
		`{"b":1,"a":2,"b":3}`,
		`"\u003cA\u0026\/\ud83d\ude00\ud99c <&>"`,
		`{ "a" : [ 1 , 2 ] }`,
		`null`, `false`, `""`, `{}`, `[[],{}]`,
	} {
		ev, err := take(strings.NewReader(`{"session_id":"s","hook_event_name":"X","tool_input": ` + value + ` ,"z":0}`))
		if err != nil || string(ev.ToolInput) != value {
			t.Errorf("%s became %s, %v", value, ev.ToolInput, err)
		}
	}
}

func TestLastOfARepeatedKeyHolds(t *testing.T) {
	ev, err := take(strings.NewReader(`{"session_id":"a","hook_event_name":"Stop","prompt":1,"session_id":"b","prompt":"two","cwd":"/x","cwd":5}`))
	if err != nil || ev.Session != "b" || string(ev.Prompt) != `"two"` || ev.Cwd != "" {
		t.Errorf("%+v, %v", ev, err)
	}
	if _, err := take(strings.NewReader(`{"session_id":"a","hook_event_name":"Stop","session_id":null}`)); !errors.Is(err, ErrNoSession) {
		t.Errorf("a session taken back: %v", err)
	}
	// A key may be spelled with escapes.
	ev, err = take(strings.NewReader(`{"session\u005fid":"a","hook_event_name":"Stop"}`))
	if err != nil || ev.Session != "a" {
		t.Errorf("%+v, %v", ev, err)
	}
}

func TestNewlinesAndRepairs(t *testing.T) {
	ev, err := Parse([]byte("{\"session_id\":\"s\",\n\"hook_event_name\":\"Stop\",\"tool_input\":{\r\n  \"a\\n\": \"b\\\"\"\n},\"prompt\":\"\xff\xe2\x82x\"}"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{    "a\n": "b\"" }`; string(ev.ToolInput) != want {
		t.Errorf("%q, want %q", ev.ToolInput, want)
	}
	if want := "\"\ufffd\ufffd\ufffdx\""; string(ev.Prompt) != want || ev.Repaired != 3 {
		t.Errorf("%q with %d repaired, want %q with 3", ev.Prompt, ev.Repaired, want)
	}
}

// TestSessionIDsAreKept: what a session id may be as a path is hooks/dirs' to
// say; here it stays what it is.
func TestSessionIDsAreKept(t *testing.T) {
	for _, id := range []string{"../../etc", "a/b", "..", ".", "x\x00y", " ", "ü", strings.Repeat("i", 4000)} {
		spelt, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := Parse(fmt.Appendf(nil, `{"session_id":%s,"hook_event_name":"Stop"}`, spelt))
		if err != nil || ev.Session != id {
			t.Errorf("%q became %q, %v", id, ev.Session, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, raw := range fixtures(f) {
		if len(raw) < 2000 {
			f.Add(raw)
		}
	}
	for _, s := range []string{"", "null", whole, whole + whole, "{\"session_id\":\"s\",\n\"hook_event_name\":\"\xff\",\"prompt\":\"\\ud800\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		raw, err := Read(bytes.NewReader(in))
		slow, slowErr := Read(iotest.OneByteReader(bytes.NewReader(in)))
		if !bytes.Equal(raw, slow) || fmt.Sprint(err) != fmt.Sprint(slowErr) {
			t.Fatalf("at once %q, %v; byte by byte %q, %v", raw, err, slow, slowErr)
		}
		if err == nil && !bytes.Contains(in, raw) {
			t.Fatalf("%q is not in the input", raw)
		}
		ev, err := Parse(in)
		if err != nil {
			return
		}
		if !utf8.Valid(ev.Raw) || bytes.ContainsAny(ev.Raw, "\r\n") || ev.Session == "" || ev.Name == "" {
			t.Fatalf("accepted %q", ev.Raw)
		}
		for key, value := range rawFields(ev) {
			if value == nil {
				continue
			}
			if !json.Valid(value) || !bytes.Contains(ev.Raw, value) {
				t.Fatalf("%s: %q of %q", key, value, ev.Raw)
			}
		}
	})
}
