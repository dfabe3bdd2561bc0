package http

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"ways/config/plan"
)

// raw is a server that does what it likes with a connection.
type raw struct {
	url, addr string
	listener  net.Listener
	conns     *sync.WaitGroup
}

// newRaw serves each connection with do, and then reads until the client has
// closed it.
func newRaw(t *testing.T, do func(c net.Conn)) raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	conns := &sync.WaitGroup{}
	conns.Go(func() {
		// One connection is all that a dispatch needs.
		c, err := l.Accept()
		if err != nil {
			return
		}
		conns.Go(func() {
			do(c)
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		})
	})
	return raw{"http://" + l.Addr().String(), l.Addr().String(), l, conns}
}

// wait returns when the client has closed its connection, if it made one.
func (r raw) wait() {
	_ = r.listener.Close()
	r.conns.Wait()
}

// say reads the request's headers and then writes text.
func say(text string) func(net.Conn) {
	return func(c net.Conn) {
		readHeaders(c)
		_, _ = io.WriteString(c, text)
	}
}

func readHeaders(c net.Conn) {
	var got []byte
	buf := make([]byte, 1)
	for !bytes.HasSuffix(got, []byte("\r\n\r\n")) {
		if _, err := c.Read(buf); err != nil {
			return
		}
		got = append(got, buf...)
	}
}

// forever writes text, then more again and again, until the client has gone.
func forever(text, more string, every time.Duration) func(net.Conn) {
	return func(c net.Conn) {
		say(text)(c)
		pace := time.NewTicker(every)
		defer pace.Stop()
		for {
			if _, err := io.WriteString(c, more); err != nil {
				return
			}
			<-pace.C
		}
	}
}

// Endpoints that misbehave, each a real server. A dispatch ends with its answer
// or at its timeout; then the connection is closed.
func TestHostileEndpoints(t *testing.T) {
	const fast = time.Microsecond
	var bomb bytes.Buffer
	zip, err := gzip.NewWriterLevel(&bomb, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := zip.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	// What never reads cannot see that the client has gone; it is told.
	delivered := make(chan struct{})
	big := `{"prompt":"` + strings.Repeat("x", 8<<20) + `"}`
	for _, row := range []struct {
		name string
		do   func(c net.Conn)
		url  func(r raw) string // nil: http
		data string
		env  func(r raw) vars
		want string
	}{
		{name: "never reads, never answers", do: func(c net.Conn) { <-delivered; _ = c.Close() }, data: big, want: "timed_out headers"},
		{name: "reads, never answers", do: func(net.Conn) {}, want: "timed_out headers"},
		{name: "headers a byte at a time", do: forever("HTTP/1.1 200 OK\r\nX-A: ", "x", 20*time.Millisecond), want: "timed_out headers"},
		{name: "status a byte at a time", do: forever("HTTP/1.1 2", "0", 20*time.Millisecond), want: "timed_out headers"},
		{name: "body a byte at a time", do: forever("HTTP/1.1 200 OK\r\n\r\n", "x", 20*time.Millisecond), want: "timed_out body"},
		{name: "body never comes", do: say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), want: "timed_out body"},
		{name: "chunk never ends", do: say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nabc"), want: "timed_out body"},
		{name: "body of an error never comes", do: say("HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\n"), want: "failed status_503"},
		{name: "trailers without end", do: forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n0\r\n", "A: b\r\n", fast), want: ""},
		{name: "accepts and closes", do: func(c net.Conn) { _ = c.Close() }, want: "failed closed"},
		{name: "closes after the request", do: func(c net.Conn) { readHeaders(c); _ = c.(*net.TCPConn).CloseWrite() }, want: "failed closed"},
		{name: "closes within the headers", do: func(c net.Conn) {
			say("HTTP/1.1 200 OK\r\nX-")(c)
			_ = c.(*net.TCPConn).CloseWrite()
		}, want: "failed bad_response"},
		{name: "resets", do: func(c net.Conn) {
			readHeaders(c)
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}, want: "failed closed"},
		{name: "closes within the body", do: func(c net.Conn) {
			say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")(c)
			_ = c.(*net.TCPConn).CloseWrite()
		}, want: ""},
		{name: "1xx without end", do: forever("", "HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n", fast), want: "failed bad_response"},
		{name: "100 without end", do: forever("", "HTTP/1.1 100 Continue\r\n\r\n", fast), want: "failed bad_response"},
		{name: "101", do: say("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"), want: "failed status_101"},
		{name: "headers without end", do: forever("HTTP/1.1 200 OK\r\n", "X-A: b\r\n", fast), want: "failed bad_response"},
		{name: "one header without end", do: forever("HTTP/1.1 200 OK\r\nX-A: ", strings.Repeat("x", 1000), fast), want: "failed bad_response"},
		{name: "body without end", do: forever("HTTP/1.1 200 OK\r\n\r\n", strings.Repeat("x", 1000), fast), want: ""},
		{name: "chunks without end", do: forever("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n", fast), want: ""},
		{name: "gzip bomb", do: func(c net.Conn) {
			say("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + bomb.String())(c)
			_ = c.(*net.TCPConn).CloseWrite()
		}, want: ""},
		{name: "another protocol", do: say("220 mail.example ESMTP t0ken\r\n"), want: "failed bad_response"},
		{name: "binary", do: say("\x00\x01\x02\xff\r\n\r\n"), want: "failed bad_response"},
		{name: "two answers at once", do: say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), want: ""},
		{name: "two lengths", do: say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde"), want: "failed bad_response"},
		{name: "TLS never begins", do: func(net.Conn) {}, url: func(r raw) string { return "https://" + r.addr }, want: "timed_out tls"},
		{name: "TLS answered by nonsense", do: func(c net.Conn) { _, _ = io.WriteString(c, "nonsense\r\n") }, url: func(r raw) string { return "https://" + r.addr }, want: "failed tls"},
		{name: "TLS closed at once", do: func(c net.Conn) { _ = c.Close() }, url: func(r raw) string { return "https://" + r.addr }, want: "failed tls"},
		{
			name: "a proxy that never answers", do: func(net.Conn) {}, url: func(raw) string { return "https://example.com/" },
			env: func(r raw) vars { return vars{"HTTPS_PROXY": r.url} }, want: "timed_out connect",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := descriptors(t)
			s := newRaw(t, row.do)
			cfg := plan.HTTP{URL: s.url + "/?t0ken", Headers: []plan.Pair{{Name: "X-Auth", Value: "t0ken"}}}
			if row.url != nil {
				cfg.URL = row.url(s)
			}
			env := vars{}
			if row.env != nil {
				env = row.env(s)
			}
			data := row.data
			if data == "" {
				data = "{}"
			}
			timeout := 10 * time.Second
			if strings.HasPrefix(row.want, "timed_out") {
				timeout = 150 * time.Millisecond
			}
			to, d := newTarget(t, cfg, env, nil), dispatch(1, data)
			start := time.Now()
			wantOutcome(t, to.Deliver(within(t, timeout), d), row.want)
			if row.data != "" {
				close(delivered)
			}
			if took := time.Since(start); took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
			// A connection that can be used again is kept until now.
			if err := to.Close(); err != nil {
				t.Error(err)
			}
			s.wait()
			if after := descriptors(t); after > before {
				t.Errorf("%d descriptors, %d before", after, before)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	to := newTarget(t, plan.HTTP{URL: "http://u:t0ken@" + addr + "/?t0ken"}, nil, nil)
	e := wantOutcome(t, to.Deliver(t.Context(), dispatch(1, "{}")), "failed connect")
	if want := "http: http://" + addr + "/: connection refused"; e.Err.Error() != want {
		t.Errorf("%q, want %q", e.Err, want)
	}
}

// The rule goes on with its next record at once, on a connection of its own.
func TestAfterATimeoutTheNextRecordIsDelivered(t *testing.T) {
	stall := newRaw(t, func(net.Conn) {})
	good, _ := server(t, nil)
	env := vars{"WHERE": stall.url}
	to := newTarget(t, plan.HTTP{URL: "${WHERE}"}, env, nil)
	wantOutcome(t, to.Deliver(within(t, 50*time.Millisecond), dispatch(1, "{}")), "timed_out headers")
	stall.wait()
	env["WHERE"] = good.URL
	wantOutcome(t, to.Deliver(within(t, 10*time.Second), dispatch(2, "{}")), "")
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
