// Package metrics is the verb `ways metrics`: what was counted, for Prometheus.
package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"ways/cmd/internal/cli"
	"ways/cmd/internal/survey"
	"ways/hooks/dirs"
	"ways/hooks/temp"
	"ways/metrics/exposition"
)

const usage = `Usage: ways metrics [--output FILE]
       ways metrics serve [--listen ADDRESS]

Prints what was counted since installation, over all sessions, in the Prometheus
text format. With --output it replaces FILE in one step, as the node exporter's
textfile collector wants it. ways metrics serve answers scrapes over HTTP.`

// Run is the verb.
func Run(env cli.Env, args []string) int {
	if len(args) > 0 && args[0] == "serve" {
		return serve(env, args[1:])
	}
	fs := cli.Flags("metrics")
	output := fs.String("output", "", "write to `FILE`, whole or not at all, readable by all")
	if code, done := cli.Parse(env, fs, usage, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "no arguments, or serve")
	}
	snap, err := snapshot(env)
	if err != nil {
		return env.Fail("metrics", err)
	}
	var text bytes.Buffer
	if err := exposition.Write(&text, snap); err != nil {
		return env.Fail("metrics", err)
	}
	if *output == "" {
		_, err = env.Stdout.Write(text.Bytes())
	} else {
		err = replace(*output, text.Bytes())
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return env.Fail("metrics", err)
	}
	return cli.OK
}

func snapshot(env cli.Env) (exposition.Snapshot, error) {
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return exposition.Snapshot{}, err
	}
	s, err := survey.Take(d)
	return s.Snapshot(time.Now(), env.Version), err
}

// replace gives a file a new content in one step. The collector runs as another
// user, so everybody may read it; it holds names of rules and numbers.
func replace(path string, text []byte) error {
	temp.Sweep(filepath.Dir(path))
	f, err := temp.Create(filepath.Dir(path))
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err != nil {
		temp.Discard(f)
	} else {
		err = temp.Commit(f, path)
	}
	if err != nil {
		return fmt.Errorf("%s not written: %w", path, err)
	}
	return nil
}
