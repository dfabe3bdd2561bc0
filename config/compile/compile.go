// Package compile turns the user's settings and every sensor file that applies
// to one project into the plan that the hook and the dispatcher work by. It reads
// and writes nothing but what it lists as its inputs, which it reads.
package compile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ways/config/files"
	"ways/config/plan"
	"ways/config/problem"
	"ways/config/sensors"
	"ways/config/settings"
	"ways/config/trust"
)

// ErrConfigDir is returned when no place for the user's files is known.
var ErrConfigDir = errors.New("the configuration directory must be an absolute path")

// Input is a path that the result depends on.
type Input = files.Input

// Problem is a finding about a file.
type Problem = problem.Problem

// Env is where a user's configuration is.
type Env struct {
	// ConfigDir is the absolute directory of config.yaml and sensors/.
	ConfigDir string
	// Home is what ~/ stands for in config.yaml; empty when there is none.
	Home string
	// State is where it is noted what a trusted project's files were; empty for
	// nowhere: no change of them is reported then.
	State string
	// Reader reads the files; the zero value reads as root.
	Reader files.Reader
}

// SettingsFile is the user's config.yaml.
func (e Env) SettingsFile() string { return filepath.Join(e.ConfigDir, "config.yaml") }

// UserSensors is the directory of the user's sensor files.
func (e Env) UserSensors() string { return filepath.Join(e.ConfigDir, "sensors") }

// ProjectSensors is the directory of a project's sensor files.
func ProjectSensors(project string) string {
	return filepath.Join(project, ".claude", "ways-sensors")
}

// Result is what one compilation found.
type Result struct {
	// Plan has the rules that run, in order of id.
	Plan plan.Plan
	// Problems is everything found, in order of file and place.
	Problems []Problem
	// Inputs is every path the plan depends on, without repetition, absent ones
	// included: a change of any may change the plan.
	Inputs []Input
	// Set is every sensor, those that do not run included.
	Set *sensors.Set
	// Settings is the user's.
	Settings settings.Settings
	// Trusted says whether the project's own sensor files were read; Unlisted that
	// there are some, and that the settings, which are sound, do not list it.
	Trusted, Unlisted bool
}

// Compile reads everything that applies to a project, the root directory as the
// client names it; empty or relative for none. Mistakes in files are problems in
// the result; the error, ErrConfigDir, is about env alone.
func Compile(env Env, project string) (Result, error) {
	if !filepath.IsAbs(env.ConfigDir) {
		return Result{}, fmt.Errorf("%q: %w", env.ConfigDir, ErrConfigDir)
	}
	r := Result{Plan: plan.Plan{Project: project}}
	var input Input
	r.Settings, r.Problems, input = settings.Load(env.Reader, env.SettingsFile(), env.Home)
	r.Inputs = append(r.Inputs, input)

	dirs := sensors.Dirs{User: env.UserSensors()}
	// Who can write to the directory can put other files in place of the user's.
	here := stat(env.ConfigDir, files.Directory)
	r.Inputs = append(r.Inputs, here)
	if err := env.Reader.SafeDir(env.ConfigDir); here.Info != nil && err != nil {
		dirs.User = ""
		r.Settings, _ = settings.Parse(env.SettingsFile(), env.Home, nil)
		r.Problems = append(r.Problems, Problem{
			File: env.ConfigDir, Severity: problem.Error, Message: files.About(env.ConfigDir, err),
			Suggestion: "until then neither config.yaml nor your sensor files are used",
		})
	}
	if filepath.IsAbs(project) {
		dirs.Project = ProjectSensors(project)
		r.Inputs = append(r.Inputs,
			stat(project, files.Root),
			stat(filepath.Dir(dirs.Project), files.Directory))
		// Only a project that has sensor files asks whom the user trusts, so
		// that a listed directory on a dead disk holds up no other project.
		if here := stat(dirs.Project, files.Directory); here.Info != nil {
			trusted, err := r.Settings.Trusted(project)
			if err != nil {
				r.Problems = append(r.Problems, Problem{
					File: dirs.Project, Message: err.Error(), Suggestion: "its sensor files are not read", Severity: problem.Error,
				})
			}
			if err := safeAbove(env.Reader, project); trusted && err != nil {
				trusted = false
				r.Problems = append(r.Problems, Problem{
					File: dirs.Project, Severity: problem.Error, Message: "is not read: " + err.Error(),
				})
			}
			r.Trusted, dirs.Trusted = trusted, trusted
			r.Unlisted = !trusted && err == nil && len(problem.Errors(r.Problems)) == 0
			for _, dir := range r.Settings.Listed() {
				r.Inputs = append(r.Inputs, stat(dir, files.Root))
			}
		}
	}
	r.Set = sensors.Load(env.Reader, dirs)
	r.Inputs = unique(append(r.Inputs, r.Set.Inputs...))
	r.Problems = append(r.Problems, r.Set.Problems...)
	if r.Trusted {
		r.Problems = append(r.Problems, trust.Notes{State: env.State}.Changes(project, r.Set.Read)...)
	}
	for _, file := range r.Set.Untrusted {
		if !r.Unlisted {
			continue // the reason is said already
		}
		r.Problems = append(r.Problems, Problem{
			File: file, Severity: problem.Warning,
			Message: fmt.Sprintf("is not read: the project %s is not trusted", project),
			Suggestion: fmt.Sprintf("if you trust every sensor file in it, run: %s; or list it in %s, as ways: {project_sensors: [%q]}",
				trust.Command(project), env.SettingsFile(), project),
		})
	}
	r.Problems = append(r.Problems, refuseTogether(r.Set, env.Home)...)
	r.Plan.Masking = r.Settings.Masking
	for _, rule := range r.Set.Active() {
		r.Plan.Rules = append(r.Plan.Rules, rule.Rule)
	}
	problem.Sort(r.Problems)
	return r, nil
}

// safeAbove checks the directories above a project's sensor files: who can write
// to one of them can put another directory in their place.
func safeAbove(reader files.Reader, project string) error {
	for _, dir := range []string{project, filepath.Join(project, ".claude")} {
		if err := reader.SafeDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// stat notes a path's state; its Info is nil when it is absent.
func stat(path string, kind files.Kind) Input {
	info, err := os.Stat(path)
	if err != nil {
		return Input{Path: path, Kind: kind}
	}
	return Input{Path: path, Kind: kind, Info: info}
}

// unique drops repeated inputs. A path that is asked about twice in two ways
// stays twice.
func unique(inputs []Input) []Input {
	type key struct {
		path string
		kind files.Kind
	}
	seen := map[key]bool{}
	var kept []Input
	for _, in := range inputs {
		if k := (key{in.Path, in.Kind}); !seen[k] {
			seen[k] = true
			kept = append(kept, in)
		}
	}
	return kept
}
