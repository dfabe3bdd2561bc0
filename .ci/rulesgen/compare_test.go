package main

import (
	"bufio"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zricethezav/gitleaks/v8/detect"

	"ways/hooks/redact"
	"ways/hooks/redact/quality"
)

const seed = 20260301

func both(t *testing.T) (*redact.Masker, *detect.Detector) {
	t.Helper()
	m, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	d.IgnoreGitleaksAllow = true
	d.MaxDecodeDepth = 2
	return m, d
}

// gitleaksHides reports whether replacing what gitleaks found hides the parts.
func gitleaksHides(d *detect.Detector, text string, parts []string) bool {
	for _, f := range d.DetectString(text) {
		if f.Secret != "" {
			text = strings.ReplaceAll(text, f.Secret, "*")
		}
	}
	return quality.Leaks([]byte(text), parts) == ""
}

// The planted corpus: our masking and gitleaks' detector on the same texts.
func TestCompareRecall(t *testing.T) {
	m, d := both(t)
	type row struct{ n, ours, plain, record int }
	rows := map[string]*row{}
	var all row
	for _, p := range quality.Corpus(seed, 3000) {
		r := rows[p.Family]
		if r == nil {
			r = &row{}
			rows[p.Family] = r
		}
		out := m.Seal(p.Record, redact.Envelope{Rule: "q/q", RuleSeq: 1})
		ours := quality.Leaks(out.Bytes(), p.Parts) == ""
		plain := gitleaksHides(d, p.Text, p.Parts)
		record := gitleaksHides(d, string(p.Record), p.Parts)
		for _, r := range []*row{r, &all} {
			r.n++
			r.ours += one(ours)
			r.plain += one(plain)
			r.record += one(record)
		}
	}
	for f, r := range rows {
		t.Logf("%-10s n %5d  ways %5d  gitleaks: text %5d, record %5d", f, r.n, r.ours, r.plain, r.record)
		if r.ours < r.plain {
			t.Errorf("%s: gitleaks finds more", f)
		}
	}
	t.Logf("all        n %5d  ways %5d  gitleaks: text %5d, record %5d", all.n, all.ours, all.plain, all.record)
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// gitleaks' own samples, which its rule generator checks its rules with.
func TestCompareSamples(t *testing.T) {
	m, d := both(t)
	var n, ours, oursRecord, theirs, theirsRecord, clean, oursClean, theirsClean int
	missed := map[string]int{}
	for _, s := range samples(t) {
		rec, err := json.Marshal(map[string]any{"data": map[string]string{"text": s.Text}})
		if err != nil {
			t.Fatal(err)
		}
		_, found := m.Text([]byte(s.Text))
		sealed := m.Seal(rec, redact.Envelope{Rule: "q/q", RuleSeq: 1}).Counts() != nil
		if !s.Secret {
			clean++
			oursClean += one(len(found) > 0)
			if len(found) > 0 {
				t.Logf("marked, %s: %s %.60q in %.160q", s.Rule, found[0].Kind, s.Text[found[0].Start:found[0].End], s.Text)
			}
			theirsClean += one(len(d.DetectString(s.Text)) > 0)
			continue
		}
		n++
		ours += one(len(found) > 0)
		oursRecord += one(sealed)
		theirs += one(len(d.DetectString(s.Text)) > 0)
		theirsRecord += one(len(d.DetectString(string(rec))) > 0)
		if len(found) == 0 || !sealed {
			missed[s.Rule]++
			if missed[s.Rule] < 4 {
				t.Logf("missed %s: %.200q", s.Rule, s.Text)
			}
		}
	}
	t.Logf("secrets %d: ways %d, in a record %d; gitleaks %d, in a record %d", n, ours, oursRecord, theirs, theirsRecord)
	t.Logf("no secrets %d: ways marks %d, gitleaks %d", clean, oursClean, theirsClean)
	t.Logf("missed by rule: %v", missed)
	if n < 5000 {
		t.Fatalf("%d samples", n)
	}
	if ours < n*995/1000 || oursRecord < n*995/1000 {
		t.Errorf("recall on gitleaks' samples: %d, in a record %d, of %d", ours, oursRecord, n)
	}
}

// A sample is one text of gitleaks' rule generator.
type sample struct {
	Rule   string
	Text   string
	Secret bool
}

// samples builds gitleaks' rule generator with a Validate that writes the
// samples down, and runs it.
func samples(t *testing.T) []sample {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/zricethezav/gitleaks/v8").Output()
	if err != nil {
		t.Fatal(err)
	}
	module := strings.TrimSpace(string(out))
	const recorder = `package utils

import (
	"encoding/json"
	"os"

	"github.com/zricethezav/gitleaks/v8/config"
)

func note(rule, text string, secret bool) {
	f, err := os.OpenFile(os.Getenv("SAMPLES"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if err := json.NewEncoder(f).Encode(map[string]any{"Rule": rule, "Text": text, "Secret": secret}); err != nil {
		panic(err)
	}
}

func Validate(rule config.Rule, yes, no []string) *config.Rule {
	for _, s := range yes {
		note(rule.RuleID, s, true)
	}
	for _, s := range no {
		note(rule.RuleID, s, false)
	}
	return &rule
}

func ValidateWithPaths(rule config.Rule, yes, no map[string]string) *config.Rule {
	return &rule
}
`
	// The module cache must stay as it is, so the generator is built in a copy.
	copied := filepath.Join(dir, "gitleaks")
	if err := os.CopyFS(copied, os.DirFS(module)); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(copied, "cmd", "generate", "config")
	validate := filepath.Join(source, "utils", "validate.go")
	if err := os.Chmod(validate, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(validate, []byte(recorder), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "generator")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = source
	if msg, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	list := filepath.Join(dir, "samples")
	cmd := exec.Command(binary, filepath.Join(dir, "out.toml"))
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "SAMPLES="+list)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	f, err := os.Open(list)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []sample
	for dec := json.NewDecoder(bufio.NewReader(f)); dec.More(); {
		var s sample
		if err := dec.Decode(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// False marks and speed on the same ordinary texts.
func TestCompareOrdinaryText(t *testing.T) {
	m, d := both(t)
	d.MaxDecodeDepth = 0
	run := func(name string, texts []string) {
		size := 0
		var ours, theirs int
		start := time.Now()
		for _, text := range texts {
			size += len(text)
			_, found := m.Text([]byte(text))
			ours += len(found)
		}
		ourTime := time.Since(start)
		start = time.Now()
		for _, text := range texts {
			theirs += len(d.DetectString(text))
		}
		theirTime := time.Since(start)
		mb := float64(size) / 1e6
		t.Logf("%-20s %6.1f MB: marks ways %d, gitleaks %d; MB/s ways %.1f, gitleaks %.2f", name, mb, ours, theirs, mb/ourTime.Seconds(), mb/theirTime.Seconds())
	}
	var sources []string
	size := 0
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == "testdata" {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || size > 12e6 {
			return nil
		}
		text, err := os.ReadFile(path)
		size += len(text)
		sources = append(sources, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	run("Go source", sources)
	logs := quality.Logs(seed, 15000)
	run("logs, 1 KB each", pieces(logs, 1000))
	run("logs, 100 KB each", pieces(logs[:400000], 100000))
}

func pieces(text string, size int) []string {
	var out []string
	for len(text) > size {
		out = append(out, text[:size])
		text = text[size:]
	}
	return out
}
