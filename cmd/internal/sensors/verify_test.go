package sensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ways/actors/target"
	"ways/actors/target/audit"
	"ways/actors/target/chained"
	"ways/actors/target/checkpoint"
	"ways/actors/target/command"
	"ways/actors/target/file"
	"ways/cmd/internal/cli"
	"ways/config/plan"
	"ways/hooks/chain"
	"ways/hooks/dirs"
	"ways/hooks/redact"
)

// world is a user with a chained log and a chained command.
type world struct {
	t    *testing.T
	home string
	dirs dirs.Dirs
}

func newWorld(t *testing.T) world {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{t: t, home: home}
	if w.dirs, err = dirs.From(w.getenv); err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(w.dirs.Sensors(), "a.yaml"), `spec: 1
kind: ways
rules:
  - name: log
    sections: [tool_call]
    dispatch: {file: {path: ~/logs/a.jsonl}}
    chain: true
  - name: run
    sections: [tool_call]
    dispatch: {command: {argv: [cat]}}
    chain: true
`)
	return w
}

func (w world) getenv(name string) string {
	if name == "HOME" {
		return w.home
	}
	return ""
}

func (w world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) log() string { return filepath.Join(w.home, "logs", "a.jsonl") }

// verify runs the verb and returns its exit code and what it printed.
func (w world) verify(args ...string) (int, string) {
	var out bytes.Buffer
	code := verify(cli.Env{Getenv: w.getenv, Stdout: &out, Stderr: &out}, args)
	return code, strings.ReplaceAll(out.String(), w.home, "~")
}

func (w world) expect(code int, says string, args ...string) {
	w.t.Helper()
	if got, out := w.verify(args...); got != code || !strings.Contains(out, says) {
		w.t.Errorf("verify %s: exit %d, want %d; want %q in\n%s", args, got, code, says, out)
	}
}

func (w world) keep(name string, h chain.Head) error {
	_, err := checkpoint.New(w.dirs.State, checkpoint.KeyFile(w.dirs.Config)).Write(name, h)
	return err
}

// deliver sends records from and up to to.
func (w world) deliver(way target.Target, from, to int) {
	w.t.Helper()
	for n := from; n <= to; n++ {
		err := way.Deliver(w.t.Context(), target.Dispatch{
			ID: fmt.Sprint("id", n), Rule: "a/log", Session: "x", Seq: uint64(n),
			Body: redact.Plain([]byte(fmt.Sprintf(`{"session":"x","seq":%d}`, n)), redact.Envelope{Rule: "a/log"}),
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	if err := way.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w world) fill(from, to int) {
	w.t.Helper()
	way, err := file.New(plan.File{Path: w.log(), Format: "jsonl"}, file.Options{
		StateDir: w.dirs.State, Getenv: w.getenv, Chain: true,
		Checkpoints: file.Checkpoints{Every: 2, AtClose: true, Write: w.keep},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.deliver(way, from, to)
}

func TestVerifyALog(t *testing.T) {
	w := newWorld(t)
	w.expect(cli.Usage, "no such file", "a/log")
	w.fill(1, 3)
	w.expect(cli.OK, "~/logs/a.jsonl: ok\n  records read: 3, numbers 1 to 3\n  signed checkpoints that agree: 2\n", "a/log")
	if err := os.Rename(w.log(), w.log()+".1"); err != nil {
		t.Fatal(err)
	}
	w.fill(4, 5)
	w.expect(cli.OK, "numbers 1 to 5", "a/log") // finds what it was rotated to
	w.expect(cli.OK, "numbers 1 to 5", w.log(), w.log()+".1")
	w.expect(partly, "records 1 to 3 are in earlier files", w.log())
	w.expect(partly, "records 4 to 5 are in later files", w.log()+".1")
	code, out := w.verify("a/log", "--json")
	var report audit.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != cli.OK || report.Status != audit.OK || report.Records != 5 || len(report.Files) != 2 || report.Head == "" {
		t.Errorf("JSON: exit %d, %v\n%s", code, err, out)
	}
	w.write(w.log(), "")
	w.expect(cli.Failed, "records 4 to 5 were cut off", "a/log")
	if err := os.Remove(w.log()); err != nil {
		t.Fatal(err)
	}
	w.expect(cli.Failed, "gone", "a/log") // what it was rotated to ends before
	if err := os.Remove(w.log() + ".1"); err != nil {
		t.Fatal(err)
	}
	w.expect(cli.Failed, "gone", "a/log")
	w.expect(cli.Failed, "gone", w.log())
}

func TestVerifyWithOtherCheckpointsAndKeys(t *testing.T) {
	w := newWorld(t)
	w.fill(1, 4)
	own := checkpoint.File(w.dirs.State, file.JournalName(w.log()))
	elsewhere := filepath.Join(w.home, "elsewhere")
	notes, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	w.write(elsewhere, string(notes))
	w.expect(cli.OK, "that agree: 4", "a/log", "--checkpoints", elsewhere)
	w.expect(cli.OK, "that agree: 2", "a/log", "--key", checkpoint.KeyFile(w.dirs.Config)+".pub")
	w.expect(cli.Usage, "holds no key", "a/log", "--key", w.log())
	w.expect(cli.Usage, "no such file", "a/log", "--checkpoints", "/nonexistent/x")
	// All of the state is rolled back or gone; what was kept elsewhere is not.
	if err := os.RemoveAll(w.dirs.State); err != nil {
		t.Fatal(err)
	}
	w.expect(partly, "no_head_known", "a/log", "--checkpoints", elsewhere)
	text, err := os.ReadFile(w.log())
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.log(), string(text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1]))
	w.expect(cli.Failed, "knows of record 4", "a/log", "--checkpoints", elsewhere)
}

func TestVerifyWhatAReceiverKept(t *testing.T) {
	w := newWorld(t)
	kept := filepath.Join(w.home, "kept.jsonl")
	way, err := command.New(plan.Command{Argv: []string{"/bin/sh", "-c", "cat >> " + kept + "; echo >> " + kept}, Input: "stdin"}, command.Options{Getenv: w.getenv})
	if err != nil {
		t.Fatal(err)
	}
	w.deliver(chained.New(way, chained.Options{StateDir: w.dirs.State, Rule: "a/run", Every: 2, AtClose: true, Write: w.keep}), 1, 5)
	text, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.ReplaceAll(string(text), "\n\n", "\n"), "\n")
	put := func(order ...int) {
		var all string
		for _, n := range order {
			all += lines[n]
		}
		w.write(kept, all)
	}
	put(0, 1, 2, 3, 4)
	w.expect(cli.Usage, "verify --rule a/run FILE", "a/run")
	w.expect(cli.OK, "numbers 1 to 5", "--rule", "a/run", kept)
	put(0, 1, 1, 2, 3, 4)
	w.expect(cli.OK, "numbers 1 to 5", "--rule", "a/run", kept)
	put(0, 1, 3, 4)
	w.expect(partly, "record 3 is not here", "--rule", "a/run", kept)
	put(0, 2, 1, 3, 4)
	w.expect(partly, "sort the lines", "--rule", "a/run", kept)
	put(0, 1, 2)
	w.expect(partly, "records 4 to 5", "--rule", "a/run", kept)
	lines[1] = strings.Replace(lines[1], `"seq":2`, `"seq":9`, 1)
	put(0, 1, 2, 3, 4)
	w.expect(cli.Failed, "edited", "--rule", "a/run", kept)
	w.expect(cli.Usage, "no rule", "--rule", "a/none", kept)
}
