package spool

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkAppend is one event of one record, under the lock, as a hook appends
// it; the spool grows from segment to segment.
func BenchmarkAppend(b *testing.B) {
	for _, row := range []struct {
		name string
		size int
	}{{"600B", 600}, {"100kB", 100_000}} {
		b.Run(row.name, func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "state", "sessions", "bench")
			one := []Draft{inboxDraft{[]byte(`{"seq":`), []byte(`,"data":"` + strings.Repeat("x", row.size) + `"}`)}}
			b.SetBytes(int64(row.size))
			b.ReportAllocs()
			key := uint64(0)
			for b.Loop() {
				key++
				res, err := Append(dir, Request{
					Key: key, Window: time.Second, Now: time.Now(), Wait: time.Second, Build: func(bool) []Draft { return one },
				})
				if err != nil || res.Last != key {
					b.Fatal(res, err)
				}
			}
		})
	}
}
