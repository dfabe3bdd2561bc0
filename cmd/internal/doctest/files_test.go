package doctest

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Everything that ways makes in a home stands in a table of docs/files.md, with
// its mode. In the tables <...> stands for part of a name.
func TestFiles(t *testing.T) {
	type entry struct {
		pattern *regexp.Regexp
		mode    string
	}
	var table []entry
	row := regexp.MustCompile("^\\| `([^`]+)` \\| (\\d{4}) \\|")
	hole := regexp.MustCompile(`<[^>]*>`)
	for _, line := range readPage(t, "docs/files.md").lines {
		if m := row.FindStringSubmatch(line); m != nil {
			var parts []string
			for _, literal := range hole.Split(m[1], -1) {
				parts = append(parts, regexp.QuoteMeta(literal))
			}
			table = append(table, entry{regexp.MustCompile("^" + strings.Join(parts, "[^/]+") + "$"), m[2]})
		}
	}
	h := newHome(t)
	for _, line := range []string{
		"ways reconcile",
		"ways sensors copy everything my-log --enable",
		"ways sensors copy session-journal my-journal --enable",
		"printf 'spec: 1\\nkind: ways\\nname: now\\nrules:\\n  - {name: it, sections: [tool_call], mode: blocking, dispatch: {command: {argv: [\"true\"]}}}\\n' > ~/.config/agent-ways/sensors/now.yaml; chmod 600 ~/.config/agent-ways/sensors/now.yaml; ways sensors lint",
		"printf 'spec: 1\\nkind: ways\\nname: late\\nrules:\\n  - {name: it, sections: [tool_call], delivery: at_least_once, dispatch: {file: {path: ~/.config}}}\\n' > ~/.config/agent-ways/sensors/late.yaml; chmod 600 ~/.config/agent-ways/sensors/late.yaml",
		"for f in testdata/claude-code/2.1.197/*/[0-9]*.json; do ways hook sensors <$f; done",
		"echo '[]' | ways hook sensors",
		"ways reconcile --remove",
		"ways reconcile",
	} {
		h.run(t, line)
	}
	made := 0
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.Replace(path, h.dir, "~", 1)
		if name == "~" || strings.HasPrefix(name, "~/.local/bin") || name == "~/.local" {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() {
			name += "/"
		}
		made++
		mode := fmt.Sprintf("%04o", info.Mode().Perm())
		for _, e := range table {
			if e.pattern.MatchString(name) {
				if e.mode != mode {
					t.Errorf("%s has mode %s, docs/files.md says %s", name, mode, e.mode)
				}
				return nil
			}
		}
		t.Errorf("docs/files.md has no %s (mode %s)", name, mode)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if made < 30 {
		t.Errorf("only %d files and directories were made", made)
	}
}
