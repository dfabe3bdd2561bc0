package doctest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ways/config/problem"
	"ways/config/sensors"
)

// Every relative link leads to a file, and its fragment to a heading there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	code := regexp.MustCompile("`[^`]*`")
	for _, p := range pages(t) {
		for i, line := range p.prose() {
			for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
				to, fragment, _ := strings.Cut(m[1], "#")
				if strings.Contains(m[1], "://") {
					continue
				}
				at := p.path
				if to != "" {
					at = filepath.Join(filepath.Dir(p.path), to)
				}
				if _, err := os.Stat(filepath.Join(root, at)); err != nil {
					t.Errorf("%s:%d: link to %s, which is not there", p.path, i+1, m[1])
					continue
				}
				if fragment != "" && !readPage(t, at).anchors()[fragment] {
					t.Errorf("%s:%d: link to %s, and no heading gives that fragment", p.path, i+1, m[1])
				}
			}
		}
	}
}

// The index names every page.
func TestIndexIsComplete(t *testing.T) {
	index := strings.Join(readPage(t, "docs/README.md").lines, "\n")
	for _, p := range pages(t) {
		name := filepath.Base(p.path)
		if filepath.Dir(p.path) == "docs" && name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// Absolute paths on a page are a reader's, or the system's: never those of the
// machine on which an example was made.
func TestNoForeignPaths(t *testing.T) {
	path := regexp.MustCompile("(?:^|[\\s\"'`(=:])(/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]*)")
	known := regexp.MustCompile(`^/(home/(you|dev|me)|usr/(local|bin)|etc/|dev/|var/(log|run)|proc/|nonexistent|opt/|srv/|src/|Users/you)`)
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages(t) {
		for i, line := range p.lines {
			if strings.Contains(line, here) {
				t.Errorf("%s:%d: holds the path of this checkout", p.path, i+1)
			}
			for _, m := range path.FindAllStringSubmatch(line, -1) {
				if !known.MatchString(m[1]) {
					t.Errorf("%s:%d: what path is %s?", p.path, i+1, m[1])
				}
			}
		}
	}
}

// Every task that a page names is in the Taskfile.
func TestTasks(t *testing.T) {
	taskfile, err := os.ReadFile(filepath.Join(root, "Taskfile.yml"))
	if err != nil {
		t.Fatal(err)
	}
	task := regexp.MustCompile(`go tool task ([a-z0-9:-]+)`)
	for _, p := range pages(t) {
		for i, line := range p.lines {
			for _, m := range task.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(string(taskfile), "\n  "+m[1]+":\n") {
					t.Errorf("%s:%d: there is no task %s", p.path, i+1, m[1])
				}
			}
		}
	}
}

// What the README says is not there yet, is not; what is there, it does not say.
func TestNotThereYet(t *testing.T) {
	said, ok := readPage(t, "README.md").section("Not there yet")
	if !ok {
		t.Fatal("the README does not say what is not there yet")
	}
	said = strings.Join(strings.Fields(said), " ")
	all := verbs(t, newHome(t), "ways")
	verb := func(words string) bool {
		return slices.ContainsFunc(all, func(v string) bool { return strings.HasPrefix(v, words) })
	}
	for _, c := range []struct {
		words string
		there bool
	}{
		{"no metrics endpoint", verb("ways metrics")},
		{"no verb that shows the logs", verb("ways logs")},
		{"no verbs to set them", verb("ways settings")},
		{"not renamed, deleted, tested or fired", verb("ways sensors rename") || verb("ways sensors delete") || verb("ways sensors test") || verb("ways sensors fire")},
	} {
		if strings.Contains(said, c.words) == c.there {
			t.Errorf("%q: there: %v; the README must be brought up to date", c.words, c.there)
		}
	}
}

// Every JSON block parses, and one that is a record validates.
func TestJSONBlocks(t *testing.T) {
	schema := recordSchema(t)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.lang != "json" {
				continue
			}
			var v any
			if err := json.Unmarshal([]byte(p.text(b)), &v); err != nil {
				t.Errorf("%s:%d: %v", p.path, b.from+1, err)
				continue
			}
			if o, ok := v.(map[string]any); ok && o["section"] != nil {
				if err := schema.Validate(v); err != nil {
					t.Errorf("%s:%d: %v", p.path, b.from+1, err)
				}
			}
		}
	}
}

// Every whole sensor file on a page is one that `ways sensors lint` accepts. One
// without sections changes another and means nothing alone.
func TestSensorFiles(t *testing.T) {
	name := regexp.MustCompile(`(?m)^name: (\S+)$`)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			m := name.FindStringSubmatch(p.text(b))
			if b.lang != "yaml" || m == nil || !strings.Contains(p.text(b), "sections:") {
				continue
			}
			for _, bad := range problem.Errors(sensors.Check(m[1], []byte(p.text(b)+"\n"))) {
				t.Errorf("%s:%d: %s", p.path, b.from+1, bad)
			}
		}
	}
}
