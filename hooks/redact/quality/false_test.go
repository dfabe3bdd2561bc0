package quality

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ways/hooks/redact"
)

// False marks on the Go standard library: ordinary files, without tests and
// test data, one in eight so that the race detector is done in seconds. The test
// key in it and the sample passwords in its comments count too.
func TestQualityStandardLibrary(t *testing.T) {
	m := masker(t)
	size, marks, files := 0, 0, 0
	err := filepath.WalkDir(library(t), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		if files++; files%8 != 0 {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		size += len(text)
		_, found := m.Text(text)
		marks += len(found)
		for _, f := range found {
			t.Logf("%s: %s %.60q", filepath.Base(path), f.Kind, text[f.Start:f.End])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	perMB := float64(marks) / (float64(size) / 1e6)
	t.Logf("%d marks in %.1f MB, %.3f per MB", marks, float64(size)/1e6, perMB)
	if perMB > 0.2 {
		t.Errorf("%.3f false marks per MB, ceiling 0.2", perMB)
	}
}

// False marks on logs: none.
func TestQualityLogs(t *testing.T) {
	m := masker(t)
	text := Logs(seed, 12000)
	_, found := m.Text([]byte(text))
	for _, f := range found[:min(len(found), 20)] {
		line := strings.LastIndexByte(text[:f.Start], '\n') + 1
		t.Errorf("%s: %.60q in %.120q", f.Kind, text[f.Start:f.End], text[line:])
	}
	rec, err := json.Marshal(map[string]any{"data": map[string]string{"output": text}})
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Seal(rec, redact.Envelope{Rule: "q/q"}).Counts(); c != nil {
		t.Errorf("in a record: %v", c)
	}
	t.Logf("%d marks in %.1f MB", len(found), float64(len(text))/1e6)
}

// benchmark texts: a record of 1 KB of ordinary output, the same of 1 MB, and a
// picture in base64.
func BenchmarkSeal(b *testing.B) {
	m := masker(b)
	logs := Logs(seed, 20000)
	for _, bb := range []struct {
		name string
		text string
	}{
		{"output 1 KB", logs[:1000]},
		{"output 1 MB", logs[:1_000_000]},
		{"picture 1 MB", newGen(seed).chars('b', 1_000_000)},
		{"source 1 MB", source(b, 1_000_000)},
	} {
		rec, err := json.Marshal(map[string]any{"v": 1, "section": "tool_result", "data": map[string]string{"output": bb.text}})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(rec)))
			b.ReportAllocs()
			for b.Loop() {
				m.Seal(rec, redact.Envelope{Rule: "q/q", RuleSeq: 1})
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := redact.New(redact.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func source(b *testing.B, size int) string {
	b.Helper()
	names, err := filepath.Glob(filepath.Join(library(b), "net", "http", "*.go"))
	if err != nil {
		b.Fatal(err)
	}
	var s strings.Builder
	for _, n := range names {
		text, err := os.ReadFile(n)
		if err != nil {
			b.Fatal(err)
		}
		s.Write(text)
	}
	return s.String()[:size]
}

// library returns the directory of the standard library's source.
func library(tb testing.TB) string {
	tb.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "src")
}
