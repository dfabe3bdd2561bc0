package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// consumer takes records over http and answers 204. It lives in this process, so
// that what it costs is not the dispatcher's.
type consumer struct {
	url    string
	server *http.Server
	taken  atomic.Int64
	// times has when a tool call came, by its id, while somebody asks.
	mu    sync.Mutex
	times map[string]time.Time
}

func newConsumer() (*consumer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &consumer{url: "http://" + listener.Addr().String() + "/"}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

func (c *consumer) close() { _ = c.server.Shutdown(context.Background()) }

func (c *consumer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it will come again
	}
	now := time.Now()
	c.taken.Add(1)
	c.mu.Lock()
	if c.times != nil {
		note(c.times, body, now)
	}
	c.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

// watch begins to note when each call comes; the function returned ends that.
func (c *consumer) watch() func() map[string]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = map[string]time.Time{}
	return func() map[string]time.Time {
		c.mu.Lock()
		defer c.mu.Unlock()
		seen := c.times
		c.times = nil
		return seen
	}
}

// note notes when the call in a record was first seen.
func note(seen map[string]time.Time, record []byte, now time.Time) {
	_, rest, ok := bytes.Cut(record, []byte(`"id":"`))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return
	}
	id := string(rest[:end])
	if _, again := seen[id]; !again {
		seen[id] = now
	}
}
