// Command demo replays a recorded session through the real hook into a
// throw-away home, and shows the audit log that comes out: `go tool task demo`.
package main

import (
	"bufio"
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
		fmt.Fprintln(out, "home:", home)
	} else {
		defer os.RemoveAll(home)
	}
	if err := d.ctl("sensors", "copy", "everything", "demo", "--enable"); err != nil {
		return err
	}
	session, sent, err := d.replay(recording)
	if err != nil {
		return err
	}
	if err := d.drained(session); err != nil {
		return err
	}
	log, err := d.log()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", log)
	if err := d.show(log, sent); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return d.ctl("status")
}

func (d demo) env() []string {
	return []string{"HOME=" + d.home, "PATH=" + os.Getenv("PATH"), "CLAUDE_PROJECT_DIR=/home/dev/proj"}
}

func (d demo) ctl(args ...string) error {
	fmt.Fprintln(d.out, "$ ways", strings.Join(args, " "))
	cmd := exec.Command(d.ways, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = d.env(), d.out, os.Stderr
	return cmd.Run()
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
		cmd.Env, cmd.Stdin = d.env(), strings.NewReader(string(payload))
		if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
			return "", 0, fmt.Errorf("the hook must exit 0 and print nothing: %v, %q", err, said)
		}
		sent++
	}
	fmt.Fprintf(d.out, "$ ways hook sensors   (%d recorded events of session %s, %s in all)\n",
		sent, session, time.Since(began).Round(time.Millisecond))
	return session, sent, nil
}

// drained returns when the session's dispatcher has left.
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
	for deadline := time.Now().Add(30 * time.Second); launch.Running(where.Session(session)); {
		if time.Now().After(deadline) {
			return errors.New("the dispatcher did not leave within 30 s of the session's end")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// log finds the one log file that the demo's sensor wrote.
func (d demo) log() (string, error) {
	var found string
	err := filepath.WalkDir(d.home, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(path, ".jsonl") {
			found = path
		}
		return err
	})
	if err == nil && found == "" {
		err = errors.New("no log was written")
	}
	return found, err
}

// record is what the demo shows of a record.
type record struct {
	Section string         `json:"section"`
	TS      time.Time      `json:"ts"`
	Seq     uint64         `json:"seq"`
	Agent   string         `json:"agent_type"`
	Data    map[string]any `json:"data"`
}

// show prints the log and checks its numbers.
func (d demo) show(path string, events int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	counts := map[string]int{}
	n := uint64(0)
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
		counts[r.Section]++
		fmt.Fprintf(d.out, "%4d  %s  %-16s %-18s %s\n", r.Seq, r.TS.Format("15:04:05.000"), r.Agent, r.Section, summary(r.Data))
	}
	if err := lines.Err(); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\n%d events gave %d records:", events, n)
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(d.out, " %s %d", s, counts[s])
	}
	fmt.Fprintf(d.out, "\nverified: sequence numbers 1 to %d, none missing, every line is valid JSON\n", n)
	return nil
}

func summary(data map[string]any) string {
	for _, key := range []string{"prompt", "text", "name", "phase", "source", "reason"} {
		if s, ok := data[key].(string); ok {
			if extra, ok := data["status"].(string); ok {
				s += " " + extra
			}
			s = strings.Join(strings.Fields(s), " ")
			return s[:min(len(s), 60)]
		}
	}
	return ""
}
