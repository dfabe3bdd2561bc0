package sensors

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ways/config/files"
	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
	"ways/config/trust"
)

//go:embed shipped/*.yaml
var shippedFiles embed.FS

// Suffix is what a sensor file's name ends in.
const Suffix = ".yaml"

// maxSensors is the number of sensor files of one layer: the hook stats each.
const maxSensors = 256

// Source directories of Load.
type Dirs struct {
	// User is the directory of the user's sensor files; empty for none.
	User string
	// Project is the directory of the project's; empty for none.
	Project string
	// Trusted says that the project's files may be read. Otherwise they are
	// only named, in Set.Untrusted.
	Trusted bool
}

// Load reads every layer. It never fails: what could not be read is among the
// set's problems, and costs only the sensor it is about.
func Load(reader files.Reader, dirs Dirs) *Set {
	l := &loader{reader: reader, table: schema.NewTable(schema.Sensor()), set: &Set{Read: trust.Files{}}, docs: map[string][]*document{}}
	for _, name := range Shipped() {
		text, err := ShippedText(name)
		if err == nil {
			l.add(parse(l.table, Source{Layer: plan.Shipped}, name, text))
		}
	}
	if dirs.User != "" {
		l.dir(plan.User, dirs.User)
	}
	if dirs.Project != "" && dirs.Trusted {
		l.dir(plan.Project, dirs.Project)
	} else if dirs.Project != "" {
		l.untrusted(dirs.Project)
	}
	for name, docs := range l.docs {
		s, problems := merge(l.table, name, docs)
		l.set.Sensors = append(l.set.Sensors, s)
		l.set.Problems = append(l.set.Problems, problems...)
	}
	slices.SortFunc(l.set.Sensors, func(a, b Sensor) int { return strings.Compare(a.Name, b.Name) })
	problem.Mask(l.set.Problems)
	for i := range l.set.Sensors {
		for j := range l.set.Sensors[i].Rules {
			problem.Mask(l.set.Sensors[i].Rules[j].Problems)
		}
	}
	problem.Sort(l.set.Problems)
	return l.set
}

// Check parses one sensor file's text by itself, as if it were the only layer,
// and returns what is wrong with it: for an editor, or before a file is written.
func Check(name string, text []byte) []Problem {
	table := schema.NewTable(schema.Sensor())
	_, problems := merge(table, name, []*document{parse(table, Source{Layer: plan.User, File: name + Suffix}, name, text)})
	problem.Mask(problems)
	problem.Sort(problems)
	return problems
}

// Shipped lists the names of the sensors in the binary, sorted.
func Shipped() []string {
	entries, err := shippedFiles.ReadDir("shipped")
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), Suffix))
	}
	return names
}

// ShippedText returns a shipped sensor's file. The error wraps fs.ErrNotExist
// when there is none of that name.
func ShippedText(name string) ([]byte, error) {
	if !schema.IsName(name) {
		return nil, fmt.Errorf("no shipped sensor is named %q: %w", name, fs.ErrNotExist)
	}
	return shippedFiles.ReadFile("shipped/" + name + Suffix)
}

type loader struct {
	reader files.Reader
	table  *schema.Table
	set    *Set
	docs   map[string][]*document
}

func (l *loader) add(d *document) { l.docs[d.name] = append(l.docs[d.name], d) }

func (l *loader) problem(severity problem.Severity, file, sensor, message, hint string) {
	l.set.Problems = append(l.set.Problems, Problem{File: file, Sensor: sensor, Message: message, Suggestion: hint, Severity: severity})
}

// dir reads the sensor files of one directory.
func (l *loader) dir(layer plan.Layer, path string) {
	dir, err := l.reader.List(path)
	l.set.Inputs = append(l.set.Inputs, files.Input{Path: path, Kind: files.Directory, Info: dir.Info})
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.problem(problem.Error, path, "", files.About(path, err), "")
		}
		return
	}
	count := 0
	for _, file := range dir.Names {
		name, ok := l.sensorName(path, file)
		if !ok {
			continue
		}
		full := filepath.Join(path, file)
		if count++; count > maxSensors {
			l.problem(problem.Error, full, "", fmt.Sprintf("more than %d sensor files in one directory; this one and those after it are not read", maxSensors), "put rules that belong together into one file")
			return
		}
		l.file(layer, full, name)
	}
}

// sensorName says what sensor a directory's entry is; not ok for one that is
// none.
func (l *loader) sensorName(dir, file string) (string, bool) {
	full := filepath.Join(dir, file)
	if strings.HasPrefix(file, ".") {
		return "", false // an editor's
	}
	name, ok := strings.CutSuffix(file, Suffix)
	if !ok {
		if base, yml := strings.CutSuffix(file, ".yml"); yml {
			l.problem(problem.Warning, full, "", "is not read: a sensor file's name ends in .yaml", fmt.Sprintf("rename it to %s.yaml", base))
		}
		return "", false
	}
	if !schema.IsName(name) {
		l.problem(problem.Error, full, "", fmt.Sprintf("%q is no name for a sensor", name),
			"rename the file: 1 to 64 characters of a-z, 0-9 and -, and then .yaml")
		return "", false
	}
	return name, true
}

func (l *loader) file(layer plan.Layer, path, name string) {
	file, err := l.reader.Read(path)
	l.set.Inputs = append(l.set.Inputs, files.Input{Path: path, Kind: files.Regular, Info: file.Info})
	source := Source{Layer: layer, File: path}
	if err != nil {
		// The sensor is taken out in all layers: the file was meant to change it.
		d := &document{source: source, name: name, broken: true}
		d.problems = []Problem{{File: path, Sensor: name, Message: files.About(path, err), Severity: problem.Error}}
		l.add(d)
		return
	}
	if layer == plan.Project {
		l.set.Read[path] = trust.Sum(file.Data)
	}
	l.add(parse(l.table, source, name, file.Data))
}

// untrusted names the files of a project that is not trusted, without reading
// them: they say nothing about this machine's sensors, not even that they are
// broken.
func (l *loader) untrusted(path string) {
	dir, err := l.reader.List(path)
	l.set.Inputs = append(l.set.Inputs, files.Input{Path: path, Kind: files.Directory, Info: dir.Info})
	if err != nil {
		return
	}
	for _, file := range dir.Names {
		if name, ok := strings.CutSuffix(file, Suffix); ok && schema.IsName(name) {
			l.set.Untrusted = append(l.set.Untrusted, filepath.Join(path, file))
		}
	}
}
