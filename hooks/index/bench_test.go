package index

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// written is an index of n sensor files that are there.
func written(b *testing.B, n int) (path, project string) {
	b.Helper()
	root := b.TempDir()
	h := Header{Project: root}
	for i := range n {
		file := filepath.Join(root, fmt.Sprintf("sensor-%03d.yaml", i))
		if err := os.WriteFile(file, []byte("spec: 1\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		h.Inputs = append(h.Inputs, Look(File, file))
	}
	path = filepath.Join(root, "cache", "index", "bench.idx")
	if _, err := Write(path, h, make([]byte, 500*n)); err != nil {
		b.Fatal(err)
	}
	return path, root
}

// BenchmarkRead is the whole header.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{25, 500} {
		b.Run(fmt.Sprintf("%dfiles", n), func(b *testing.B) {
			path, _ := written(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if h, err := Read(path); err != nil || len(h.Inputs) != n {
					b.Fatal(len(h.Inputs), err)
				}
			}
		})
	}
}

// BenchmarkStale is the look at each of its files.
func BenchmarkStale(b *testing.B) {
	for _, n := range []int{25, 500} {
		b.Run(fmt.Sprintf("%dfiles", n), func(b *testing.B) {
			path, project := written(b, n)
			h, err := Read(path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if changed := h.Stale(project); changed != "" {
					b.Fatal(changed)
				}
			}
		})
	}
}

// BenchmarkFresh is both, as a hook does it.
func BenchmarkFresh(b *testing.B) {
	for _, n := range []int{25, 500} {
		b.Run(fmt.Sprintf("%dfiles", n), func(b *testing.B) {
			path, project := written(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, changed, err := Fresh(path, project); err != nil || changed != "" {
					b.Fatal(changed, err)
				}
			}
		})
	}
}
