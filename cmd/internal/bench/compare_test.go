package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPerOperation(t *testing.T) {
	const out = `goos: linux
BenchmarkAppend/600B-2         	    2000	     36516 ns/op	  16.43 MB/s	    8795 B/op	      18 allocs/op
BenchmarkAppend/600Bytes-2     	    2000	     1 ns/op
BenchmarkSeal/output_1_KB      	    1000	      7.5 ns/op
BenchmarkTorn-2                	    1000
BenchmarkDispatch/file/1rule/300B-16  4000	    42000 ns/op	  23000 records/s
PASS
`
	for _, row := range []struct {
		name string
		want time.Duration
		ok   bool
	}{
		{"BenchmarkAppend/600B", 36516, true},
		{"BenchmarkAppend/600", 0, false},
		{"BenchmarkAppend", 0, false},
		{"BenchmarkSeal/output_1_KB", 7, true},
		{"BenchmarkTorn", 0, false},
		{"BenchmarkDispatch/file/1rule/300B", 42000, true},
		{"BenchmarkAbsent", 0, false},
	} {
		if got, ok := perOperation(out, row.name); got != row.want || ok != row.ok {
			t.Errorf("%s: %d, %v; want %d, %v", row.name, got, ok, row.want, row.ok)
		}
	}
}

func TestAnchored(t *testing.T) {
	if got, want := anchored("BenchmarkA/b_1"), "^BenchmarkA$/^b_1$"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRatioTable(t *testing.T) {
	got := ratioTable("0123456789ab", []ratioRow{
		{"bare", [2][]time.Duration{nil, ms(1)}},
		{"hook", [2][]time.Duration{ms(2, 1, 4), ms(3, 1, 9)}},
	})
	want := "| | 0123456789ab, ms | new, ms | new to base |\n| --- | ---: | ---: | ---: |\n" +
		"| bare |  | 1.000 |  |\n| hook | 2.000 | 3.000 | 1.50 |\n"
	if got != want {
		t.Errorf("table:\n%swant\n%s", got, want)
	}
}

// repository is a git repository with n commits on main; it returns its directory
// and the commits, oldest first.
func repository(t *testing.T, n int) (dir string, commits []string) {
	t.Helper()
	for name, value := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": os.TempDir(),
		"GIT_AUTHOR_NAME": "dev", "GIT_AUTHOR_EMAIL": "dev@example.com", "GIT_COMMITTER_NAME": "dev", "GIT_COMMITTER_EMAIL": "dev@example.com",
	} {
		t.Setenv(name, value)
	}
	dir = t.TempDir()
	gitIn(t, dir, "init", "--quiet", "--initial-branch=main")
	for range n {
		gitIn(t, dir, "commit", "--quiet", "--allow-empty", "--message=one more")
		commits = append(commits, gitIn(t, dir, "rev-parse", "HEAD"))
	}
	return dir, commits
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t.Context(), dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFindBase(t *testing.T) {
	dir, commits := repository(t, 3)
	check := func(when, dir, ref, want, why string) {
		t.Helper()
		got, reason, err := findBase(t.Context(), dir, ref)
		if err != nil || got != want || !strings.Contains(reason, why) || (why == "") != (reason == "") {
			t.Errorf("%s: %q, %q, %v; want %q, %q", when, got, reason, err, want, why)
		}
	}
	check("on main", dir, "", commits[1], "")
	check("asked for", dir, "HEAD~2", commits[0], "")
	gitIn(t, dir, "checkout", "--quiet", "-b", "topic", commits[1])
	gitIn(t, dir, "commit", "--quiet", "--allow-empty", "--message=of the topic")
	check("on a branch", dir, "", commits[1], "")

	shallow := filepath.Join(t.TempDir(), "shallow")
	gitIn(t, dir, "clone", "--quiet", "--depth=1", "--branch=main", "file://"+dir, shallow)
	check("in a shallow clone of main", shallow, "", "", "shallow clone")
	detached := filepath.Join(t.TempDir(), "detached")
	gitIn(t, dir, "clone", "--quiet", "--depth=1", "--branch=topic", "file://"+dir, detached)
	check("in a shallow clone of a branch", detached, "", "", "main branch is not here")
	check("outside of git", t.TempDir(), "", "", "no git history")

	if _, _, err := findBase(t.Context(), dir, "nowhere"); err == nil || !strings.Contains(err.Error(), "--base nowhere") {
		t.Errorf("a base that is not there: %v", err)
	}
}

// TestOutput: what a program said is in the error.
func TestOutput(t *testing.T) {
	out, err := output(t.Context(), t.TempDir(), "/bin/sh", "-c", "echo said; echo failed >&2; exit 4")
	if out != "" || err == nil || !strings.Contains(err.Error(), "exit status 4\nfailed\nsaid") {
		t.Errorf("%q, %v", out, err)
	}
}
