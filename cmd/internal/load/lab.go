package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ways/config/files"
	"ways/config/publish"
	"ways/hooks/dirs"
	"ways/hooks/spool"
)

// lab has what all parts need: the binaries, a consumer over http, and room for
// homes.
type lab struct {
	dir           string
	ways, waysctl string
	share         float64
	consumer      *consumer
	homes         int
}

func newLab(dir, bin string, share float64) (*lab, error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, ways: filepath.Join(bin, "ways"), waysctl: filepath.Join(bin, "waysctl"), share: share}
	for _, path := range []string{l.ways, l.waysctl} {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w (go tool task build)", err)
		}
	}
	l.consumer, err = newConsumer()
	return l, err
}

func (l *lab) close() { l.consumer.close() }

// some is the lab's share of n, at least 1.
func (l *lab) some(n int) int { return max(1, int(l.share*float64(n))) }

// home is a user's home.
type home struct {
	root string
	dirs dirs.Dirs
}

// rulesPerFile is how many rules go into one sensor file.
const rulesPerFile = 20

// rule is one of a home's rules: the YAML of its dispatch, and of what else it says.
type rule struct {
	sections, dispatch string
	more               []string
}

// newHome makes a home with these rules.
func (l *lab) newHome(rules ...rule) (home, error) {
	l.homes++
	h := home{root: filepath.Join(l.dir, fmt.Sprintf("h%03d", l.homes))}
	var err error
	h.dirs, err = dirs.From(func(name string) string {
		if name == "HOME" {
			return h.root
		}
		return ""
	})
	if err != nil {
		return home{}, err
	}
	for _, dir := range []string{h.dirs.Sensors(), h.project()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return home{}, err
		}
	}
	for first := 0; first < len(rules); first += rulesPerFile {
		name := fmt.Sprintf("load-%03d", first/rulesPerFile)
		var text strings.Builder
		fmt.Fprintf(&text, "spec: 1\nkind: ways\nname: %s\ndescription: Of a measurement.\nenabled: true\nrules:\n", name)
		for i, r := range rules[first:min(first+rulesPerFile, len(rules))] {
			fmt.Fprintf(&text, "  - name: r%03d\n    sections: [%s]\n    dispatch:\n      %s\n", first+i, r.sections, r.dispatch)
			for _, line := range r.more {
				text.WriteString("    " + line + "\n")
			}
		}
		if err := os.WriteFile(filepath.Join(h.dirs.Sensors(), name+".yaml"), []byte(text.String()), 0o600); err != nil {
			return home{}, err
		}
	}
	res, err := publish.Publish(h.dirs, files.NewReader(), h.project())
	if err != nil {
		return home{}, err
	}
	if len(res.Plan.Rules) != len(rules) {
		return home{}, fmt.Errorf("%d rules were written and %d are valid: %+v", len(rules), len(res.Plan.Rules), res.Problems)
	}
	return h, nil
}

func (h home) project() string { return filepath.Join(h.root, "p") }

// log is the file of rule n.
func (h home) log(n int) string { return filepath.Join(h.root, "logs", fmt.Sprintf("%03d.jsonl", n)) }

// toFile dispatches to the file of rule n.
func (h home) toFile(n int) string { return toFile(h.log(n)) }

func toFile(path string) string { return fmt.Sprintf("file: {path: %q, format: jsonl}", path) }

func (h home) env() []string {
	return []string{"HOME=" + h.root, "PATH=" + os.Getenv("PATH"), "CLAUDE_PROJECT_DIR=" + h.project()}
}

// next is where the next home will be: rules name files in it.
func (l *lab) next() home { return home{root: filepath.Join(l.dir, fmt.Sprintf("h%03d", l.homes+1))} }

// fill appends n records of about size bytes to a session's spool, as hooks would
// have, but a hundred with each write.
func (h home) fill(session string, n, size int) error {
	_, generation, err := publish.Load(h.dirs, files.NewReader(), h.project())
	if err != nil {
		return err
	}
	made := newMaker(session, h.project(), size)
	for n > 0 {
		batch := make([]spool.Draft, min(n, 100))
		for i := range batch {
			batch[i] = made.next()
		}
		n -= len(batch)
		if _, err := spool.Append(h.dirs.Session(session), spool.Request{
			Generation: generation, Now: time.Now(), Wait: time.Second, Build: func(bool) []spool.Draft { return batch },
		}); err != nil {
			return err
		}
	}
	return nil
}

// usage is what a process took.
type usage struct {
	wall, cpu time.Duration
	// peak is the most memory it held at once, in bytes; 0 where that is not known.
	peak int64
}

// rest is how long a measured dispatcher stays with an empty spool.
const rest = 30 * time.Millisecond

// drain runs a dispatcher over a session's spool until it has left.
func (l *lab) drain(ctx context.Context, h home, session string) (usage, error) {
	return h.time(ctx, l.waysctl, "sensors", "dispatch", "--session", session, "--idle", rest.String())
}

// time runs a program in a home.
func (h home) time(ctx context.Context, argv ...string) (usage, error) {
	cmd := h.command(ctx, argv...)
	var said strings.Builder
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return usage{}, err
	}
	peak, done := make(chan int64, 1), make(chan struct{})
	go func() { peak <- peakOf(cmd.Process.Pid, done) }()
	err := cmd.Wait()
	wall := time.Since(began)
	close(done)
	most := <-peak
	if err != nil {
		return usage{}, fmt.Errorf("%s: %w: %s", argv[0], err, said.String())
	}
	return usage{wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), most}, nil
}

// peakOf looks now and then at the most memory that a process has held, until done.
// What the kernel says at a process's end counts its parent's memory at the fork.
func peakOf(pid int, done <-chan struct{}) int64 {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var most int64
	for {
		if held, err := held(pid); err == nil {
			most = max(most, held)
		}
		select {
		case <-done:
			return most
		case <-tick.C:
		}
	}
}

func (h home) command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = h.env(), h.root
	return cmd
}

// errLost is wrapped where records are missing, or there twice.
var errLost = errors.New("not each record arrived once")

// arrived checks that a log has n lines.
func arrived(path string, n int) error {
	got, err := lines(path)
	if err == nil && got != n {
		err = fmt.Errorf("%w: %d of %d are in %s", errLost, got, n, path)
	}
	return err
}

// lines counts a file's lines; a file that is not there has none.
func lines(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, buf := 0, make([]byte, 1<<20)
	for {
		k, err := f.Read(buf)
		n += strings.Count(string(buf[:k]), "\n")
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
