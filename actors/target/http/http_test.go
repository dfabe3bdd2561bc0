package http

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"ways/actors/target"
	"ways/config/plan"
	"ways/hooks/redact"
)

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func dispatch(n int, data string) target.Dispatch {
	record := fmt.Sprintf(`{"v":1,"section":"user_prompt","seq":%d,"data":%s}`, n, data)
	return target.Dispatch{
		ID:   fmt.Sprintf("the-session/s/r/%d", n),
		Rule: "s/r", Session: "the-session", Seq: uint64(n), Attempt: 1,
		Body: redact.Plain([]byte(record), redact.Envelope{Rule: "s/r", RuleSeq: uint64(n)}),
	}
}

// vars is an environment.
type vars map[string]string

func (v vars) get(name string) string { return v[name] }

func newTarget(t *testing.T, cfg plan.HTTP, env vars, roots *x509.CertPool) *Target {
	t.Helper()
	made, err := New(cfg, Options{Getenv: env.get, Version: "1.2.3", RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made.(*Target)
}

// within returns a context with a rule's timeout.
func within(t *testing.T, timeout time.Duration) context.Context {
	ctx, cancel := context.WithTimeoutCause(t.Context(), timeout, target.ErrExpired)
	t.Cleanup(cancel)
	return ctx
}

// wantOutcome checks an error against "kind reason", or "" for a delivery. No
// error may hold what these tests put into URLs, headers and answers.
func wantOutcome(t *testing.T, err error, want string) *target.Error {
	t.Helper()
	got := ""
	var e *target.Error
	if errors.As(err, &e) {
		got = string(e.Kind) + " " + e.Reason
	} else if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("outcome = %q (%v), want %q", got, err, want)
	}
	if err != nil && strings.Contains(err.Error(), "t0ken") {
		t.Errorf("the error holds a secret: %v", err)
	}
	return e
}

// request is what a server was sent.
type request struct {
	nethttp.Request
	body []byte
	conn string
}

// server answers with handler, or with 200, and hands over what it was sent.
func server(t *testing.T, handler nethttp.HandlerFunc) (*httptest.Server, chan request) {
	t.Helper()
	sent := make(chan request, 100)
	s := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the request: %v", err)
		}
		sent <- request{*r, body, r.RemoteAddr}
		if handler != nil {
			handler(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s, sent
}

func TestTheRequest(t *testing.T) {
	s, sent := server(t, nil)
	to := newTarget(t, plan.HTTP{
		URL: s.URL + "/in/${WHERE}?a=${WHERE}",
		Headers: []plan.Pair{
			{Name: "authorization", Value: "Bearer ${TOKEN}"},
			{Name: "X-Two", Value: "1"},
			{Name: "X-Two", Value: "2"},
			{Name: "Webhook-Id", Value: "forged"},
			{Name: "webhook-signature", Value: "forged"},
			{Name: "Host", Value: "inside.example"},
		},
	}, vars{"WHERE": "here", "TOKEN": "t0ken"}, nil)
	d := dispatch(7, `{"prompt":"ž<&>","id":9007199254740993}`)
	before := time.Now().Unix()
	wantOutcome(t, to.Deliver(t.Context(), d), "")
	got := <-sent

	if got.Method != "POST" || got.URL.String() != "/in/here?a=here" || got.Host != "inside.example" {
		t.Errorf("%s %s to %s", got.Method, got.URL, got.Host)
	}
	if string(got.body) != string(d.Body.Bytes()) {
		t.Errorf("body = %s, want %s", got.body, d.Body.Bytes())
	}
	at, err := strconv.ParseInt(got.Header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil || at < before || at > time.Now().Unix() {
		t.Errorf("webhook-timestamp = %q", got.Header.Get("Webhook-Timestamp"))
	}
	got.Header.Del("Webhook-Timestamp")
	want := nethttp.Header{
		"Authorization": {"Bearer t0ken"}, "Content-Length": {strconv.Itoa(len(got.body))},
		"Content-Type": {"application/json"}, "User-Agent": {"ways/1.2.3"},
		"Webhook-Id": {d.ID}, "X-Two": {"1", "2"},
	}
	if !maps.EqualFunc(got.Header, want, slices.Equal) {
		t.Errorf("headers = %v, want %v", got.Header, want)
	}
}

func TestTheRuleMayNameItsContentType(t *testing.T) {
	s, sent := server(t, nil)
	to := newTarget(t, plan.HTTP{URL: s.URL, Headers: []plan.Pair{
		{Name: "content-type", Value: "application/cloudevents+json"}, {Name: "user-agent", Value: "mine"},
	}}, nil, nil)
	wantOutcome(t, to.Deliver(t.Context(), dispatch(1, "{}")), "")
	got := <-sent
	if got.Header.Get("Content-Type") != "application/cloudevents+json" || got.Header.Get("User-Agent") != "mine" {
		t.Errorf("headers = %v", got.Header)
	}
}

// The signature is checked by the specification's own library.
func TestTheSignature(t *testing.T) {
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 64)))
	for name, secrets := range map[string][]string{"one": {secret}, "two, while one replaces the other": {secret, other}} {
		t.Run(name, func(t *testing.T) {
			s, sent := server(t, nil)
			to := newTarget(t, plan.HTTP{URL: s.URL, SecretEnv: "KEY"}, vars{"KEY": strings.Join(secrets, " ")}, nil)
			wantOutcome(t, to.Deliver(t.Context(), dispatch(1, `{"prompt":"a.b"}`)), "")
			got := <-sent
			for _, s := range secrets {
				checker, err := standardwebhooks.NewWebhook(s)
				if err != nil {
					t.Fatal(err)
				}
				if err := checker.Verify(got.body, got.Header); err != nil {
					t.Errorf("%v: %s", err, got.Header.Get("Webhook-Signature"))
				}
				if checker.Verify(append(got.body, ' '), got.Header) == nil {
					t.Error("another body has the same signature")
				}
			}
			stranger, err := standardwebhooks.NewWebhook("whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("z", 32))))
			if err != nil {
				t.Fatal(err)
			}
			if stranger.Verify(got.body, got.Header) == nil {
				t.Error("another secret verifies it")
			}
		})
	}
}

// The example of the specification's own documents, so that the test above does
// not rest on one library alone.
func TestTheSpecificationsExample(t *testing.T) {
	got, err := sign("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("sign = %q, %v; want %q", got, err, want)
	}
}

func TestAnotherTryHasTheSameID(t *testing.T) {
	answers := []int{503, 200}
	s, sent := server(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
		w.WriteHeader(answers[0])
		answers = answers[1:]
	})
	to := newTarget(t, plan.HTTP{URL: s.URL}, nil, nil)
	d := dispatch(1, "{}")
	wantOutcome(t, to.Deliver(t.Context(), d), "failed status_503")
	d.Attempt = 2
	wantOutcome(t, to.Deliver(t.Context(), d), "")
	if a, b := <-sent, <-sent; a.Header.Get("Webhook-Id") != d.ID || b.Header.Get("Webhook-Id") != d.ID {
		t.Errorf("webhook-id = %q, then %q", a.Header.Get("Webhook-Id"), b.Header.Get("Webhook-Id"))
	}
}

func TestWhatCannotBeSent(t *testing.T) {
	env := vars{"SHORT": "whsec_" + base64.StdEncoding.EncodeToString([]byte("t0ken")), "BARE": "t0ken", "LINES": "t0ken\r\nX-Evil: 1", "URL": "://t0ken"}
	for _, row := range []struct {
		name string
		cfg  plan.HTTP
		want string
	}{
		{"missing variable in the URL", plan.HTTP{URL: "http://x/${NONE}"}, "refused missing_variable"},
		{"malformed variable", plan.HTTP{URL: "http://x/${"}, "refused bad_url"},
		{"no scheme", plan.HTTP{URL: "x/y"}, "refused bad_url"},
		{"another scheme", plan.HTTP{URL: "ftp://x/?t0ken"}, "refused bad_url"},
		{"no host", plan.HTTP{URL: "http:///x"}, "refused bad_url"},
		{"broken by a variable", plan.HTTP{URL: "${URL}"}, "refused bad_url"},
		{"lines in the URL", plan.HTTP{URL: "http://x/${LINES}"}, "refused bad_url"},
		{"missing variable in a header", plan.HTTP{URL: "http://x", Headers: []plan.Pair{{Name: "A", Value: "${NONE}"}}}, "refused missing_variable"},
		{"lines in a header", plan.HTTP{URL: "http://x", Headers: []plan.Pair{{Name: "A", Value: "${LINES}"}}}, "refused bad_header"},
		{"header without a name", plan.HTTP{URL: "http://x", Headers: []plan.Pair{{Name: "", Value: "x"}}}, "refused bad_header"},
		{"header name with a space", plan.HTTP{URL: "http://x", Headers: []plan.Pair{{Name: "A B", Value: "x"}}}, "refused bad_header"},
		{"no secret", plan.HTTP{URL: "http://x", SecretEnv: "NONE"}, "refused missing_variable"},
		{"secret too short", plan.HTTP{URL: "http://x", SecretEnv: "SHORT"}, "refused bad_secret"},
		{"secret without whsec_", plan.HTTP{URL: "http://x", SecretEnv: "BARE"}, "refused bad_secret"},
	} {
		err := newTarget(t, row.cfg, env, nil).Deliver(t.Context(), dispatch(1, "{}"))
		if wantOutcome(t, err, row.want); t.Failed() {
			t.Fatalf("in %q", row.name)
		}
		if row.want == "refused missing_variable" && !strings.Contains(err.Error(), "NONE") {
			t.Errorf("%s: the variable is not named: %v", row.name, err)
		}
	}
	d := dispatch(1, "{}")
	d.ID = "a\nb"
	wantOutcome(t, newTarget(t, plan.HTTP{URL: "http://x"}, nil, nil).Deliver(t.Context(), d), "refused bad_header")
}

func TestStatuses(t *testing.T) {
	for code, want := range map[int]string{
		200: "", 201: "", 202: "", 204: "", 299: "",
		300: "refused redirect", 304: "refused redirect",
		400: "refused status_400", 404: "refused status_404", 409: "refused status_409",
		410: "refused status_410", 413: "refused status_413", 422: "refused status_422", 499: "refused status_499",
		401: "unauthorized status_401", 403: "unauthorized status_403",
		407: "failed status_407", 408: "failed status_408", 425: "failed status_425", 429: "failed status_429",
		500: "failed status_500", 501: "failed status_501", 503: "failed status_503", 599: "failed status_599", 999: "failed status_999",
	} {
		s, _ := server(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.WriteHeader(code) })
		wantOutcome(t, newTarget(t, plan.HTTP{URL: s.URL}, nil, nil).Deliver(t.Context(), dispatch(1, "{}")), want)
	}
}

// An answer given before the record was read to its end counts.
func TestAnswerBeforeTheEndOfTheRequest(t *testing.T) {
	s := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { w.WriteHeader(413) }))
	defer s.Close()
	to := newTarget(t, plan.HTTP{URL: s.URL}, nil, nil)
	wantOutcome(t, to.Deliver(within(t, 10*time.Second), dispatch(1, `{"prompt":"`+strings.Repeat("x", 5<<20)+`"}`)), "refused status_413")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(nethttp.TimeFormat) }
	for _, row := range []struct {
		value, date string
		want        time.Duration
	}{
		{"", "", 0},
		{"3", "", 3 * time.Second},
		{"0", "", 0},
		{"86400", "", time.Hour},
		{"99999999999999999999", "", time.Hour},
		{"-1", "", 0},
		{"1.5", "", 0},
		{"soon", "", 0},
		{"3 s", "", 0},
		{in(90 * time.Second), "", 90 * time.Second},
		{in(48 * time.Hour), "", time.Hour},
		{in(-time.Minute), "", 0},
		{in(90 * time.Second), in(60 * time.Second), 30 * time.Second}, // the server's clock is ahead
		{in(90 * time.Second), "yesterday", 90 * time.Second},
		{now.Add(2 * time.Minute).Format(time.ANSIC), "", 2 * time.Minute},
	} {
		h := nethttp.Header{"Retry-After": {row.value}, "Date": {row.date}}
		if got := retryAfter(h, now); got != row.want {
			t.Errorf("Retry-After %q, Date %q: %v, want %v", row.value, row.date, got, row.want)
		}
	}
	for code, want := range map[int]time.Duration{429: 7 * time.Second, 503: 7 * time.Second, 400: 0, 401: 0, 302: 0} {
		s, _ := server(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
		})
		var e *target.Error
		if err := newTarget(t, plan.HTTP{URL: s.URL}, nil, nil).Deliver(t.Context(), dispatch(1, "{}")); !errors.As(err, &e) || e.RetryAfter != want {
			t.Errorf("%d: %v with %v, want %v", code, err, e.RetryAfter, want)
		}
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	elsewhere, reached := server(t, nil)
	for _, code := range []int{301, 302, 303, 307, 308} {
		var s *httptest.Server
		s, sent := server(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
			where := elsewhere.URL
			if r.URL.Path == "/loop" {
				where = s.URL + "/loop"
			}
			w.Header().Set("Location", where)
			w.WriteHeader(code)
		})
		for _, path := range []string{"/", "/loop"} {
			to := newTarget(t, plan.HTTP{URL: s.URL + path, Headers: []plan.Pair{{Name: "X-Auth", Value: "t0ken"}}}, nil, nil)
			wantOutcome(t, to.Deliver(t.Context(), dispatch(1, "{}")), "refused redirect")
			if n := len(sent); n != 1 {
				t.Errorf("%d: %d requests", code, n)
			}
			<-sent
		}
	}
	if n := len(reached); n != 0 {
		t.Errorf("%d requests reached the other host", n)
	}
}

func TestConnectionsAreKept(t *testing.T) {
	s, sent := server(t, func(w nethttp.ResponseWriter, _ *nethttp.Request) { _, _ = w.Write([]byte("thank you")) })
	to := newTarget(t, plan.HTTP{URL: s.URL}, nil, nil)
	conns := map[string]bool{}
	for n := range 5 {
		wantOutcome(t, to.Deliver(t.Context(), dispatch(n, "{}")), "")
		conns[(<-sent).conn] = true
	}
	if len(conns) != 1 {
		t.Errorf("%d connections for 5 records", len(conns))
	}
	// The server closes it between two records; nobody notices.
	s.CloseClientConnections()
	wantOutcome(t, to.Deliver(t.Context(), dispatch(6, "{}")), "")
}

func TestTLS(t *testing.T) {
	start := func(change func(s *httptest.Server)) (*httptest.Server, *x509.CertPool) {
		s := httptest.NewUnstartedServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
			w.Header().Set("Proto", r.Proto)
			if r.Proto != "HTTP/2.0" && r.URL.Path == "/2" {
				w.WriteHeader(505)
			}
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.TLS = &tls.Config{} //nolint:gosec // old versions are what one row is about
		change(s)
		s.StartTLS()
		t.Cleanup(s.Close)
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		return s, roots
	}
	h1, roots := start(func(*httptest.Server) {})
	h2, roots2 := start(func(s *httptest.Server) { s.EnableHTTP2 = true })
	old, oldRoots := start(func(s *httptest.Server) { s.TLS.MaxVersion = tls.VersionTLS11; s.TLS.MinVersion = tls.VersionTLS10 })
	plain, _ := server(t, nil)
	for _, row := range []struct {
		name, url string
		roots     *x509.CertPool
		want      string
	}{
		{"trusted", h1.URL, roots, ""},
		{"HTTP/2", h2.URL + "/2", roots2, ""},
		{"unknown authority", h1.URL, nil, "failed tls"},
		{"another name", strings.Replace(h1.URL, "127.0.0.1", "localhost", 1), roots, "failed tls"},
		{"TLS 1.1", old.URL, oldRoots, "failed tls"},
		{"no TLS", strings.Replace(plain.URL, "http", "https", 1), nil, "failed tls"},
		{"TLS where none was named", strings.Replace(h1.URL, "https", "http", 1), nil, "refused status_400"},
	} {
		t.Run(row.name, func(t *testing.T) {
			to := newTarget(t, plan.HTTP{URL: row.url + "?t0ken"}, nil, row.roots)
			wantOutcome(t, to.Deliver(within(t, 10*time.Second), dispatch(1, "{}")), row.want)
		})
	}
}

func TestProxies(t *testing.T) {
	behind := httptest.NewTLSServer(nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) {}))
	defer behind.Close()
	roots := x509.NewCertPool()
	roots.AddCert(behind.Certificate()) // it is example.com's

	proxy, sent := server(t, func(w nethttp.ResponseWriter, r *nethttp.Request) {
		switch {
		case r.Header.Get("Proxy-Authorization") != "Basic dTp0MGtlbg==":
			nethttp.Error(w, "t0ken", nethttp.StatusProxyAuthRequired)
		case r.Method == "CONNECT":
			tunnel(t, w, behind.Listener.Addr().String())
		}
	})
	withAuth := strings.Replace(proxy.URL, "http://", "http://u:t0ken@", 1)
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refusing.Close()
	for _, row := range []struct {
		name, url string
		env       vars
		want      string
		seen      string
	}{
		{"http", "http://example.com/x", vars{"HTTP_PROXY": withAuth}, "", "POST http://example.com/x"},
		{"lower case first", "http://example.com/x", vars{"http_proxy": withAuth, "HTTP_PROXY": "http://192.0.2.1"}, "", "POST http://example.com/x"},
		{"https", "https://example.com/x", vars{"HTTPS_PROXY": withAuth}, "", "CONNECT //example.com:443"},
		{"not for http", "http://example.com/x", vars{"HTTP_PROXY": withAuth, "NO_PROXY": "other.example"}, "", "POST http://example.com/x"},
		{"excepted", proxy.URL + "/direct", vars{"HTTP_PROXY": "http://192.0.2.1", "NO_PROXY": "127.0.0.1"}, "failed status_407", "POST /direct"},
		{"unauthorized http", "http://example.com/", vars{"HTTP_PROXY": proxy.URL}, "failed status_407", "POST http://example.com/"},
		{"unauthorized https", "https://example.com/", vars{"HTTPS_PROXY": proxy.URL}, "failed connect", "CONNECT //example.com:443"},
		{"unreachable", "https://example.com/", vars{"HTTPS_PROXY": "http://u:t0ken@" + refusing.Addr().String()}, "failed proxy", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			to := newTarget(t, plan.HTTP{URL: row.url}, row.env, roots)
			wantOutcome(t, to.Deliver(within(t, 10*time.Second), dispatch(1, "{}")), row.want)
			seen := ""
			if len(sent) > 0 {
				r := <-sent
				seen = r.Method + " " + r.URL.String()
			}
			if seen != row.seen {
				t.Errorf("the proxy saw %q, want %q", seen, row.seen)
			}
		})
	}
}

// tunnel answers a CONNECT.
func tunnel(t *testing.T, w nethttp.ResponseWriter, to string) {
	out, err := net.Dial("tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	in, _, err := w.(nethttp.Hijacker).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	go func() {
		_, _ = io.Copy(in, out)
		_ = in.Close()
	}()
}

func TestDescribe(t *testing.T) {
	for in, want := range map[string]string{
		"https://h.example/a/b":                  "https://h.example/a/b",
		"https://user:t0ken@h.example/a?k=t0ken": "https://h.example/a",
		"https://h.example?k=t0ken":              "https://h.example",
		"https://h.example/a#t0ken":              "https://h.example/a",
		"https://a:t0@ken@h.example:8/@b":        "https://h.example:8/@b",
		"${URL}":                                 "${URL}",
		"https://${HOST}/100%":                   "https://${HOST}/100%",
	} {
		if got := newTarget(t, plan.HTTP{URL: in}, nil, nil).Describe(); got != want {
			t.Errorf("Describe(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestALookupThatFails(t *testing.T) {
	to := newTarget(t, plan.HTTP{URL: "http://h.example/100%25?t0ken"}, nil, nil)
	err := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "h.example", IsNotFound: true}}
	e := wantOutcome(t, to.failure(t.Context(), connect, err), "failed dns")
	if want := "http: http://h.example/100%25: looking up the host: no such host"; e.Err.Error() != want {
		t.Errorf("%q, want %q", e.Err, want)
	}
}

func TestStopping(t *testing.T) {
	asked := make(chan struct{})
	s := newRaw(t, func(c net.Conn) { close(asked); _, _ = io.Copy(io.Discard, c) })
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(errors.New("stopping"))
	}()
	wantOutcome(t, newTarget(t, plan.HTTP{URL: s.url}, nil, nil).Deliver(ctx, dispatch(1, "{}")), "failed cancelled")
	s.wait()
}

func BenchmarkDeliver(b *testing.B) {
	s := httptest.NewServer(nethttp.HandlerFunc(func(_ nethttp.ResponseWriter, r *nethttp.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer s.Close()
	made, err := New(plan.HTTP{URL: s.URL, SecretEnv: "KEY"}, Options{Getenv: vars{"KEY": secret}.get})
	if err != nil {
		b.Fatal(err)
	}
	defer made.Close() //nolint:errcheck // the benchmark is over
	d := dispatch(1, `{"prompt":"`+strings.Repeat("x", 1000)+`"}`)
	for b.Loop() {
		if err := made.Deliver(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
}
