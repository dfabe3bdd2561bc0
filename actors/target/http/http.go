// Package http is the target that posts each record as JSON (design §5), in the
// form of the Standard Webhooks specification (version 1.0.0): webhook-id is the
// delivery's id and the same over all tries, webhook-timestamp is the time of the
// try, and webhook-signature is there when the rule names a secret.
//
// The consumer decides with its status alone. The body behind a 2xx is read a
// little and forgotten, so that the connection can be used again; it is part of
// the answer, so it must come in time. A redirect is never followed: it would carry
// the record, and the headers with their tokens, to a place nobody named.
package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http/httpproxy"

	"ways/actors/target"
	"ways/actors/target/expand"
	"ways/config/plan"
)

const (
	// bodyLimit is how much of a response body is read, in bytes; a connection
	// with more to come is closed.
	bodyLimit = 64 << 10
	// headerLimit bounds a response's headers, in bytes.
	headerLimit = 64 << 10
	// writeBuffer is how much of a request is gathered before it is written, in bytes.
	writeBuffer = 64 << 10
	// idleTime is how long a connection is kept for the next record.
	idleTime = 90 * time.Second
)

// Options are what a dispatcher knows and a rule does not.
type Options struct {
	// Getenv reads the dispatcher's environment: for ${NAME}, for the signing
	// secret, and for HTTP_PROXY, HTTPS_PROXY and NO_PROXY (either case).
	Getenv func(string) string
	// Version is sent as "User-Agent: ways/<Version>".
	Version string
	// RootCAs are the authorities that are trusted; nil means the system's.
	RootCAs *x509.CertPool
}

// Target posts to one URL. It is used by one goroutine at a time.
type Target struct {
	cfg       plan.HTTP
	opts      Options
	transport *nethttp.Transport
	client    *nethttp.Client
}

var _ target.Target = (*Target)(nil)

// New returns the target of an http rule. It connects to nothing and its error
// is always nil; what is wrong with a URL or a header comes out of Deliver.
func New(cfg plan.HTTP, opts Options) (target.Target, error) {
	either := func(name string) string {
		if v := opts.Getenv(strings.ToLower(name)); v != "" {
			return v
		}
		return opts.Getenv(name)
	}
	proxy := (&httpproxy.Config{
		HTTPProxy:  either("HTTP_PROXY"),
		HTTPSProxy: either("HTTPS_PROXY"),
		NoProxy:    either("NO_PROXY"),
	}).ProxyFunc()
	transport := &nethttp.Transport{
		Proxy:           func(r *nethttp.Request) (*url.URL, error) { return proxy(r.URL) },
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.RootCAs},
		// Naming a TLS configuration would otherwise turn HTTP/2 off.
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        idleTime,
		MaxResponseHeaderBytes: headerLimit,
		// Most requests are one write then, and large ones few.
		WriteBufferSize: writeBuffer,
		// A compressed body is bytes like others: nothing is unpacked.
		DisableCompression: true,
	}
	return &Target{
		cfg: cfg, opts: opts, transport: transport,
		client: &nethttp.Client{
			Transport:     transport,
			CheckRedirect: func(*nethttp.Request, []*nethttp.Request) error { return nethttp.ErrUseLastResponse },
		},
	}, nil
}

// Describe returns the URL as the rule gives it, without userinfo and query.
func (t *Target) Describe() string {
	plain, _, _ := strings.Cut(t.cfg.URL, "#")
	plain, _, _ = strings.Cut(plain, "?")
	scheme, rest, ok := strings.Cut(plain, "://")
	if !ok {
		return plain
	}
	host, path, _ := strings.Cut(rest, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	if strings.Contains(rest, "/") {
		path = "/" + path
	}
	return scheme + "://" + host + path
}

// Close gives the kept connections back.
func (t *Target) Close() error {
	t.transport.CloseIdleConnections()
	return nil
}

// Deliver posts the record and returns nil for a 2xx. All of it (lookup, connect,
// TLS, request, headers, body) is under ctx.
//
// Reasons: status_<code> (failed, with RetryAfter, for 407, 408, 425, 429 and 5xx;
// unauthorized for 401 and 403; else refused), redirect, bad_url, bad_header,
// bad_secret, missing_variable (refused); dns, connect, proxy, tls,
// closed, bad_response, cancelled (failed); and connect, tls, headers or body,
// whichever the time ran out in (timed out).
func (t *Target) Deliver(ctx context.Context, d target.Dispatch) error {
	var at progress
	req, err := t.request(at.trace(ctx), d)
	if err != nil {
		return err
	}
	resp, err := t.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			// A dial goes on without its request, for the next one's sake; this
			// ends it.
			t.transport.CloseIdleConnections()
		}
		return t.failure(ctx, at.load(), err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing is left to lose

	if resp.StatusCode/100 != 2 {
		return t.status(resp)
	}
	_, err = io.CopyN(io.Discard, resp.Body, bodyLimit)
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() != nil {
		return t.failure(ctx, body, err)
	}
	// What else goes wrong in the body takes nothing back from the status.
	return nil
}

// request builds the request; its error is a refusal.
func (t *Target) request(ctx context.Context, d target.Dispatch) (*nethttp.Request, error) {
	filled, err := expand.Vars(t.cfg.URL, t.opts.Getenv)
	if err != nil {
		return nil, t.refusedFor("bad_url", "the URL", err)
	}
	where, err := url.Parse(filled)
	if err != nil || where.Host == "" || where.Scheme != "http" && where.Scheme != "https" {
		// The parser's error repeats the URL, which may hold a token.
		return nil, t.refused("bad_url", errors.New("the URL, with its variables filled in, is no http or https URL"))
	}
	record := d.Body.Bytes()
	req, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodPost, where.String(), bytes.NewReader(record))
	if err != nil {
		return nil, t.refused("bad_url", errors.New("no request can be made to the URL"))
	}

	for _, h := range t.cfg.Headers {
		value, err := expand.Vars(h.Value, t.opts.Getenv)
		if err != nil {
			return nil, t.refusedFor("bad_header", "the header "+h.Name, err)
		}
		if !httpguts.ValidHeaderFieldName(h.Name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, t.refused("bad_header", fmt.Errorf("the header %q cannot be sent: its name or its filled value holds a character that no header may", h.Name))
		}
		if strings.EqualFold(h.Name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Add(h.Name, value)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json",
		"User-Agent":   strings.TrimSuffix("ways/"+t.opts.Version, "/"),
	} {
		if req.Header.Get(name) == "" {
			req.Header.Set(name, value)
		}
	}
	if _, given := req.Header["Idempotency-Key"]; !given {
		// Present and empty: not sent, but tells net/http that the request may be
		// sent again when a kept connection turns out to be closed.
		req.Header["Idempotency-Key"] = nil
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Webhook-Id", d.ID)
	req.Header.Set("Webhook-Timestamp", now)
	req.Header.Del("Webhook-Signature")
	if !httpguts.ValidHeaderFieldValue(d.ID) {
		return nil, t.refused("bad_header", errors.New("the delivery's id holds a character that no header may"))
	}
	if t.cfg.SecretEnv != "" {
		signature, err := sign(t.opts.Getenv(t.cfg.SecretEnv), d.ID, now, record)
		if err != nil {
			reason := "bad_secret"
			if errors.Is(err, expand.ErrMissing) {
				reason = "missing_variable"
			}
			return nil, t.refused(reason, fmt.Errorf("the signing secret in %s: %w", t.cfg.SecretEnv, err))
		}
		req.Header.Set("Webhook-Signature", signature)
	}
	return req, nil
}

// phase is how far a request has come.
type phase int32

const (
	connect phase = iota // looking up, connecting, also to a proxy
	handshake
	headers // the request is being sent, or an answer is awaited
	answer  // its headers have begun
	body
)

func (p phase) String() string { return [...]string{"connect", "tls", "headers", "headers", "body"}[p] }

// progress is written from net/http's goroutines, which may outlive the request.
type progress struct{ phase atomic.Int32 }

func (p *progress) load() phase { return phase(p.phase.Load()) }

func (p *progress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// Called again when a kept connection was closed and another is sought.
		GetConn:           func(string) { p.phase.Store(int32(connect)) },
		TLSHandshakeStart: func() { p.phase.CompareAndSwap(int32(connect), int32(handshake)) },
		GotConn:           func(httptrace.GotConnInfo) { p.phase.Store(int32(headers)) },

		GotFirstResponseByte: func() { p.phase.CompareAndSwap(int32(headers), int32(answer)) },
	})
}
