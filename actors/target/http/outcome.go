package http

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	nethttp "net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ways/actors/target"
	"ways/actors/target/expand"
	"ways/actors/target/visible"
)

// retryAfterCap is the longest wait a consumer is granted.
const retryAfterCap = time.Hour

// wordsCap bounds what is repeated of somebody else's words, in bytes.
const wordsCap = 200

func (t *Target) refused(reason string, err error) error {
	return &target.Error{Kind: target.Refused, Reason: reason, Err: fmt.Errorf("http: %s: %w", t.Describe(), err)}
}

func (t *Target) refusedFor(reason, what string, err error) error {
	if errors.Is(err, expand.ErrMissing) {
		reason = "missing_variable"
	}
	return t.refused(reason, fmt.Errorf("%s: %w", what, err))
}

// status says what a status other than 2xx means for the record.
func (t *Target) status(resp *nethttp.Response) error {
	code := resp.StatusCode
	e := &target.Error{
		Kind:   target.Refused,
		Reason: "status_" + strconv.Itoa(code),
		Err:    fmt.Errorf("http: %s answered %s", t.Describe(), strings.TrimSpace(strconv.Itoa(code)+" "+nethttp.StatusText(code))),
	}
	switch {
	case code == nethttp.StatusUnauthorized, code == nethttp.StatusForbidden:
		e.Kind = target.Unauthorized
	case code == nethttp.StatusProxyAuthRequired, // a proxy's word, not the consumer's
		code == nethttp.StatusRequestTimeout, code == nethttp.StatusTooEarly,
		code == nethttp.StatusTooManyRequests, code < 200, code >= 500:
		e.Kind = target.Failed
		e.RetryAfter = retryAfter(resp.Header, time.Now())
	case code < 400:
		e.Reason = "redirect"
		e.Err = fmt.Errorf("http: %s answered %d, a redirect; records do not follow redirects: name the final URL", t.Describe(), code)
	}
	return e
}

// retryAfter reads Retry-After (RFC 9110, 10.2.3): seconds, or a date, which is
// taken against the answer's own Date if it has one, so that neither clock needs
// to be right. What is no such value, and what is past, is 0.
func retryAfter(h nethttp.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	seconds, err := strconv.ParseUint(value, 10, 32)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return min(time.Duration(seconds)*time.Second, retryAfterCap)
	}
	until, err := nethttp.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := nethttp.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(until.Sub(now), 0), retryAfterCap)
}

// failure says what an error of net/http means. Its text is not repeated, since
// it holds the URL and whatever a server or proxy said.
func (t *Target) failure(ctx context.Context, at phase, err error) error {
	say := func(kind target.Kind, reason, format string, args ...any) error {
		return &target.Error{Kind: kind, Reason: reason, Err: fmt.Errorf("http: "+t.describeVerb()+": "+format, args...)}
	}
	if ctx.Err() != nil {
		cause := context.Cause(ctx)
		if errors.Is(cause, target.ErrExpired) || errors.Is(cause, context.DeadlineExceeded) {
			return say(target.TimedOut, at.String(), "%w in the phase %q", target.ErrExpired, at)
		}
		return say(target.Failed, target.Cancelled, "stopped in the phase %q", at)
	}

	var (
		lookup *net.DNSError
		op     *net.OpError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
		errno  syscall.Errno
	)
	switch {
	case errors.As(err, &cert):
		return say(target.Failed, "tls", "its certificate: %s", repeat(cert.Err))
	case errors.As(err, &record), errors.Is(err, nethttp.ErrSchemeMismatch):
		return say(target.Failed, "tls", "it does not speak TLS")
	case errors.As(err, &alert):
		return say(target.Failed, "tls", "%s", repeat(alert))
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return say(target.Failed, "proxy", "the proxy cannot be reached")
	case errors.As(err, &lookup):
		return say(target.Failed, "dns", "looking up the host: %s", repeat(errors.New(lookup.Err)))
	}
	reason := map[phase]string{connect: "connect", handshake: "tls", headers: "closed", answer: "closed"}[at]
	switch {
	case errors.As(err, &errno):
		return say(target.Failed, reason, "%w", errno)
	case at == connect:
		return say(target.Failed, reason, "no connection, or no way through the proxy")
	case at == handshake:
		return say(target.Failed, reason, "the TLS handshake failed")
	case at == headers:
		return say(target.Failed, reason, "the connection was closed before an answer")
	}
	return say(target.Failed, "bad_response", "its answer is not HTTP, or too long, or broke off")
}

// describeVerb is Describe as part of a format.
func (t *Target) describeVerb() string { return strings.ReplaceAll(t.Describe(), "%", "%%") }

// repeat returns a little of somebody else's words, harmless on a terminal. It is
// cut between two words: half a secret would not be known for one when it is masked.
func repeat(err error) string {
	words := err.Error()
	if len(words) > wordsCap {
		words = words[:strings.LastIndexAny(words[:wordsCap+1], " ,;")+1] + "..."
	}
	return visible.Line(words)
}
