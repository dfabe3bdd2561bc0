package sensors

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/config/files"
	"ways/config/problem"
	"ways/config/settings"
	"ways/config/trust"
	"ways/hooks/dirs"
)

const trustUsage = `Usage: ways sensors trust [--project DIR] [--remove]

Lists a project in your config.yaml (ways.project_sensors), so that its own sensor
files run, and notes what they are now: lint and status warn when one changes. On a
project that is listed it takes note of the files as they are, which ends the warning.

--remove takes the project off the list; its rules stop at the next event.`

func trustProject(env cli.Env, args []string) int {
	flags := cli.Flags("sensors trust")
	project := projectFlag(flags, env)
	remove := flags.Bool("remove", false, "take the project off the list")
	if code, done := cli.Parse(env, flags, trustUsage, args); done {
		return code
	}
	if flags.NArg() > 0 {
		return cli.WrongArgs(env, flags, "no arguments")
	}
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("sensors trust", err)
	}
	dir, err := filepath.Abs(project())
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return env.Fail("sensors trust", fmt.Errorf("the project: %w", err))
	}
	text, err := configText(d.Settings())
	if err != nil {
		return env.Fail("sensors trust", err)
	}
	conf, problems := settings.Parse(d.Settings(), d.Home, text)
	if errs := problem.Errors(problems); len(errs) > 0 {
		for _, p := range errs {
			fmt.Fprintln(env.Stderr, env.Line(env.Stderr, p))
		}
		return env.Fail("sensors trust", errors.New("mend config.yaml first; while it has a mistake, no project is trusted"))
	}
	listed, err := conf.Trusted(dir)
	if err != nil {
		return env.Fail("sensors trust", err)
	}
	if *remove {
		return distrust(env, d, text, dir, listed)
	}
	if !listed {
		if text, err = settings.Trust(text, dir); err == nil {
			err = writeConfig(d, text)
		}
		if err != nil {
			return env.Fail("sensors trust", fmt.Errorf("%s: %w", d.Settings(), err))
		}
		fmt.Fprintf(env.Stdout, "listed in %s: %s\n", visible.Line(d.Settings()), visible.Line(dir))
	}
	return noteTrust(env, d, dir)
}

// noteTrust remembers what a trusted project's files are, and shows them.
func noteTrust(env cli.Env, d dirs.Dirs, dir string) int {
	_, res, err := load(env, dir)
	if err != nil {
		return env.Fail("sensors trust", err)
	}
	if !res.Trusted {
		for _, p := range problem.Errors(res.Problems) {
			fmt.Fprintln(env.Stderr, env.Line(env.Stderr, p))
		}
		fmt.Fprintln(env.Stdout, "it has no sensor files that can be read")
	}
	if err := (trust.Notes{State: d.State}).Save(dir, res.Set.Read, time.Now()); err != nil {
		return env.Fail("sensors trust", err)
	}
	printLoud(env, res.Problems)
	for _, s := range res.Set.Sensors {
		for _, r := range s.Rules {
			if _, theirs := res.Set.Read[r.File]; theirs {
				fmt.Fprintf(env.Stdout, "%s/%s is %s; sends to %s\n", visible.Line(s.Name), visible.Line(r.Name), stateOf(s, r), visible.Line(r.Destination()))
			}
		}
	}
	fmt.Fprintf(env.Stdout, "sensor files noted as they are: %d\n", len(res.Set.Read))
	return cli.OK
}

func distrust(env cli.Env, d dirs.Dirs, text []byte, dir string, listed bool) int {
	if !listed {
		return env.Fail("sensors trust", fmt.Errorf("%s does not list %s", visible.Line(d.Settings()), visible.Line(dir)))
	}
	text, err := settings.Distrust(text, dir, d.Home)
	if err == nil {
		err = writeConfig(d, text)
	}
	if err == nil {
		err = (trust.Notes{State: d.State}).Forget(dir)
	}
	if err != nil {
		return env.Fail("sensors trust", fmt.Errorf("%s: %w", d.Settings(), err))
	}
	fmt.Fprintf(env.Stdout, "taken off the list in %s: %s\n", visible.Line(d.Settings()), visible.Line(dir))
	return cli.OK
}

// configText reads config.yaml; one that is absent is empty.
func configText(path string) ([]byte, error) {
	f, err := files.NewReader().Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f.Data, err
}

func writeConfig(d dirs.Dirs, text []byte) error {
	if _, err := os.Stat(d.Settings()); !errors.Is(err, fs.ErrNotExist) {
		return files.Replace(d.Settings(), text)
	}
	return createSensor(d, d.Settings(), text)
}
