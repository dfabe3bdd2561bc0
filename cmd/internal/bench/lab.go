package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"ways/cmd/internal/figures"
	"ways/hooks/launch"
	"ways/hooks/spool"
)

const (
	// sensorFiles is the number of sensor files in the seed's budget (§2).
	sensorFiles = 20
	manyFiles   = 500
	// pastSessions are those whose directories lie beside the session's.
	pastSessions = 1000
	// transcriptBytes is the size of the large transcript.
	transcriptBytes = 200 << 20
)

// lab is the programs to time, and the homes that they work in.
type lab struct {
	dir, bin string
	call     call
	programs []program
	// notes say what is left out, and why.
	notes []string
	// selected is the home of the plain hand-off.
	selected home
	// open are the homes whose dispatcher runs until the end.
	open []home
	// leaving are the sessions that were ended before.
	leaving []left
	// want is how many lines each log must have at the end.
	want map[string]int
	// held ends the spool that nobody works off, and counts its records.
	held func() (int, error)
}

// left is a session whose dispatcher may still be about to leave.
type left struct {
	home    home
	session string
}

func (l *lab) ways() string   { return filepath.Join(l.bin, "ways") }
func (l *lab) hook() []string { return []string{l.ways(), "hook", "sensors"} }

// furnish builds the programs and makes the homes.
func (l *lab) furnish(ctx context.Context, spooled int) error {
	l.want = map[string]int{}
	for _, name := range []string{"ways", "waysctl"} {
		if _, err := os.Stat(filepath.Join(l.bin, name)); err != nil {
			return fmt.Errorf("%w (go tool task build)", err)
		}
	}
	none, err := l.home("none", 0, "")
	if err != nil {
		return err
	}
	return errors.Join(
		l.bare(ctx, none),
		l.unselected(none),
		l.handOffs(ctx),
		l.atScale(ctx, spooled),
		l.scripts(ctx, none),
	)
}

func (l *lab) home(name string, files int, section string) (home, error) {
	return newHome(filepath.Join(l.dir, name), files, section)
}

func (l *lab) add(p program) { l.programs = append(l.programs, p) }

// What the bare programs are.
const (
	cSource     = "#include <unistd.h>\n\nint main(void) { return write(1, \"hello\\n\", 6) != 6; }\n"
	bareSource  = "package main\n\nfunc main() {}\n"
	helloSource = "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\\n\") }\n"
	readSource  = "package main\n\nimport \"syscall\"\n\nfunc main() {\n\tvar buf [65536]byte\n\tfor {\n\t\tif n, _ := syscall.Read(0, buf[:]); n <= 0 {\n\t\t\treturn\n\t\t}\n\t}\n}\n"
)

// bare adds the programs that do nothing, or as good as nothing.
func (l *lab) bare(ctx context.Context, h home) error {
	if line, err := l.buildC(ctx); err != nil {
		l.notes = append(l.notes, "The static C program is left out: "+err.Error()+".")
	} else {
		l.add(program{name: "C, static, writes a line", argv: []string{line}, env: h.env()})
	}
	for _, row := range []struct {
		name, file, source string
		stdin              func(int) []byte
	}{
		{bareRow, "bare", bareSource, nil},
		{"Go, writes a line", "hello", helloSource, nil},
		{"Go, reads 1 MB from its stdin", "read", readSource, l.call.large},
	} {
		binary, err := buildGo(ctx, l.dir, row.file, row.source)
		if err != nil {
			return err
		}
		l.add(program{name: row.name, argv: []string{binary}, env: h.env(), stdin: row.stdin})
	}
	l.add(program{name: versionRow, argv: []string{l.ways(), "--version"}, env: h.env()})
	return nil
}

// unselected adds the hooks whose event no rule selects.
func (l *lab) unselected(none home) error {
	few, err := l.home("unselected", sensorFiles, "session_end")
	if err != nil {
		return err
	}
	many, err := l.home("unselected-many", manyFiles, "session_end")
	if err != nil {
		return err
	}
	for _, row := range []struct {
		name  string
		home  home
		stdin func(int) []byte
	}{
		{"nothing selected: no sensor file", none, l.call.numbered},
		{"nothing selected: 20 sensor files", few, l.call.numbered},
		{"nothing selected: 20 sensor files, payload of 1 MB", few, l.call.large},
		{"nothing selected: 500 sensor files", many, l.call.numbered},
	} {
		l.add(program{name: row.name, argv: l.hook(), env: row.home.env(), stdin: row.stdin})
	}
	return nil
}

// handOff adds a hook whose event one async rule selects. Its home's dispatcher
// runs, and is waited for after each run.
func (l *lab) handOff(name string, h home, stdin func(int) []byte) {
	l.open = append(l.open, h)
	l.add(program{
		name: name, argv: l.hook(), env: h.env(), stdin: stdin,
		after: func(ctx context.Context, n int) error {
			l.want[h.log()] = n + 1
			return h.await(ctx, n+1)
		},
	})
}

// handOffs adds the hand-offs with 20 sensor files.
func (l *lab) handOffs(ctx context.Context) error {
	var err error
	if l.selected, err = l.home("selected", sensorFiles, "tool_call"); err != nil {
		return err
	}
	l.handOff("hand-off: 20 sensor files", l.selected, l.call.numbered)
	large, err := l.home("large", sensorFiles, "tool_call")
	if err != nil {
		return err
	}
	l.handOff("hand-off: payload of 1 MB", large, l.call.large)
	cold, err := l.home("cold", sensorFiles, "tool_call")
	if err != nil {
		return err
	}
	of := func(n int) string { return fmt.Sprintf("5f0c1e52-8d7a-4a58-9a51-%012d", n) }
	l.add(program{
		name: "hand-off: starting the dispatcher", argv: l.hook(), env: cold.env(),
		stdin: func(n int) []byte { return l.call.in(of(n), n) },
		after: func(ctx context.Context, n int) error {
			l.want[cold.log()] = n + 1
			l.leaving = append(l.leaving, left{cold, of(n)})
			// Its dispatcher takes a while to leave, asleep: it is waited for at the end.
			return errors.Join(cold.await(ctx, n+1), l.sayEnd(cold, of(n)))
		},
	})
	return nil
}

// atScale adds the hand-offs beside much of everything.
func (l *lab) atScale(ctx context.Context, spooled int) error {
	if err := l.hold(spooled); err != nil {
		return err
	}
	past, err := l.home("past", sensorFiles, "tool_call")
	if err != nil {
		return err
	}
	for i := range pastSessions {
		if err := fillSpool(past.dirs.Session(fmt.Sprintf("past-%04d", i)), 1, 0); err != nil {
			return err
		}
	}
	l.handOff("hand-off: 1,000 past sessions", past, l.call.numbered)
	long, err := l.home("long", sensorFiles, "tool_call")
	if err != nil {
		return err
	}
	transcript := filepath.Join(l.dir, "transcript.jsonl")
	if err := writeTranscript(transcript, transcriptBytes); err != nil {
		return err
	}
	l.handOff("hand-off: transcript of 200 MB", long, l.call.naming(transcript))
	many, err := l.home("many", manyFiles, "tool_call")
	if err != nil {
		return err
	}
	l.handOff("hand-off: 500 sensor files", many, l.call.numbered)
	return ctx.Err()
}

// hold adds the hand-off into a spool of n records that nobody works off: this
// process holds the dispatcher's lock, and listens at its bell.
func (l *lab) hold(n int) error {
	h, err := l.home("spooled", sensorFiles, "tool_call")
	if err != nil {
		return err
	}
	dir := h.dirs.Session(session)
	if err := fillSpool(dir, n, 0); err != nil {
		return err
	}
	lock, err := launch.TryLock(dir)
	if err != nil {
		return err
	}
	bell, err := launch.Listen(dir)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	appended := 0
	l.add(program{
		name: fmt.Sprintf("hand-off: spool of %s records", figures.Thousands(float64(n))), argv: l.hook(), env: h.env(), stdin: l.call.numbered,
		after: func(_ context.Context, n int) error {
			appended = n + 1
			return nil
		},
	})
	l.held = func() (int, error) {
		defer lock.Close()
		defer bell.Close()
		if appended == 0 {
			return 0, nil
		}
		return appended, checkSpool(dir, n+appended)
	}
	return nil
}

// checkSpool fails unless the spool holds the records 1 to want, each once.
func checkSpool(dir string, want int) error {
	r := spool.NewReader(dir, spool.Position{})
	defer r.Close()
	for seq := 1; seq <= want; seq++ {
		fr, err := r.Next()
		if err != nil {
			return fmt.Errorf("record %d of %d in %s: %w", seq, want, dir, err)
		}
		if fr.Seq != uint64(seq) {
			return fmt.Errorf("record %d of %d in %s has the number %d", seq, want, dir, fr.Seq)
		}
	}
	return nil
}

// writeTranscript writes a transcript of that size: lines of a kilobyte.
func writeTranscript(path string, size int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	line := []byte(`{"type":"progress","uuid":"0","timestamp":"2026-11-30T21:01:18.749Z","text":"` + strings.Repeat("words ", 160) + "\"}\n")
	for n := 0; n < size; n += len(line) {
		if _, err := w.Write(line); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return errors.Join(w.Flush(), f.Close())
}

// end ends a session, and waits until its dispatcher has delivered everything
// and is gone.
func (l *lab) end(ctx context.Context, h home, session string) error {
	if err := l.sayEnd(h, session); err != nil {
		return err
	}
	return h.waitIdle(ctx, session)
}

// sayEnd ends a session.
func (l *lab) sayEnd(h home, session string) error {
	end := program{argv: l.hook(), env: h.env(), stdin: func(int) []byte { return sessionEnd(session) }}
	if _, err := end.time(0); err != nil {
		return fmt.Errorf("ending a session: %w", err)
	}
	return nil
}

// close ends what runs, and returns how many selected events are where they
// belong. It fails when one is missing: the timings of a hook that loses records
// mean nothing.
func (l *lab) close(ctx context.Context) (int, error) {
	var errs []error
	for _, h := range l.open {
		if _, err := os.Stat(h.dirs.Session(session)); errors.Is(err, fs.ErrNotExist) {
			continue // no hook ran in it
		}
		errs = append(errs, l.end(ctx, h, session))
	}
	for _, s := range l.leaving {
		errs = append(errs, s.home.waitIdle(ctx, s.session))
	}
	total := 0
	for log, want := range l.want {
		got, err := (&tail{path: log}).count()
		if err == nil && got != want {
			err = fmt.Errorf("%s has %d records, not %d: the timings of a hook that loses records mean nothing", log, got, want)
		}
		errs = append(errs, err)
		total += got
	}
	if l.held != nil {
		n, err := l.held()
		errs = append(errs, err)
		total += n
	}
	return total, errors.Join(errs...)
}

// scripts adds the hooks that people write: append the payload to a file. Those
// whose interpreter is not installed are left out.
func (l *lab) scripts(ctx context.Context, h home) error {
	for _, s := range []struct {
		name, command, file, source string
		// path makes the interpreter print its own path: a version manager's wrapper
		// would be timed too.
		path []string
	}{
		{
			"Python, appends the payload to a file", "python3", "append.py",
			"import sys\nwith open(sys.argv[1], \"ab\") as log:\n    log.write(sys.stdin.buffer.read() + b\"\\n\")\n",
			[]string{"-c", "import sys; print(sys.executable)"},
		},
		{
			"Node, appends the payload to a file", "node", "append.js",
			"const fs = require(\"fs\");\nfs.appendFileSync(process.argv[2], fs.readFileSync(0) + \"\\n\");\n",
			[]string{"-p", "process.execPath"},
		},
	} {
		command, err := exec.LookPath(s.command)
		if err != nil {
			l.notes = append(l.notes, "There is no "+s.command+" here: its hook is left out.")
			continue
		}
		out, err := exec.CommandContext(ctx, command, s.path...).Output()
		if err != nil {
			return fmt.Errorf("asking %s for its path: %w", command, err)
		}
		script := filepath.Join(l.dir, s.file)
		if err := os.WriteFile(script, []byte(s.source), 0o600); err != nil {
			return err
		}
		l.add(program{
			name: s.name, argv: []string{strings.TrimSpace(string(out)), script, script + ".jsonl"},
			env: h.env(), stdin: l.call.numbered,
		})
	}
	if _, err := exec.LookPath("jq"); err != nil {
		l.notes = append(l.notes, "There is no jq here: its hook is left out.")
		return nil
	}
	l.add(program{
		name: "`sh -c 'jq -c . >> FILE'`", argv: []string{"/bin/sh", "-c", `jq -c . >> "$0"`, filepath.Join(l.dir, "jq.jsonl")},
		env: h.env(), stdin: l.call.numbered,
	})
	return nil
}

// buildC builds the C program, static where the system has static libraries.
func (l *lab) buildC(ctx context.Context) (string, error) {
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		return "", errors.New("there is no gcc here")
	}
	source, binary := filepath.Join(l.dir, "line.c"), filepath.Join(l.dir, "line")
	if err := os.WriteFile(source, []byte(cSource), 0o600); err != nil {
		return "", err
	}
	if err := exec.CommandContext(ctx, compiler, "-O2", "-static", "-o", binary, source).Run(); err != nil {
		return "", errors.New("gcc cannot link statically here")
	}
	return binary, nil
}

// buildGo builds a one-file program as the product is built.
func buildGo(ctx context.Context, dir, name, source string) (string, error) {
	file := filepath.Join(dir, name+".go")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		return "", err
	}
	binary := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, file)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
	}
	return binary, nil
}
