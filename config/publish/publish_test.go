package publish_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ways/config/files"
	"ways/config/publish"
	"ways/hooks/dirs"
	"ways/hooks/index"
	"ways/hooks/record"
)

func place(t *testing.T) dirs.Dirs {
	t.Helper()
	home := t.TempDir()
	d, err := dirs.From(func(name string) string { return map[string]string{"HOME": home}[name] })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(d.Sensors(), 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

func sensor(name, section string) string {
	return "spec: 1\nkind: ways\nname: " + name + "\ndescription: d\nenabled: true\nrules:\n  - name: log\n    sections: [" +
		section + "]\n    dispatch:\n      file: {path: /nowhere/x, format: jsonl}\n"
}

// see is what the next hook would go by: the index when it is not stale, else a
// new one.
func see(t *testing.T, d dirs.Dirs, project string) (h index.Header, compiled bool) {
	t.Helper()
	h, err := index.Read(d.Index(project))
	if err == nil && h.Stale(h.Project) == "" {
		return h, false
	}
	if _, err := publish.Publish(d, files.NewReader(), project); err != nil {
		t.Fatal(err)
	}
	if h, err = index.Read(d.Index(project)); err != nil {
		t.Fatal(err)
	}
	if h.Stale(h.Project) != "" {
		t.Fatalf("stale as soon as it was made: %s", h.Stale(h.Project))
	}
	return h, true
}

// TestEveryEditIsSeen edits as fast as it can, without changing a length, and
// looks after each edit.
func TestEveryEditIsSeen(t *testing.T) {
	d := place(t)
	path := filepath.Join(d.Sensors(), "a.yaml")
	sections := []record.Section{record.ToolCall, record.Subagent} // names of one length
	edits := []struct {
		name string
		edit func(text string) error
	}{
		{"written in place", func(text string) error { return os.WriteFile(path, []byte(text), 0o600) }},
		{"renamed over", func(text string) error {
			if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		}},
		{"removed and made again", func(text string) error {
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				return err
			}
			return os.WriteFile(path, []byte(text), 0o600)
		}},
	}
	last := index.Header{}
	for i := range 60 {
		want, how := sections[i%2], edits[i%3]
		text := sensor("a", want.String())
		if want == record.Subagent {
			text = sensor("a", "subagent ") // as long as the other
		}
		if err := how.edit(text); err != nil {
			t.Fatal(err)
		}
		h, compiled := see(t, d, "/nowhere")
		if !compiled || h.Async != record.SetOf(want) {
			t.Fatalf("edit %d, %s: compiled %v, sections %v, want %v", i, how.name, compiled, h.Async.List(), want)
		}
		if h.Generation == last.Generation {
			t.Fatalf("edit %d: the generation stayed %x", i, h.Generation)
		}
		last = h
		if _, compiled := see(t, d, "/nowhere"); compiled {
			t.Fatalf("edit %d: compiled again without a change", i)
		}
	}
}

// TestWhatChangesTheIndex walks through everything that can change a plan.
func TestWhatChangesTheIndex(t *testing.T) {
	d := place(t)
	project := filepath.Join(t.TempDir(), "project")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	user := filepath.Join(d.Sensors(), "a.yaml")
	theirs := filepath.Join(project, ".claude", "ways-sensors")
	trust := fmt.Sprintf("ways:\n  project_sensors:\n    - %s\n", project)
	write := func(path, text string) func() error {
		return func() error {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			return os.WriteFile(path, []byte(text), 0o600)
		}
	}
	call, prompt, end := record.SetOf(record.ToolCall), record.SetOf(record.UserPrompt), record.SetOf(record.SessionEnd)
	for _, step := range []struct {
		name string
		do   func() error
		want record.Set
	}{
		{"a new sensor", write(user, sensor("a", "tool_call")), call},
		{"a second", write(filepath.Join(d.Sensors(), "b.yaml"), sensor("b", "user_prompt")), call | prompt},
		{"the first is broken", write(user, "rules: ["), prompt},
		{"the first is back", write(user, sensor("a", "tool_call")), call | prompt},
		{"the second is renamed away", func() error {
			return os.Rename(filepath.Join(d.Sensors(), "b.yaml"), filepath.Join(d.Sensors(), "b.off"))
		}, call},
		{"a project's sensor that nobody trusts", write(filepath.Join(theirs, "p.yaml"), sensor("p", "session_end")), call},
		{"trust", write(d.Settings(), trust), call | end},
		{"trust withdrawn", write(d.Settings(), "ways:\n  project_sensors: []\n"), call},
		{"trust again", write(d.Settings(), trust), call | end},
		{"the settings are gone", func() error { return os.Remove(d.Settings()) }, call},
		{"trust once more", write(d.Settings(), trust), call | end},
		{"the project's directory is gone", func() error { return os.RemoveAll(theirs) }, call},
		{"and back", write(filepath.Join(theirs, "p.yaml"), sensor("p", "session_end")), call | end},
		{"others may write the sensor", func() error { return os.Chmod(user, 0o622) }, end},
		{"no longer", func() error { return os.Chmod(user, 0o600) }, call | end},
		{"a link elsewhere", func() error {
			if err := write(filepath.Join(filepath.Dir(project), "x.yaml"), sensor("a", "user_prompt"))(); err != nil {
				return err
			}
			if err := os.Remove(user); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(filepath.Dir(project), "x.yaml"), user)
		}, prompt | end},
		{"what the link leads to", write(filepath.Join(filepath.Dir(project), "x.yaml"), sensor("a", "tool_call")), call | end},
		{"the user's directory is gone", func() error { return os.RemoveAll(d.Sensors()) }, end},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		h, compiled := see(t, d, project)
		if !compiled || h.Async != step.want {
			t.Fatalf("%s: compiled %v, sections %v, want %v", step.name, compiled, h.Async.List(), step.want.List())
		}
		p, generation, err := publish.Load(d, files.NewReader(), project)
		if err != nil || generation != h.Generation || p.Project != project {
			t.Fatalf("%s: plan of %q, generation %x, %v", step.name, p.Project, generation, err)
		}
	}
}

// TestChangedWhileCompiling edits from one goroutine while another publishes:
// once the edits are over, the next look sees the last one.
func TestChangedWhileCompiling(t *testing.T) {
	d := place(t)
	path := filepath.Join(d.Sensors(), "a.yaml")
	for round := range 15 {
		done := make(chan error)
		go func() {
			var err error
			for i := range 40 {
				text := sensor("a", []string{"tool_call", "subagent "}[i%2])
				if i%5 == 4 {
					err = os.Remove(path)
				} else {
					err = os.WriteFile(path, []byte(text), 0o600)
				}
				if err != nil {
					break
				}
			}
			if err == nil {
				err = os.WriteFile(path, []byte(sensor("a", []string{"user_prompt", "session_end"}[round%2])), 0o600)
			}
			done <- err
		}()
		for over := false; !over; {
			// It may give up while files keep changing; it must not be wrong.
			_, _ = publish.Publish(d, files.NewReader(), "/nowhere")
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				over = true
			default:
			}
		}
		want := []record.Section{record.UserPrompt, record.SessionEnd}[round%2]
		if h, _ := see(t, d, "/nowhere"); h.Async != record.SetOf(want) {
			t.Fatalf("round %d: %v, want %v", round, h.Async.List(), want)
		}
	}
}
