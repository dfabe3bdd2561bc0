package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ways/config/files"
	"ways/config/problem"
)

func TestParse(t *testing.T) {
	for _, row := range []struct {
		name, text string
		projects   []string
		sync       string
	}{
		{"empty", "", nil, "never"},
		{"comment", "# nothing\n", nil, "never"},
		{"others' keys", "matching: {floor: 0.3}\nattend: {x: &y 1, z: *y}\ntheme: dark\n", nil, "never"},
		{"ways without value", "ways:\n", nil, "never"},
		{"projects", "ways:\n  project_sensors:\n    - ~/src/app\n    - /srv/tool\n", []string{"~/src/app", "/srv/tool"}, "never"},
		{"flow", "ways: {project_sensors: [/a, \"/b c\", \"~\"]}\n", []string{"/a", "/b c", "~"}, "never"},
		{"none", "ways: {project_sensors: []}\n", nil, "never"},
		{"sync", "spool: {sync: always}\nways: {project_sensors: [/a]}\n", []string{"/a"}, "always"},
		{"BOM and CRLF", "\xef\xbb\xbfways:\r\n  project_sensors: [/a]\r\n", []string{"/a"}, "never"},
	} {
		s, problems := Parse("c", "/home/me", []byte(row.text))
		if len(problems) != 0 || !slices.Equal(s.ProjectSensors, row.projects) || s.SpoolSync != row.sync {
			t.Errorf("%s: %+v, %v", row.name, s, problems)
		}
	}
}

// A mistake anywhere in the file trusts nobody.
func TestParseMistakes(t *testing.T) {
	const good = "ways: {project_sensors: [/good]}\n"
	for _, row := range []struct {
		name, text    string
		line, col     int
		key           string
		message, hint string
	}{
		{"no YAML", good + "x: [\n", 2, 1, "", "is not YAML", ""},
		{"tab", "ways:\n\tproject_sensors: [/a]\n", 2, 1, "", "a tab in front of the line", ""},
		{"list", "- ways\n", 1, 1, "", "is no group of settings", ""},
		{"not UTF-8", good + "x: \xff\n", 2, 4, "", "which is not UTF-8", ""},
		{"two documents", good + "---\n" + good, 2, 1, "", "a second document", ""},
		{"ways twice", good + good, 2, 1, "ways", "a second time; the first is on line 1", ""},
		{"ways as text", "ways: yes\n", 1, 7, "ways", "must be a group of keys", "project_sensors"},
		{"misspelt", "ways: {project_sensor: [/a]}\n", 1, 8, "ways.project_sensor", `"project_sensor" is no key of ways`, `did you mean "project_sensors"?`},
		{"not a list", "ways: {project_sensors: /a}\n", 1, 25, "ways.project_sensors", "must be a list of directories", "such as [~/src/app"},
		{"relative", "ways: {project_sensors: [/ok, src/app]}\n", 1, 31, "ways.project_sensors", `"src/app" is no absolute path`, "begin it with / or ~/"},
		{"another's home", "ways: {project_sensors: [~bob/x]}\n", 1, 26, "ways.project_sensors", "is no absolute path", ""},
		{"wildcard", "ways: {project_sensors: [\"/src/*\"]}\n", 1, 26, "ways.project_sensors", "wildcards are not available here", "list each project"},
		{"no value", "ways:\n  project_sensors:\n    -\n", 3, 6, "ways.project_sensors", "has no value", ""},
		{"a truth value", "ways: {project_sensors: [true]}\n", 1, 26, "ways.project_sensors", "truth value", ""},
		{"NUL", "ways: {project_sensors: [\"/a\\0\"]}\n", 1, 26, "ways.project_sensors", "holds a NUL", ""},
		{"alias", "x: &x [/a]\nways: {project_sensors: *x}\n", 2, 25, "ways.project_sensors", "the alias *x", ""},
		{"merge key", "x: &x {project_sensors: [/a]}\nways: {<<: *x}\n", 2, 8, "ways.<<", "the merge key", ""},
		{"sync misspelt", good + "spool: {sync: allways}\n", 2, 15, "spool.sync", `must be never or always, not "allways"`, `did you mean "always"?`},
		{"sync list", good + "spool: {sync: [always]}\n", 2, 15, "spool.sync", "is a list where one value is wanted", ""},
		{"sync key misspelt", good + "spool: {snyc: always}\n", 2, 9, "spool.snyc", `"snyc" is no key of spool`, `did you mean "sync"?`},
	} {
		s, problems := Parse("config.yaml", "/home/me", []byte(row.text))
		if len(problems) != 1 {
			t.Errorf("%s: %v", row.name, problems)
			continue
		}
		p := problems[0]
		if p.File != "config.yaml" || p.Severity != problem.Error || p.Line != row.line || p.Col != row.col || p.Key != row.key ||
			!strings.Contains(p.Message, row.message) || !strings.Contains(p.Message+p.Suggestion, row.hint) {
			t.Errorf("%s: %s", row.name, p)
		}
		if s.ProjectSensors != nil || s.SpoolSync != "never" {
			t.Errorf("%s: a broken file trusts %v", row.name, s.ProjectSensors)
		}
	}
}

// What has no effect, or is not ours to judge: said, and nothing is lost.
func TestParseWarnings(t *testing.T) {
	const good = "ways: {project_sensors: [/good]}\n"
	for _, row := range []struct{ text, message, hint string }{
		{good + "ways.project_sensors: [/a]\n", `"ways.project_sensors" is written with a dot`, "write ways: on one line"},
		{good + "spool.sync: always\n", `"spool.sync" is written with a dot`, ""},
		{good + "way: {project_sensors: [/a]}\n", `"way" is not read`, `did you mean "ways"?`},
		{good + "Spool: {sync: always}\n", `"Spool" is not read`, `did you mean "spool"?`},
		{good + "project_sensors: [/a]\n", `"project_sensors" is not read here`, "it belongs in ways"},
		{"ways: {project_sensors: [/good], language: en}\n", `"language" is no key of ways that sensors know`, "project_sensors"},
	} {
		s, problems := Parse("c", "/h", []byte(row.text))
		if len(problems) != 1 || problems[0].Severity != problem.Warning || !strings.Contains(problems[0].Message, row.message) ||
			!strings.Contains(problems[0].Suggestion, row.hint) {
			t.Errorf("%s: %v", row.text, problems)
		}
		if !slices.Equal(s.ProjectSensors, []string{"/good"}) || s.SpoolSync != "never" {
			t.Errorf("%s: %+v", row.text, s)
		}
	}
}

func TestNoHome(t *testing.T) {
	s, problems := Parse("c", "", []byte("ways: {project_sensors: [~/a]}\n"))
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "no home directory") || s.ProjectSensors != nil {
		t.Errorf("%+v, %v", s, problems)
	}
}

func TestTrusted(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"app", "app/sub", "app2", "other"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "app", "far": "link", "dangling": "nowhere", "circle": "circle"} {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		listed, project string
		want            bool
	}{
		{"~/app", "app", true},
		{"~/app/", "app", true},
		{"~/app/../app", "app", true},
		{home + "/app", "app", true},
		{"~/app", "link", true}, // the project is reached through a link
		{"~/app", "far", true},
		{"~/link", "app", true}, // the list names a link
		{"~/far", "link", true},
		{"~/app", "app/sub", false},
		{"~/app/sub", "app", false},
		{"~/app", "app2", false},
		{"~/app2", "app", false},
		{"~/app", "app/../other", false},
		{"~/app", "other/../app", true},
		{"~", "", true},
		{"~", "app", false},
		{"/", "app", false},
		{"~/dangling", "app", false},
		{"~/circle", "app", false},
		{"~/nowhere", "app", false},
	} {
		s, problems := Parse("c", home, []byte("ways: {project_sensors: [\""+row.listed+"\"]}\n"))
		if len(problems) != 0 {
			t.Fatalf("%s: %v", row.listed, problems)
		}
		got, err := s.Trusted(home + "/" + row.project)
		if err != nil || got != row.want {
			t.Errorf("%s lists %s: %v, %v", row.listed, row.project, got, err)
		}
	}
	s, _ := Parse("c", home, []byte("ways: {project_sensors: [~/app, ~/dangling]}\n"))
	for _, project := range []string{"app", "./app", home + "/dangling", home + "/nowhere", home + "/circle"} {
		if got, err := s.Trusted(project); got || err == nil {
			t.Errorf("%s: %v, %v", project, got, err)
		}
	}
	if got, err := s.Trusted(""); got || err != nil {
		t.Errorf("no project: %v, %v", got, err)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	reader := files.NewReader()
	s, problems, input := Load(reader, path, "/h")
	if len(problems) != 0 || s.SpoolSync != "never" || input.Path != path || input.Info != nil || input.Kind != files.Regular {
		t.Errorf("absent: %+v, %v, %+v", s, problems, input)
	}
	if err := os.WriteFile(path, []byte("ways: {project_sensors: [/a]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, problems, input = Load(reader, path, "/h")
	if len(problems) != 0 || !slices.Equal(s.Listed(), []string{"/a"}) || input.Info == nil {
		t.Errorf("present: %+v, %v, %+v", s, problems, input)
	}
	// Whoever can write the file could trust a project with it.
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	s, problems, input = Load(reader, path, "/h")
	if len(problems) != 1 || problems[0].Severity != problem.Error || !strings.Contains(problems[0].Message, "may be written by everybody") ||
		s.ProjectSensors != nil || input.Info == nil {
		t.Errorf("open: %+v, %v", s, problems)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"redaction: {rules: [{name: a, regex: b, keywords: [bb], min_entropy: 1}], allow: [a, {regex: b}]}\n", "", "ways: {project_sensors: [~/a]}\n", "spool: {sync: always}\n", "ways:\n", "ways: [\n", "ways: &a {x: *a}\n", "ways.project_sensors: [/a]\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, problems := Parse("c", "/home/me", text)
		if len(problem.Errors(problems)) > 0 && len(s.ProjectSensors) > 0 {
			t.Fatalf("a broken file trusts %v", s.ProjectSensors)
		}
		if s.SpoolSync != "never" && s.SpoolSync != "always" {
			t.Fatalf("sync %q", s.SpoolSync)
		}
		for _, dir := range s.Listed() {
			if !filepath.IsAbs(dir) {
				t.Fatalf("%q is trusted, and relative", dir)
			}
		}
	})
}

func TestLogLevel(t *testing.T) {
	for text, want := range map[string]string{"": "info", "log: {level: debug}\n": "debug", "log: {level: loud}\n": "info", "log:\n": "info"} {
		s, problems := Parse("/c/config.yaml", "/home/u", []byte(text))
		if s.LogLevel != want || (len(problems) > 0) != strings.Contains(text, "loud") {
			t.Errorf("%q: %q, %v", text, s.LogLevel, problems)
		}
	}
}
