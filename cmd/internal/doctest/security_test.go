package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every row of docs/security.md names a test, and every test that is named is there.
func TestSecurityClaims(t *testing.T) {
	name := regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)\\w+)`")
	sources := map[string]string{}
	rows, named := 0, 0
	for i, line := range readPage(t, "docs/security.md").lines {
		found := name.FindAllStringSubmatch(line, -1)
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") && !strings.HasSuffix(line, "| tests |") {
			rows++
			if len(found) == 0 {
				t.Errorf("docs/security.md:%d: the row names no test", i+1)
			}
		}
		for _, m := range found {
			named++
			if _, read := sources[m[1]]; !read {
				sources[m[1]] = testSources(t, m[1])
			}
			if !strings.Contains(sources[m[1]], "\nfunc "+m[2]+"(") {
				t.Errorf("docs/security.md:%d: there is no %s in %s", i+1, m[2], m[1])
			}
		}
	}
	if rows < 30 || named < rows {
		t.Errorf("%d rows and %d tests were found on the page", rows, named)
	}
}

// testSources is the text of a directory's test files.
func testSources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
	}
	return b.String()
}
