package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ways/cmd/internal/cli"
	"ways/hooks/dirs"
	"ways/metrics/counters"
)

func desk(t *testing.T) (env cli.Env, out, errs *bytes.Buffer, d dirs.Dirs) {
	t.Helper()
	home := t.TempDir()
	getenv := func(name string) string { return map[string]string{"HOME": home}[name] }
	d, err := dirs.From(getenv)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(d.State, 0o700); err != nil {
		t.Fatal(err)
	}
	l := counters.NewStore(d.State).Open("s1", "s1", time.Unix(1, 0))
	l.Rule("a/b").Delivered = 7
	if err := l.Save(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return cli.Env{Getenv: getenv, Stdout: out, Stderr: errs, Version: "v1"}, out, errs, d
}

const sample = "\nways_records_delivered_total{rule=\"b\",sensor=\"a\"} 7\n"

func TestPrint(t *testing.T) {
	env, out, errs, _ := desk(t)
	if code := Run(env, nil); code != cli.OK || errs.Len() > 0 || !strings.Contains(out.String(), sample) {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	if code := Run(env, []string{"word"}); code != cli.Usage {
		t.Errorf("exit %d", code)
	}
}

// The file is whole or as it was, readable by the collector, with nothing beside
// it.
func TestOutput(t *testing.T) {
	env, out, errs, d := desk(t)
	path := filepath.Join(t.TempDir(), "ways.prom")
	for range 2 {
		// What a killed run left goes.
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".ways-17.tmp"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if code := Run(env, []string{"--output", path}); code != cli.OK || errs.Len()+out.Len() > 0 {
			t.Fatalf("exit %d, %s %s", code, errs, out)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), sample) {
		t.Errorf("%s, %v", text, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	beside, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(beside) != 1 {
		t.Errorf("%v, %v", beside, err)
	}
	// A sum that cannot be had is no smaller sum: the old file stays.
	if err := os.WriteFile(filepath.Join(d.State, "totals.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := Run(env, []string{"--output", path}); code != cli.Failed || !strings.Contains(errs.String(), "totals.json is damaged") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, text) {
		t.Errorf("the file changed: %s, %v", again, err)
	}
	errs.Reset()
	if code := Run(env, []string{"--output", filepath.Join(t.TempDir(), "none", "x.prom")}); code != cli.Failed || errs.Len() == 0 {
		t.Errorf("exit %d, %s", code, errs)
	}
}

func TestAddresses(t *testing.T) {
	for _, row := range []struct {
		listen  string
		remote  bool
		refused bool
	}{
		{"127.0.0.1:9464", false, false},
		{"127.9.9.9:0", false, false},
		{"[::1]:9464", false, false},
		{"localhost:9464", false, false},
		{"0.0.0.0:9464", false, true},
		{"[::]:9464", false, true},
		{":9464", false, true},
		{"192.0.2.1:9464", false, true},
		{"[::ffff:192.0.2.1]:9464", false, true},
		{"[::ffff:127.0.0.1]:9464", false, false},
		{"0.0.0.0:9464", true, false},
		{":9464", true, false},
		{"9464", false, true},
		{"9464", true, true},
	} {
		_, err := resolve(t.Context(), row.listen, row.remote)
		if (err != nil) != row.refused {
			t.Errorf("%s, remote %v: %v", row.listen, row.remote, err)
		}
		if row.refused && strings.Contains(row.listen, ":") && !errors.Is(err, errRemote) {
			t.Errorf("%s: %v", row.listen, err)
		}
	}
}

// It answers until it is told to stop, and then the scrape under way too.
func TestServe(t *testing.T) {
	env, _, errs, d := desk(t)
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, env, socket) }()
	get := func(method, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("http://%s%s", socket.Addr(), path), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	for _, row := range []struct {
		method, path string
		code         int
		has          string
	}{
		{http.MethodGet, "/metrics", 200, sample},
		{http.MethodGet, "/", 200, "/metrics"},
		{http.MethodGet, "/metrics/x", 404, ""},
		{http.MethodGet, "/debug/pprof/", 404, ""},
		{http.MethodPost, "/metrics", 405, ""},
	} {
		if code, body := get(row.method, row.path); code != row.code || !strings.Contains(body, row.has) {
			t.Errorf("%s %s: %d %s", row.method, row.path, code, body)
		}
	}
	// Every scrape reads anew.
	l := counters.NewStore(d.State).Open("s2", "s2", time.Unix(2, 0))
	l.Rule("a/b").Delivered = 1
	if err := l.Save(time.Unix(2, 0)); err != nil {
		t.Fatal(err)
	}
	if _, body := get(http.MethodGet, "/metrics"); !strings.Contains(body, `ways_records_delivered_total{rule="b",sensor="a"} 8`) {
		t.Error("the scrape is an old one")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if errs.Len() > 0 {
		t.Errorf("said: %s", errs)
	}
	if _, err := net.Dial("tcp", socket.Addr().String()); err == nil {
		t.Error("it listens on")
	}
}
