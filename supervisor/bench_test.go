package supervisor_test

import (
	"context"
	"fmt"
	"io"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ways/actors/target"
	"ways/actors/target/file"
	"ways/actors/target/http"
	"ways/config/plan"
	"ways/hooks/index"
	"ways/hooks/launch"
	"ways/hooks/record"
	"ways/hooks/redact"
	"ways/hooks/spool"
	"ways/metrics/events"
	"ways/supervisor"
)

// draft is a record around its number.
type draft struct{ head, tail string }

func (d draft) Append(dst []byte, seq uint64) []byte {
	return append(strconv.AppendUint(append(dst, d.head...), seq, 10), d.tail...)
}
func (d draft) Size() int { return len(d.head) + len(d.tail) }

// fill appends n records of about size bytes to a session's spool.
func fill(tb testing.TB, dir string, n, size int) {
	tb.Helper()
	one := draft{
		`{"v":1,"section":"tool_call","event":"PreToolUse","source":"hook","ts":"2026-11-30T21:01:18.749763504Z","session":"bench","seq":`,
		`,"agent_id":"main","agent_type":"main","project":"/home/dev/proj","cwd":"/home/dev/proj","data":{"id":"toolu_1","name":"Read","input":{"file_path":"` +
			strings.Repeat("some words of text ", size/19) + `"}}}`,
	}
	for n > 0 {
		batch := make([]spool.Draft, min(n, 100))
		for i := range batch {
			batch[i] = one
		}
		n -= len(batch)
		_, err := spool.Append(dir, spool.Request{
			Generation: 1, Now: time.Now(), Wait: time.Second, Build: func(bool) []spool.Draft { return batch },
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// drain runs a dispatcher over a session's spool until it has left.
func drain(tb testing.TB, dir string, p plan.Plan, targets supervisor.Targets) {
	tb.Helper()
	lock, err := launch.TryLock(dir)
	if err != nil {
		tb.Fatal(err)
	}
	masker, err := redact.New(redact.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	err = supervisor.Dispatcher{
		Index: func(string) (index.Header, error) { return index.Header{}, nil },
		Dir:   dir, Session: "bench", Lock: lock, Idle: 20 * time.Millisecond, Masker: masker, Log: zerolog.Nop(), Events: events.NewLog(filepath.Dir(filepath.Dir(dir))),
		Load:    func(string) (plan.Plan, uint64, error) { return p, 1, nil },
		Targets: targets,
	}.Run(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
}

func rules(n int, to func(i int) plan.Target) plan.Plan {
	p := plan.Plan{Project: "/home/dev/proj"}
	for i := range n {
		p.Rules = append(p.Rules, plan.Rule{
			ID: fmt.Sprintf("bench/r%03d", i), Sections: record.SetOf(record.ToolCall), Target: to(i), Mode: plan.Async,
			Timeout: 5 * time.Second, Queue: 1000, Delivery: plan.BestEffort, Redact: plan.RedactSecrets,
		})
	}
	return p
}

// BenchmarkDispatch is the dispatcher from a full spool to its consumers; one
// operation is one record through all rules.
func BenchmarkDispatch(b *testing.B) {
	srv := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(nethttp.StatusNoContent)
	}))
	defer srv.Close()
	if _, _, err := net.SplitHostPort(srv.Listener.Addr().String()); err != nil {
		b.Fatal(err)
	}
	for _, row := range []struct {
		name string
		n    int
		size int
		to   func(dir string, i int) plan.Target
	}{
		{"file/1rule/300B", 1, 300, toFile},
		{"file/1rule/10kB", 1, 10_000, toFile},
		{"file/20rules/300B", 20, 300, toFile},
		{"http/1rule/300B", 1, 300, func(string, int) plan.Target { return plan.Target{HTTP: &plan.HTTP{URL: srv.URL}} }},
	} {
		b.Run(row.name, func(b *testing.B) {
			root := b.TempDir()
			dir := filepath.Join(root, "state", "sessions", "bench")
			fill(b, dir, b.N, row.size)
			p := rules(row.n, func(i int) plan.Target { return row.to(root, i) })
			b.SetBytes(int64(row.size))
			b.ResetTimer()
			drain(b, dir, p, func(r plan.Rule) (target.Target, error) {
				getenv := func(string) string { return "" }
				if r.Target.HTTP != nil {
					return http.New(*r.Target.HTTP, http.Options{Getenv: getenv})
				}
				return file.New(*r.Target.File, file.Options{StateDir: filepath.Join(root, "state"), Home: root, Getenv: getenv})
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

func toFile(dir string, i int) plan.Target {
	return plan.Target{File: &plan.File{Path: filepath.Join(dir, fmt.Sprintf("%03d.jsonl", i)), Format: "jsonl"}}
}
