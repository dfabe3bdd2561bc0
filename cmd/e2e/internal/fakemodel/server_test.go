package fakemodel

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// event is one server-sent event as a client reads it.
type event struct {
	name string
	data map[string]any
}

func readEvents(t *testing.T, r io.Reader) []event {
	t.Helper()
	var list []event
	var name string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if after, ok := strings.CutPrefix(line, "event: "); ok {
			name = after
		}
		if after, ok := strings.CutPrefix(line, "data: "); ok {
			var data map[string]any
			if err := json.Unmarshal([]byte(after), &data); err != nil {
				t.Fatalf("event %s: %v", name, err)
			}
			if data["type"] != name {
				t.Errorf("event %q has the type %q", name, data["type"])
			}
			list = append(list, event{name, data})
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// rebuild puts a streamed reply together again, as a client does.
func rebuild(t *testing.T, list []event) (content []map[string]any, stop any) {
	t.Helper()
	for _, e := range list {
		switch e.name {
		case "content_block_start":
			b := e.data["content_block"].(map[string]any)
			if b["type"] == "tool_use" {
				b["input"] = ""
			}
			content = append(content, b)
		case "content_block_delta":
			d, b := e.data["delta"].(map[string]any), content[int(e.data["index"].(float64))]
			for field, into := range map[string]string{
				"text": "text", "thinking": "thinking", "signature": "signature", "partial_json": "input",
			} {
				if piece, ok := d[field].(string); ok {
					b[into] = b[into].(string) + piece
				}
			}
		case "message_delta":
			stop = e.data["delta"].(map[string]any)["stop_reason"]
		}
	}
	return content, stop
}

func startServer(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

// post sends a prompt; the model is offered a tool when tools is set.
func post(t *testing.T, ctx context.Context, s *Server, prompt string, stream, tools bool) *http.Response {
	t.Helper()
	body := map[string]any{
		"model": "m", "stream": stream,
		"messages": []any{map[string]any{"role": "user", "content": prompt}},
	}
	if tools {
		body["tools"] = []any{map[string]any{"name": "Bash"}}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/messages?beta=true", bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

const busy = `SCRIPT: [{"thinking":"hm","text":"let me look",` +
	`"tool":"Bash","input":{"command":"echo ü <&> 12345678901234567890","n":9007199254740993},"tools":[{"tool":"Read"}]}]`

func TestStreamedReply(t *testing.T) {
	resp := post(t, t.Context(), startServer(t), busy, true, true)
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	list := readEvents(t, resp.Body)
	var kinds []string
	for _, e := range list {
		kind := e.name
		if d, ok := e.data["delta"].(map[string]any); ok && d["type"] != nil {
			kind += " " + d["type"].(string)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
	}
	want := []string{
		"message_start", "ping",
		"content_block_start", "content_block_delta thinking_delta", "content_block_delta signature_delta", "content_block_stop",
		"content_block_start", "content_block_delta text_delta", "content_block_stop",
		"content_block_start", "content_block_delta input_json_delta", "content_block_stop",
		"content_block_start", "content_block_delta input_json_delta", "content_block_stop",
		"message_delta", "message_stop",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("events\n%q, want\n%q", kinds, want)
	}
	content, stop := rebuild(t, list)
	if stop != "tool_use" || len(content) != 4 {
		t.Fatalf("stop reason %v, %d blocks", stop, len(content))
	}
	if content[0]["thinking"] != "hm" || content[0]["signature"] == "" || content[1]["text"] != "let me look" {
		t.Errorf("thinking and text: %v", content[:2])
	}
	if got := content[2]["input"]; got != `{"command":"echo ü <&> 12345678901234567890","n":9007199254740993}` {
		t.Errorf("the first call's input is %s", got)
	}
	if content[3]["name"] != "Read" || content[3]["input"] != "{}" {
		t.Errorf("the second call is %v", content[3])
	}
	if content[2]["id"] == content[3]["id"] {
		t.Errorf("two calls share the id %v", content[2]["id"])
	}
}

func TestWholeReply(t *testing.T) {
	resp := post(t, t.Context(), startServer(t), busy, false, true)
	var got struct {
		Role       string           `json:"role"`
		StopReason string           `json:"stop_reason"`
		Content    []map[string]any `json:"content"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Role != "assistant" || got.StopReason != "tool_use" || len(got.Content) != 4 {
		t.Fatalf("reply %+v", got)
	}
	if got.Content[1]["text"] != "let me look" || got.Content[2]["name"] != "Bash" {
		t.Errorf("content %v", got.Content)
	}
}

func TestAnswers(t *testing.T) {
	s := startServer(t)
	for _, row := range []struct {
		name, prompt string
		stream       bool
		status       int
		want         string
	}{
		{"no script", "hello", false, 200, `"text":"done"`},
		{"no tools offered", busy, false, 200, `"stop_reason":"end_turn"`},
		{"a summary of a scripted session", busy + " now create a detailed summary of it", false, 200, `a summary`},
		{"a scripted error", `SCRIPT: [{"error":529}]`, true, 529, `"type":"error"`},
		{"a broken script", `SCRIPT: [{`, true, 400, `does not parse`},
	} {
		t.Run(row.name, func(t *testing.T) {
			resp := post(t, t.Context(), s, row.prompt, row.stream, false)
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != row.status || !strings.Contains(string(body), row.want) {
				t.Errorf("%d %s, want %d and %s", resp.StatusCode, body, row.status, row.want)
			}
		})
	}
	for _, row := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, "/v1/messages/count_tokens", `{}`, 200},
		{http.MethodPost, "/v1/messages", `{`, 400},
		{http.MethodPost, "/v1/messages", `{"messages":[{"role":"user","content":7}]}`, 400},
		{http.MethodGet, "/v1/messages", ``, 404},
		{http.MethodPost, "/v1/other", ``, 404},
		{http.MethodHead, "/", ``, 200},
	} {
		req, err := http.NewRequestWithContext(t.Context(), row.method, s.URL()+row.path, strings.NewReader(row.body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != row.status {
			t.Errorf("%s %s %s: %d, want %d", row.method, row.path, row.body, resp.StatusCode, row.status)
		}
	}
}

// The events of a reply leave one by one: the delay lies between its words, and
// its whole length is what the script says.
func TestDelayLiesBetweenWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &timedWriter{start: time.Now()}
		step := Step{Text: "one two three four", DelayS: 8}
		if err := stream(t.Context(), w, "m", step.blocks(true), step.delay()); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second}
		if !slices.Equal(w.deltas, want) {
			t.Errorf("words left at %v, want %v", w.deltas, want)
		}
	})
}

// timedWriter notes when each delta was flushed.
type timedWriter struct {
	bytes.Buffer
	start  time.Time
	deltas []time.Duration
}

func (w *timedWriter) Flush() {
	if strings.Contains(w.String(), "content_block_delta") {
		w.deltas = append(w.deltas, time.Since(w.start))
	}
	w.Reset()
}

// A client that hangs up in the middle of a reply ends it, as an interrupt does.
func TestHangUpEndsTheReply(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp := post(t, ctx, s, `SCRIPT: [{"text":"a b c d","delay_s":3600}]`, true, true)
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(s.Exchanges()) == 0 {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the reply went on")
		}
	}
	if got := s.Exchanges(); !errors.Is(got[0].Err, context.Canceled) || got[0].Path != "/v1/messages?beta=true" {
		t.Errorf("exchange %+v, want a cancelled one", got[0])
	}
}

func TestOtherHostsAreRefused(t *testing.T) {
	s := startServer(t)
	proxy, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{Proxy: http.ProxyURL(proxy)}
	defer transport.CloseIdleConnections()
	outside := &http.Client{Transport: transport}

	resp, err := outside.Get("http://outside.invalid/v1/messages")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("plain: %d", resp.StatusCode)
	}
	if resp, err := outside.Get("https://outside.invalid/"); err == nil {
		resp.Body.Close()
		t.Errorf("TLS: got through with %d", resp.StatusCode)
	}
	post(t, t.Context(), s, "hello", false, false)

	var got []string
	for _, e := range s.Outside() {
		got = append(got, e.Method+" "+e.Path)
	}
	if want := []string{"GET http://outside.invalid/v1/messages", "CONNECT outside.invalid:443"}; !slices.Equal(got, want) {
		t.Errorf("outside %q, want %q", got, want)
	}
}
