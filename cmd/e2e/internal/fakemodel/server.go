// Package fakemodel is a scripted stand-in for the model's API on loopback, so
// that the real client can be driven in a test, without a network or an account.
//
// A script is JSON in the prompt itself: `SCRIPT: [{"text":"..."}, ...]`. The
// model's nth reply to that prompt is the script's nth step. The script travels
// in the conversation, so the server keeps nothing between requests, and
// a subagent whose prompt holds a script of its own follows that.
//
// The server is also the proxy that a client under test is given: a request for
// any other host is refused here and kept, so that a test can show that none
// was made.
package fakemodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// maxBody bounds a request body, in bytes.
const maxBody = 64 << 20

// summaryRequest is how the client's own request for a compaction summary
// reads. It has the whole conversation in it, so the script must not answer.
const summaryRequest = "create a detailed summary of"

// Exchange is one request the server saw.
type Exchange struct {
	Method, Path string
	// Status is what it was answered with.
	Status int
	// Prompt is the start of the last text block of the last message.
	Prompt string
	// Err says why a request was refused or a reply was cut short; nil otherwise.
	Err error
}

// Server is the model. Its methods may be called by several goroutines.
type Server struct {
	listener net.Listener
	http     *http.Server
	seen     chan Exchange
	ask      chan chan []Exchange
	done     chan struct{}
}

// Start listens on a free port of 127.0.0.1 and serves until Close.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the scripted model cannot listen on loopback: %w", err)
	}
	s := &Server{
		listener: listener,
		seen:     make(chan Exchange),
		ask:      make(chan chan []Exchange),
		done:     make(chan struct{}),
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go s.remember()
	go func() {
		// Serve always returns an error: ErrServerClosed after Close, and
		// anything else shows as a client that cannot connect.
		_ = s.http.Serve(listener)
	}()
	return s, nil
}

// URL is the base URL to give a client.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close ends the server and every reply under way.
func (s *Server) Close() error {
	err := s.http.Close()
	close(s.done)
	return err
}

// Exchanges returns what was asked so far, in the order it was answered.
func (s *Server) Exchanges() []Exchange {
	reply := make(chan []Exchange, 1)
	select {
	case s.ask <- reply:
		return <-reply
	case <-s.done:
		return nil
	}
}

// Outside returns the requests that were meant for another host.
func (s *Server) Outside() []Exchange {
	var list []Exchange
	for _, e := range s.Exchanges() {
		if errors.Is(e.Err, ErrOutside) {
			list = append(list, e)
		}
	}
	return list
}

// ErrOutside marks a request for another host than this server.
var ErrOutside = errors.New("a request for another host")

// remember owns the list of exchanges.
func (s *Server) remember() {
	var all []Exchange
	for {
		select {
		case e := <-s.seen:
			all = append(all, e)
		case reply := <-s.ask:
			reply <- append([]Exchange(nil), all...)
		case <-s.done:
			return
		}
	}
}

// ServeHTTP answers one request and remembers it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e := answer(w, r)
	e.Method, e.Path = r.Method, r.URL.String()
	if r.Method == http.MethodConnect {
		e.Path = r.Host
	}
	select {
	case s.seen <- e:
	case <-s.done:
	}
}

func answer(w http.ResponseWriter, r *http.Request) Exchange {
	if r.Method == http.MethodConnect || r.URL.IsAbs() {
		return refuse(w, http.StatusForbidden, ErrOutside)
	}
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		return messages(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages/count_tokens":
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": 10})
		return Exchange{Status: http.StatusOK}
	case r.Method == http.MethodHead || (r.Method == http.MethodGet && r.URL.Path == "/"):
		w.WriteHeader(http.StatusOK)
		return Exchange{Status: http.StatusOK}
	}
	return refuse(w, http.StatusNotFound, fmt.Errorf("the scripted model has no %s %s", r.Method, r.URL.Path))
}

func messages(w http.ResponseWriter, r *http.Request) Exchange {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return refuse(w, http.StatusRequestEntityTooLarge, fmt.Errorf("request body: %w", err))
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		return refuse(w, http.StatusBadRequest, fmt.Errorf("request body: %w", err))
	}
	seen := Exchange{Status: http.StatusOK, Prompt: req.lastText()}

	step, err := req.step()
	switch {
	case strings.Contains(req.lastText(), summaryRequest):
		step = Step{Text: "<summary>a summary</summary>"}
	case errors.Is(err, errNoScript):
		step = Step{Text: pastEnd}
	case err != nil:
		return refuse(w, http.StatusBadRequest, err)
	}
	if step.Error != 0 {
		return refuse(w, step.Error, errors.New("the script asked for this error"))
	}

	list := step.blocks(len(req.Tools) > 0)
	if req.Stream {
		flusher, ok := w.(flushWriter)
		if !ok {
			return refuse(w, http.StatusInternalServerError, errors.New("this connection cannot stream"))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		seen.Err = stream(r.Context(), flusher, req.Model, list, step.delay())
		return seen
	}
	if seen.Err = wait(r.Context(), step.delay()); seen.Err == nil {
		writeJSON(w, http.StatusOK, whole(req.Model, list))
	}
	return seen
}

func (r request) lastText() string {
	if len(r.Messages) == 0 {
		return ""
	}
	texts := r.Messages[len(r.Messages)-1].Content
	if len(texts) == 0 {
		return ""
	}
	return texts[len(texts)-1]
}

// refuse answers as the API does: an error object in JSON.
func refuse(w http.ResponseWriter, status int, err error) Exchange {
	kind := "api_error"
	if status >= 400 && status < 500 {
		kind = "invalid_request_error"
	}
	writeJSON(w, status, map[string]any{
		"type":  "error",
		"error": map[string]any{"type": kind, "message": err.Error()},
	})
	return Exchange{Status: status, Err: err}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client may be gone; there is nobody left to tell.
	_ = json.NewEncoder(w).Encode(v)
}
