package supervisor_test

import (
	"io"
	nethttp "net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"ways/actors/target"
	"ways/actors/target/file"
	"ways/actors/target/http"
	"ways/config/plan"
)

// BenchmarkAtLeastOnce is BenchmarkDispatch for rules that wait for each record to
// be accepted; for a file that is a flush to the disk.
func BenchmarkAtLeastOnce(b *testing.B) {
	srv := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(nethttp.StatusNoContent)
	}))
	defer srv.Close()
	for _, row := range []struct {
		name string
		size int
		to   func(dir string, i int) plan.Target
	}{
		{"file/300B", 300, toFile},
		{"file/10kB", 10_000, toFile},
		{"http/300B", 300, func(string, int) plan.Target { return plan.Target{HTTP: &plan.HTTP{URL: srv.URL}} }},
		{"http/10kB", 10_000, func(string, int) plan.Target { return plan.Target{HTTP: &plan.HTTP{URL: srv.URL}} }},
	} {
		b.Run(row.name, func(b *testing.B) {
			root := b.TempDir()
			dir := filepath.Join(root, "state", "sessions", "bench")
			fill(b, dir, b.N, row.size)
			p := rules(1, func(i int) plan.Target { return row.to(root, i) })
			p.Rules[0].Delivery = plan.AtLeastOnce
			b.SetBytes(int64(row.size))
			b.ResetTimer()
			drain(b, dir, p, func(r plan.Rule) (target.Target, error) {
				getenv := func(string) string { return "" }
				if r.Target.HTTP != nil {
					return http.New(*r.Target.HTTP, http.Options{Getenv: getenv})
				}
				return file.New(*r.Target.File, file.Options{StateDir: filepath.Join(root, "state"), Home: root, Getenv: getenv, Sync: true})
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
