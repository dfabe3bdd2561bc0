// Package settings reads the user's config.yaml: which projects' own sensor
// files are trusted, how the spool syncs, and what is masked beyond the built-in
// rules. The file is shared with other parts
// of ways and other programs, so keys that are not in the table are let be, except
// below `ways`, `spool` and `redaction`.
package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"ways/config/files"
	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
	"ways/config/yamlfile"
)

// Settings is what config.yaml says, with the defaults for what it does not.
type Settings struct {
	// File is the path of config.yaml, whether it exists or not.
	File string
	// ProjectSensors lists the trusted projects as written; empty when the
	// file has any mistake, since nobody can say what it was meant to trust.
	ProjectSensors []string
	// SpoolSync is "never" or "always".
	SpoolSync string
	// LogLevel is the least level that is written to logs, as zerolog names it.
	LogLevel string
	// MaxAge is how old an undelivered record of an at-least-once rule may grow
	// before it goes to the dead letters.
	MaxAge time.Duration
	// Masking is what the user adds to the built-in masking rules, entries with
	// a mistake left out.
	Masking plan.Masking
	// Home is what a leading ~/ stands for; empty when there is none.
	Home string
}

// Load reads config.yaml at path. It never fails: an absent file is one
// without settings, and a broken one trusts no project and is among the problems.
// The input is the file, present or not.
func Load(reader files.Reader, path, home string) (Settings, []problem.Problem, files.Input) {
	file, err := reader.Read(path)
	input := files.Input{Path: path, Kind: files.Regular, Info: file.Info}
	if errors.Is(err, fs.ErrNotExist) {
		s, problems := Parse(path, home, nil)
		return s, problems, input
	}
	if err != nil {
		s, _ := Parse(path, home, nil)
		return s, []problem.Problem{{
			File: path, Message: files.About(path, err), Suggestion: "until then no project is trusted", Severity: problem.Error,
		}}, input
	}
	s, problems := Parse(path, home, file.Data)
	return s, problems, input
}

// Parse reads the text of a config.yaml. path is for messages.
func Parse(path, home string, data []byte) (Settings, []problem.Problem) {
	table := schema.NewTable(schema.Settings())
	r := reader{table: table, s: Settings{File: path, Home: home}}
	for _, k := range table.Keys() {
		if v, err := k.Parse(k.Default); err == nil {
			r.set(k.Name, v)
		}
	}
	root, fault := yamlfile.Parse(data)
	switch {
	case fault != nil:
		r.fault("", fault)
	case root == nil:
	case yamlfile.Plain(root) != nil:
		r.fault("", yamlfile.Plain(root))
	case root.Kind != yaml.MappingNode:
		r.fault("", yamlfile.At(root, "is no group of settings", "such as ways: {project_sensors: [~/src/app]}"))
	default:
		r.group(root, "")
	}
	if len(problem.Errors(r.problems)) > 0 {
		r.s.ProjectSensors = nil
	}
	problem.Mask(r.problems)
	return r.s, r.problems
}

type reader struct {
	table    *schema.Table
	s        Settings
	problems []problem.Problem
}

func (r *reader) fault(key string, f *yamlfile.Fault) { r.say(problem.Error, key, f) }

func (r *reader) warn(key string, f *yamlfile.Fault) { r.say(problem.Warning, key, f) }

func (r *reader) say(severity problem.Severity, key string, f *yamlfile.Fault) {
	r.problems = append(r.problems, problem.Problem{
		File: r.s.File, Line: f.Line, Col: f.Col, Key: key,
		Message: f.Message, Suggestion: f.Hint, Severity: severity,
	})
}

func (r *reader) group(n *yaml.Node, parent string) {
	for _, pair := range yamlfile.Pairs(n) {
		name := schema.Join(parent, pair.Name)
		key, known := r.table.Child(parent, pair.Name)
		switch {
		case pair.Fault != nil && (parent != "" || known):
			r.fault(name, pair.Fault)
			continue
		case pair.Fault != nil:
			continue // another program's part of the file
		case !known && parent == "":
			r.stray(pair)
			continue
		case !known:
			r.unknown(pair, name, parent)
			continue
		}
		if fault := yamlfile.Plain(pair.Value); fault != nil {
			r.fault(name, fault)
			continue
		}
		switch key.Type {
		case schema.Group:
			// `ways:` with nothing under it says nothing.
			if pair.Value.Kind == yaml.ScalarNode && pair.Value.Tag == "!!null" {
				continue
			}
			if pair.Value.Kind != yaml.MappingNode {
				r.fault(name, yamlfile.At(pair.Value, "must be a group of keys", "its keys are "+strings.Join(r.table.Children(name), ", ")))
				continue
			}
			r.group(pair.Value, name)
		case schema.Dirs:
			r.dirs(key, pair.Value)
		case schema.Masks:
			r.masks(key, pair.Value)
		case schema.Allows:
			r.allows(key, pair.Value)
		default:
			text, fault := yamlfile.Scalar(pair.Value)
			if fault == nil {
				v, err := key.Parse(text)
				if err == nil {
					r.set(name, v)
					continue
				}
				fault = yamlfile.At(pair.Value, err.Error(), "")
			}
			r.fault(name, fault)
		}
	}
}

// set takes over the value of a scalar key.
func (r *reader) set(name string, v schema.Value) {
	switch name {
	case "spool.sync":
		r.s.SpoolSync = v.Text
	case "log.level":
		r.s.LogLevel = v.Text
	case "spool.max_age":
		r.s.MaxAge = v.Duration
	}
}

// unknown tells a key that is spelt almost like one of ours, which is a
// mistake, from one of another part of ways, which is not ours to judge.
func (r *reader) unknown(pair yamlfile.Pair, name, parent string) {
	children := r.table.Children(parent)
	if near := schema.Suggest(pair.Name, children); near != "" {
		r.fault(name, yamlfile.At(pair.Key, fmt.Sprintf("%q is no key of %s", pair.Name, parent), fmt.Sprintf("did you mean %q?", near)))
		return
	}
	r.warn(name, yamlfile.At(pair.Key, fmt.Sprintf("%q is no key of %s that sensors know", pair.Name, parent), "theirs are "+strings.Join(children, ", ")))
}

// stray finds a setting of ours that is written with a dot in its name, which
// YAML reads as one long name and nobody as the setting, and a group of ours
// under another name.
func (r *reader) stray(pair yamlfile.Pair) {
	for _, k := range r.table.Keys() {
		if pair.Name == k.Name {
			parent, leaf, _ := strings.Cut(k.Name, ".")
			r.warn(k.Name, yamlfile.At(pair.Key, fmt.Sprintf("%q is written with a dot, and has no effect so", pair.Name),
				fmt.Sprintf("write %s: on one line, and %s: indented below it", parent, leaf)))
			return
		}
	}
	for _, group := range r.table.Children("") {
		if pair.Name == group+"s" || pair.Name+"s" == group || strings.EqualFold(pair.Name, group) {
			r.warn(pair.Name, yamlfile.At(pair.Key, fmt.Sprintf("%q is not read", pair.Name), fmt.Sprintf("did you mean %q?", group)))
		}
	}
	if k, ok := r.table.Key("ways." + pair.Name); ok {
		r.warn(pair.Name, yamlfile.At(pair.Key, fmt.Sprintf("%q is not read here", pair.Name), "it belongs in "+k.Parent()))
	}
}

func (r *reader) dirs(key schema.Key, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return // a list that became empty
	}
	if n.Kind != yaml.SequenceNode {
		r.fault(key.Name, yamlfile.At(n, "must be a list of directories", "such as [~/src/app, /srv/tool]"))
		return
	}
	if int64(len(n.Content)) > key.Max {
		r.fault(key.Name, yamlfile.At(n, fmt.Sprintf("lists more than %d directories", key.Max), ""))
		return
	}
	for _, item := range n.Content {
		text, fault := yamlfile.Text(item)
		if fault == nil {
			fault = r.dir(item, text)
		}
		if fault != nil {
			r.fault(key.Name, fault)
			continue
		}
		r.s.ProjectSensors = append(r.s.ProjectSensors, text)
	}
}

func (r *reader) dir(n *yaml.Node, text string) *yamlfile.Fault {
	if err := schema.CheckText(text); err != nil {
		return yamlfile.At(n, err.Error(), "")
	}
	switch {
	case len(text) > 4096:
		return yamlfile.At(n, "is longer than 4096 bytes", "")
	case text == "~" || strings.HasPrefix(text, "~/"):
		if r.s.Home == "" {
			return yamlfile.At(n, "there is no home directory that ~ could stand for", "set HOME, or write the whole path")
		}
	case !filepath.IsAbs(text):
		return yamlfile.At(n, fmt.Sprintf("%q is no absolute path", text), "begin it with / or ~/")
	}
	if strings.ContainsAny(text, "*?") {
		if _, err := filepath.EvalSymlinks(r.s.resolve(text)); err != nil {
			return yamlfile.At(n, fmt.Sprintf("%q: wildcards are not available here", text), "list each project")
		}
	}
	return nil
}

// resolve puts the home directory in the place of a leading ~.
func (s Settings) resolve(dir string) string {
	if dir == "~" {
		return filepath.Clean(s.Home)
	}
	if rest, ok := strings.CutPrefix(dir, "~/"); ok {
		return filepath.Join(s.Home, rest)
	}
	return filepath.Clean(dir)
}

// Listed returns the trusted projects as absolute paths, not resolved.
func (s Settings) Listed() []string {
	var list []string
	for _, dir := range s.ProjectSensors {
		list = append(list, s.resolve(dir))
	}
	return list
}

// Trusted reports whether the project's own sensor files may be loaded: whether
// its root, with symbolic links resolved, is one of the listed directories, with
// theirs resolved. A directory above or below a listed one is not trusted. A
// listed directory that cannot be resolved trusts nothing. The error says that the
// project itself could not be resolved; it is not trusted then.
func (s Settings) Trusted(project string) (bool, error) {
	if len(s.ProjectSensors) == 0 || project == "" {
		return false, nil
	}
	if !filepath.IsAbs(project) {
		return false, fmt.Errorf("the project %q is no absolute path", project)
	}
	root, err := filepath.EvalSymlinks(project)
	if err != nil {
		return false, fmt.Errorf("resolving the project: %w", err)
	}
	for _, dir := range s.Listed() {
		if dir == project || dir == root {
			// Written exactly so, or resolved by hand: no need to ask a disk that
			// may be slow or gone.
			if real, err := filepath.EvalSymlinks(dir); err == nil && real == root {
				return true, nil
			}
		}
	}
	for _, dir := range s.Listed() {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real == root {
			return true, nil
		}
	}
	return false, nil
}
