package quality

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ways/hooks/redact"
)

// What a real client wrote has no secrets in it, and nothing of it is masked:
// hook payloads and transcripts, with their ids, paths, digests and signatures.
func TestQualityRealClient(t *testing.T) {
	m := masker(t)
	lines, size := 0, 0
	err := filepath.WalkDir(filepath.Join("..", "..", "..", "testdata", "claude-code"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(text) {
			line = bytes.TrimSpace(line)
			if len(line) == 0 || line[0] != '{' {
				continue
			}
			lines++
			size += len(line)
			p := m.Seal(line, redact.Envelope{Rule: "q/q", RuleSeq: 1})
			if p.Counts() != nil {
				t.Errorf("%s: %v\n%s", path, p.Counts(), p.Bytes())
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines < 100 {
		t.Errorf("%d lines", lines)
	}
	t.Logf("%d lines, %d bytes", lines, size)
}
