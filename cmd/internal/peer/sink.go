package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// sink is the http consumer of both sides, in a process of its own: it notes
// which records came when, and whether they are the ones that were handed over.
type sink struct {
	stream stream

	mu       sync.Mutex
	came     []arrival
	seen     map[int]bool
	requests int
	// more is closed, and replaced, whenever something comes.
	more chan struct{}
}

// report is what a sink saw.
type report struct {
	Came     []arrival `json:"came"`
	Requests int       `json:"requests"`
}

// serveSink runs a sink for the records in a file until its stdin ends, so that
// it never outlives who started it. The first line on stdout is its URL.
func serveSink(records string, stdin io.Reader, stdout io.Writer) error {
	s, err := loadStream(records)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newSink(s), ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(stdout, "http://%s\n", listener.Addr())
	_, err = io.Copy(io.Discard, stdin)
	err = errors.Join(err, server.Close())
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

func newSink(s stream) *sink {
	return &sink{stream: s, seen: map[int]bool{}, more: make(chan struct{})}
}

// ServeHTTP takes records at any path by POST, tells at GET /count?more=N how many
// different records came, once that is at least N, and at GET /report what came.
func (k *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost:
		k.take(w, r)
	case r.URL.Path == "/count":
		want := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("more"), &want)
		fmt.Fprintln(w, k.count(r.Context(), want))
	default:
		k.mu.Lock()
		rep := report{k.came, k.requests}
		k.mu.Unlock()
		_ = json.NewEncoder(w).Encode(rep)
	}
}

func (k *sink) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	found := k.stream.find(body, time.Now())
	for i := range found {
		found[i].ID = r.Header.Get("Webhook-Id")
	}
	k.mu.Lock()
	k.requests++
	k.came = append(k.came, found...)
	for _, a := range found {
		k.seen[a.Seq] = true
	}
	close(k.more)
	k.more = make(chan struct{})
	k.mu.Unlock()
	// An empty ExportLogsServiceResponse; ways looks at the status alone.
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(http.StatusOK)
}

// count waits until want different records came, or ctx is over.
func (k *sink) count(ctx context.Context, want int) int {
	for {
		k.mu.Lock()
		have, more := len(k.seen), k.more
		k.mu.Unlock()
		if have >= want {
			return have
		}
		select {
		case <-ctx.Done():
			return have
		case <-more:
		}
	}
}

// remoteSink is a sink's process, seen from outside.
type remoteSink struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
}

// startSink starts this program as a sink.
func startSink(records string) (*remoteSink, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "--sink", records)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the http consumer did not start: %w", err), in.Close(), cmd.Wait())
	}
	return &remoteSink{url: strings.TrimSpace(url), cmd: cmd, stdin: in}, nil
}

func (r *remoteSink) wait(ctx context.Context, n int) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/count?more=%d", r.url, n), nil)
	if err != nil {
		return 0, err
	}
	have := 0
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_, err = fmt.Fscan(resp.Body, &have)
		resp.Body.Close()
	}
	return have, err
}

func (r *remoteSink) result() (report, int, error) {
	resp, err := http.Get(r.url + "/report")
	if err != nil {
		return report{}, 0, err
	}
	defer resp.Body.Close()
	var rep report
	return rep, 0, json.NewDecoder(resp.Body).Decode(&rep)
}

func (r *remoteSink) close() error { return errors.Join(r.stdin.Close(), r.cmd.Wait()) }
