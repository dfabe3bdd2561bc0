package doctest

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// theHook is the verb that has no help: whatever it is given, it reads stdin.
const theHook = "ways hook sensors"

// docs/cli.md has a section for every verb and no other, and in it every flag of
// the verb's help and no other.
func TestCommandReference(t *testing.T) {
	p := readPage(t, "docs/cli.md")
	h := newHome(t)
	// The help does not list what hooks alone run.
	want := append(verbs(t, h, "ways"), theHook, "ways sensors compile", "ways metrics serve")
	var have []string
	for _, line := range p.prose() {
		if verb, ok := strings.CutPrefix(line, "## ways"); ok {
			have = append(have, "ways"+verb)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	if !slices.Equal(want, have) {
		t.Fatalf("the sections are\n%q, the verbs\n%q", have, want)
	}
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	for _, verb := range want {
		text, _ := p.section(verb)
		if !strings.Contains(text, "Exit code") {
			t.Errorf("%s: the section says nothing of exit codes", verb)
		}
		if verb == theHook {
			continue
		}
		shown := map[string]bool{}
		for _, line := range strings.Split(text, "\n") {
			if name, ok := strings.CutPrefix(line, "| `--"); ok {
				shown["--"+regexp.MustCompile("^[a-z-]+").FindString(name)] = true
			}
		}
		listed := map[string]bool{}
		_, list, _ := strings.Cut(help(t, h, verb), "\nFlags:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, line := range strings.Split(list, "\n") {
			if name := flag.FindString(line); name != "" {
				listed[name] = true
			}
		}
		delete(listed, "--help")
		if !maps.Equal(shown, listed) {
			t.Errorf("%s: the page has the flags %v, the help %v", verb,
				slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(listed)))
		}
	}
}

func help(t *testing.T, h home, verb string) string {
	t.Helper()
	words := strings.Fields(verb)
	cmd := exec.CommandContext(t.Context(), filepath.Join(h.bin, words[0]), append(words[1:], "--help")...)
	cmd.Env = []string{"HOME=" + h.dir}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s --help: %v", verb, err)
	}
	return string(out)
}

// verbs lists what the help of path lists, families opened.
func verbs(t *testing.T, h home, path string) []string {
	t.Helper()
	_, list, family := strings.Cut(help(t, h, path), "\nVerbs:\n")
	if !family {
		return []string{path}
	}
	list, _, _ = strings.Cut(list, "\n\n")
	var all []string
	for _, line := range strings.Split(list, "\n") {
		all = append(all, verbs(t, h, path+" "+strings.Fields(line)[0])...)
	}
	return all
}
