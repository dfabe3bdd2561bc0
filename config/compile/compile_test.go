package compile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"ways/config/files"
	"ways/config/plan"
	"ways/hooks/record"
)

// home is a throw-away user with a project.
type home struct {
	t       *testing.T
	env     Env
	project string
}

func newHome(t *testing.T) *home {
	t.Helper()
	// The temporary directory may itself be reached through a link.
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &home{
		t:       t,
		env:     Env{ConfigDir: filepath.Join(root, "config"), Home: root, Reader: files.NewReader()},
		project: filepath.Join(root, "project"),
	}
	h.mkdir(h.project)
	return h
}

func (h *home) mkdir(path string) {
	h.t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) write(path, text string) {
	h.t.Helper()
	h.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) user(name, text string) {
	h.write(filepath.Join(h.env.UserSensors(), name+".yaml"), text)
}

func (h *home) inProject(name, text string) {
	h.write(filepath.Join(ProjectSensors(h.project), name+".yaml"), text)
}

func (h *home) compile() Result {
	h.t.Helper()
	r, err := Compile(h.env, h.project)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

const oneRule = `spec: 1
kind: ways
rules:
  - name: log
    sections: [tool_call]
    dispatch:
      file: {path: ~/log.jsonl}
`

func TestCompileOneRule(t *testing.T) {
	h := newHome(t)
	h.user("mine", oneRule)
	r := h.compile()
	if len(r.Problems) != 0 {
		t.Fatalf("problems: %v", r.Problems)
	}
	if len(r.Plan.Rules) != 1 {
		t.Fatalf("rules: %+v", r.Plan.Rules)
	}
	got := r.Plan.Rules[0]
	if got.ID != "mine/log" || got.Layer != plan.User || got.Sections != record.SetOf(record.ToolCall) ||
		got.Target.File.Path != "~/log.jsonl" || got.Target.File.Format != "jsonl" ||
		got.Mode != plan.Async || got.Timeout != 5*time.Second || got.Queue != 1000 ||
		got.Delivery != plan.BestEffort || got.Redact != plan.RedactSecrets || got.Where != nil {
		t.Fatalf("rule: %+v", got)
	}
}
