package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// request is what a server was sent.
type request struct {
	method, uri string
	header      http.Header
	body        string
}

// server keeps its requests, and answers the n-th, from 0, with what answer says.
func server(t *testing.T, answer func(n int, w http.ResponseWriter)) (url string, requests func() []request) {
	t.Helper()
	seen := make(chan []request, 1)
	seen <- nil
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		list := <-seen
		answer(len(list), w)
		seen <- append(list, request{r.Method, r.RequestURI, r.Header, string(body)})
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() []request { list := <-seen; seen <- list; return slices.Clone(list) }
}

func accept(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }

// TestHTTPThroughTheProduct: what an endpoint is sent, and what never leaves.
func TestHTTPThroughTheProduct(t *testing.T) {
	const key, token = "a signing key of 32 bytes exactly", "tok-0123456789"
	secret := base64.StdEncoding.EncodeToString([]byte(key))
	signed, signedRequests := server(t, func(n int, w http.ResponseWriter) {
		if n == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	elsewhere, elsewhereRequests := server(t, accept)
	redirects, redirectRequests := server(t, func(_ int, w http.ResponseWriter) {
		w.Header().Set("Location", elsewhere+"/next")
		w.WriteHeader(http.StatusPermanentRedirect)
	})
	proxy, proxyRequests := server(t, accept)
	never, neverRequests := server(t, accept)
	s := newSite(t, shortIdle, "SIGNING="+"whsec_"+secret, "TOKEN="+token, "HTTP_PROXY="+proxy, "ANTHROPIC_API_KEY=sk-ant-not-a-key")
	auth := ", headers: {Authorization: 'Bearer ${TOKEN}', X-Team: core}}"
	s.sensors(t, "web",
		ruleText{"signed", "[tool_call]", "http: {url: '" + signed + "/in?x=1', secret_env: SIGNING" + auth, []string{"delivery: at_least_once"}},
		ruleText{"redirect", "[tool_call]", "http: {url: '" + redirects + "/'" + auth, nil},
		ruleText{"proxied", "[tool_call]", "http: {url: 'http://consumer.example/in'" + auth, nil},
		ruleText{"missing", "[tool_call]", "http: {url: '" + never + "/', headers: {Authorization: 'Bearer ${NOT_SET_ANYWHERE}'}}", nil},
	)
	s.fire(t, call("s", "t1", 10), "CLAUDE_SESSION_SECRET=not-for-others")
	s.waitLines(t, 1)
	eventually(t, exitLimit, func() bool { return len(signedRequests()) == 2 },
		func() string { return fmt.Sprintf("%d tries; %s", len(signedRequests()), s.story()) })
	s.end(t, "s")

	line := strings.TrimSpace(string(logLines(t, s.log)[0]))
	tries := signedRequests()
	for i, r := range tries {
		if r.method != http.MethodPost || r.uri != "/in?x=1" || r.header.Get("Content-Type") != "application/json" ||
			r.header.Get("Authorization") != "Bearer "+token || r.header.Get("X-Team") != "core" {
			t.Errorf("try %d: %s %s %v", i, r.method, r.uri, r.header)
		}
		if strings.ReplaceAll(r.body, `"rule":"web/signed"`, `"rule":"all/log"`) != line {
			t.Errorf("try %d posted\n%s,\nand the file has\n%s", i, r.body, line)
		}
		// Standard Webhooks 1.0.0: HMAC-SHA256 over "<id>.<timestamp>.<body>".
		mac := hmac.New(sha256.New, []byte(key))
		fmt.Fprintf(mac, "%s.%s.%s", r.header.Get("webhook-id"), r.header.Get("webhook-timestamp"), r.body)
		if got, want := r.header.Get("webhook-signature"), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)); got != want {
			t.Errorf("try %d is signed %q, want %q", i, got, want)
		}
	}
	if a, b := tries[0].header.Get("webhook-id"), tries[1].header.Get("webhook-id"); a != b || a != "s:web/signed:1" {
		t.Errorf("two tries of one record have the ids %q and %q", a, b)
	}
	if n := len(redirectRequests()); n != 1 {
		t.Errorf("%d requests to what redirects, want 1", n)
	}
	if list := elsewhereRequests(); len(list) > 0 {
		t.Errorf("a redirect was followed: %v", list)
	}
	if list := proxyRequests(); len(list) != 1 || list[0].uri != "http://consumer.example/in" || list[0].header.Get("Authorization") != "Bearer "+token {
		t.Errorf("the proxy was sent %v", list)
	}
	if list := neverRequests(); len(list) > 0 {
		t.Errorf("a request without its variable was sent: %v", list)
	}
	s.wantStatus(t, map[string]counted{
		"web/signed":   {Matched: 1, Delivered: 1, Retried: 1, Reasons: map[string]uint64{"status_503": 1}},
		"web/redirect": {Matched: 1, Refused: 1, Reasons: map[string]uint64{"redirect": 1}},
		"web/proxied":  {Matched: 1, Delivered: 1},
		"web/missing":  {Matched: 1, Refused: 1, Reasons: map[string]uint64{"missing_variable": 1}},
	})
	status := string(s.run(t, "status"))
	if !strings.Contains(status, "NOT_SET_ANYWHERE") {
		t.Errorf("status does not name the variable that is missing:\n%s", status)
	}
	// Nothing that was written down holds a token or a key.
	err := filepath.Walk(s.dirs.State, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), token) || strings.Contains(string(text), secret) {
			t.Errorf("%s holds a secret of the environment", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestConsumersSeeAClearedEnvironment: a program gets what it was named and a few
// plain variables, in either mode, and nothing of the session's.
func TestConsumersSeeAClearedEnvironment(t *testing.T) {
	s := bareSite(t, shortIdle, "TOKEN=tok-0123456789", "ANTHROPIC_API_KEY=sk-ant-not-a-key", "OPENAI_API_KEY=sk-not-a-key",
		"CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=cli", "LD_LIBRARY_PATH=/nonexistent", "XDG_RUNTIME_DIR=/run/user/0", "SECRET=x")
	var rules []ruleText
	for _, mode := range []string{"async", "blocking"} {
		script := fmt.Sprintf("env >%q; pwd >%q; ls /proc/self/fd >%q 2>/dev/null; cat >/dev/null",
			filepath.Join(s.home, mode+".env"), filepath.Join(s.home, mode+".pwd"), filepath.Join(s.home, mode+".fd"))
		dispatch := strings.TrimSuffix(shell(script), "}") + ", env: {CONSUMER_TOKEN: 'x-${TOKEN}'}}"
		rules = append(rules, ruleText{mode, "[tool_call]", dispatch, []string{"mode: " + mode}})
	}
	s.sensors(t, "env", rules...)
	s.fire(t, call("s", "t1", 10))
	s.end(t, "s")
	for _, mode := range []string{"async", "blocking"} {
		raw, err := os.ReadFile(filepath.Join(s.home, mode+".env"))
		if err != nil {
			t.Fatalf("%v; %s", err, s.story())
		}
		var names []string
		for line := range strings.Lines(string(raw)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch name {
			case "PWD", "OLDPWD", "SHLVL", "_": // the shell's own
				continue
			case "CONSUMER_TOKEN":
				if value != "x-tok-0123456789" {
					t.Errorf("%s: %s", mode, line)
				}
			}
			names = append(names, name)
		}
		slices.Sort(names)
		want := []string{
			"CONSUMER_TOKEN", "HOME", "LANG", "PATH", "WAYS_CONSUMER", "WAYS_DELIVERY_ID", "WAYS_OWNER", "WAYS_RULE",
			"WAYS_SEQ", "WAYS_SESSION", "XDG_RUNTIME_DIR",
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: a consumer sees %v, want %v", mode, names, want)
		}
		if dir, err := os.ReadFile(filepath.Join(s.home, mode+".pwd")); err != nil || string(dir) != "/\n" {
			t.Errorf("%s: it runs in %q, %v", mode, dir, err)
		}
		// 0 to 2, and the directory that ls reads.
		if fds, err := os.ReadFile(filepath.Join(s.home, mode+".fd")); diesWithParent() && (err != nil || string(fds) != "0\n1\n2\n3\n") {
			t.Errorf("%s: it has the descriptors %q, %v", mode, fds, err)
		}
	}
	s.wantStatus(t, map[string]counted{"env/async": {Matched: 1, Delivered: 1}, "env/blocking": {Matched: 1, Delivered: 1}})
}
