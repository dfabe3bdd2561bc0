// Command demo replays a recorded session through the real hook into a
// throw-away home, and shows the audit log that comes out: `go tool task demo`.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ways/hooks/dirs"
	"ways/hooks/launch"
)

func main() {
	bin := pflag.String("bin", "bin", "the `DIR` with ways and waysctl")
	recording := pflag.String("recording", "testdata/claude-code/2.1.197/subagent-parallel", "the `DIR` with the recorded hook payloads")
	keep := pflag.Bool("keep", false, "keep the throw-away home")
	pflag.Parse()
	if err := run(os.Stdout, *bin, *recording, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// demo is one throw-away installation.
type demo struct {
	out  io.Writer
	ways string
	home string
}

func run(out io.Writer, bin, recording string, keep bool) error {
	ways, err := filepath.Abs(filepath.Join(bin, "ways"))
	if err != nil {
		return err
	}
	home, err := os.MkdirTemp("", "ways-demo-")
	if err != nil {
		return err
	}
	d := demo{out: out, ways: ways, home: home}
	if keep {
		fmt.Fprintf(out, "~ is %s; remove it when you are done\n\n", home)
	} else {
		fmt.Fprint(out, "~ is a throw-away directory; nothing else of yours is touched\n\n")
		defer os.RemoveAll(home)
	}
	for _, words := range []string{"reconcile", "sensors copy everything demo --enable"} {
		if err := d.do(words); err != nil {
			return err
		}
	}
	session, sent, err := d.replay(recording)
	if err != nil {
		return err
	}
	if err := d.drained(session); err != nil {
		return err
	}
	if err := d.show(sent); err != nil {
		return err
	}
	return d.do("status")
}

func (d demo) env() []string {
	return []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH"), "CLAUDE_PROJECT_DIR=/home/dev/proj"}
}

// do runs a verb of ways and shows what it said, with the home's path as ~.
func (d demo) do(words string) error {
	fmt.Fprintln(d.out, "+ ways", words)
	cmd := exec.Command(d.ways, strings.Fields(words)...)
	cmd.Env, cmd.Stderr = d.env(), os.Stderr
	said, err := cmd.Output()
	fmt.Fprintf(d.out, "%s\n", bytes.ReplaceAll(said, []byte(d.home), []byte("~")))
	return err
}

// replay runs the hook once for each recorded payload, as the client did.
func (d demo) replay(recording string) (session string, sent int, err error) {
	files, err := filepath.Glob(filepath.Join(recording, "[0-9]*.json"))
	if err != nil {
		return "", 0, err
	}
	if len(files) == 0 {
		return "", 0, fmt.Errorf("no recorded payloads in %s; run this from the repository's root", recording)
	}
	slices.Sort(files)
	began := time.Now()
	for _, file := range files {
		payload, err := os.ReadFile(file)
		if err != nil {
			return "", 0, err
		}
		var p struct {
			Session string `json:"session_id"`
		}
		if err := json.Unmarshal(payload, &p); err != nil {
			return "", 0, fmt.Errorf("%s: %w", file, err)
		}
		session = p.Session
		cmd := exec.Command(d.ways, "hook", "sensors")
		cmd.Env, cmd.Stdin = d.env(), bytes.NewReader(payload)
		if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
			return "", 0, fmt.Errorf("the hook must exit 0 and print nothing: %v, %q", err, said)
		}
		sent++
	}
	fmt.Fprintf(d.out, "+ for event in %s/*.json; do ways hook sensors < $event; done\n%d events, %s in all, each hook exited 0 and printed nothing\n\n",
		recording, sent, time.Since(began).Round(time.Millisecond))
	return session, sent, nil
}

// drained returns when the session's end is in the log and the dispatcher has
// left. One that has only just been started does not show as running yet.
func (d demo) drained(session string) error {
	where, err := dirs.From(func(name string) string {
		if name == "HOME" {
			return d.home
		}
		return ""
	})
	if err != nil {
		return err
	}
	ended := func() bool {
		text, err := os.ReadFile(d.log())
		return err == nil && bytes.Contains(text, []byte(`"section":"session_end"`))
	}
	for deadline := time.Now().Add(30 * time.Second); !ended() || launch.Running(where.Session(session)); {
		if time.Now().After(deadline) {
			return errors.New("the session's end was not logged, or its dispatcher did not leave, within 30 s")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// log is where the sensor everything writes, and so does its copy.
func (d demo) log() string { return filepath.Join(d.home, "ways-audit", "everything.jsonl") }

// record is what the demo shows of a record.
type record struct {
	Section string         `json:"section"`
	TS      time.Time      `json:"ts"`
	Seq     uint64         `json:"seq"`
	Agent   string         `json:"agent_type"`
	Data    map[string]any `json:"data"`
}

// show prints the log and checks it: the numbers, and that each call has its
// one result.
func (d demo) show(events int) error {
	f, err := os.Open(d.log())
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintln(d.out, "The log,", strings.Replace(d.log(), d.home, "~", 1)+", in short:")
	sections := map[string]int{}
	calls, results := map[string]int{}, map[string]int{}
	n := uint64(0)
	var sample string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("line %d is not JSON: %w", n+1, err)
		}
		n++
		if r.Seq != n {
			return fmt.Errorf("line %d has sequence number %d: one is missing", n, r.Seq)
		}
		sections[r.Section]++
		id, _ := r.Data["id"].(string)
		switch r.Section {
		case "tool_call":
			calls[id]++
		case "tool_result":
			results[id]++
			if sample == "" {
				sample = lines.Text()
			}
		}
		fmt.Fprintf(d.out, "%4d  %s  %-15s  %-18s  %s\n", r.Seq, r.TS.Format("15:04:05.000"), r.Agent, r.Section, summary(r))
	}
	if err := lines.Err(); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nOne of its lines, whole:\n%s\n\n", sample)
	fmt.Fprintf(d.out, "%d events gave %d records:", events, n)
	for i, s := range slices.Sorted(maps.Keys(sections)) {
		fmt.Fprintf(d.out, "%s %d %s", strings.Repeat(",", min(i, 1)), sections[s], s)
	}
	if !maps.Equal(calls, results) || slices.ContainsFunc(slices.Collect(maps.Values(calls)), func(n int) bool { return n != 1 }) {
		return fmt.Errorf("tool calls %v and results %v do not pair", calls, results)
	}
	fmt.Fprintf(d.out, "\nverified: every line is JSON; numbers 1 to %d, none missing; %d tool calls, each with one result\n\n", n, len(calls))
	return nil
}

// summary is a record's data in one short line.
func summary(r record) string {
	var words []string
	for _, key := range []string{"prompt", "text", "name", "phase", "source", "reason", "status"} {
		if s, ok := r.Data[key].(string); ok {
			words = append(words, s)
		}
	}
	if input, ok := r.Data["input"].(map[string]any); ok {
		for _, key := range []string{"command", "file_path", "url", "description"} {
			if s, ok := input[key].(string); ok {
				words = append(words, s)
				break
			}
		}
	}
	s := []rune(strings.Join(strings.Fields(strings.Join(words, " ")), " "))
	if len(s) > 48 {
		s = append(s[:47], '…')
	}
	return string(s)
}
