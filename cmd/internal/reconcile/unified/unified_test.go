package unified

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	numbers := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintln(&b, i)
		}
		return b.String()
	}
	for _, row := range []struct{ name, before, after, want string }{
		{"equal", "a\n", "a\n", ""},
		{"new file", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"deleted", "a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b\n"},
		{"one line, no newline", "{}", "{1}", "@@ -1 +1 @@\n-{}\n\\ No newline at end of file\n+{1}\n\\ No newline at end of file\n"},
		{"newline added", "a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"},
		{"in the middle", numbers(1, 9), numbers(1, 4) + "x\n" + numbers(6, 9), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		{
			"two hunks", numbers(1, 20), "x\n" + numbers(1, 9) + numbers(11, 20),
			"@@ -1,3 +1,4 @@\n+x\n 1\n 2\n 3\n@@ -7,7 +8,6 @@\n 7\n 8\n 9\n-10\n 11\n 12\n 13\n",
		},
		{
			"changes whose context touches", numbers(1, 10), numbers(2, 7) + numbers(9, 10),
			"@@ -1,10 +1,8 @@\n-1\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n 9\n 10\n",
		},
		{"CRLF", "a\r\n", "a\r\nb\r\n", "@@ -1 +1,2 @@\n a\r\n+b\r\n"},
	} {
		want := row.want
		if want != "" {
			want = "--- old\n+++ new\n" + want
		}
		if got := Diff("old", "new", []byte(row.before), []byte(row.after)); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", row.name, got, want)
		}
	}
}

// patch applies a diff, checking every line it names against the text.
func patch(before, diff string) (string, error) {
	old := split([]byte(before))
	var out []string
	at := 0
	lines := strings.SplitAfter(diff, "\n")
	for i := 2; i < len(lines) && lines[i] != ""; i++ {
		l := lines[i]
		if strings.HasPrefix(l, "@@ ") {
			var first, count int
			place := strings.Fields(l)[1]
			if n, _ := fmt.Sscanf(place, "-%d,%d", &first, &count); n == 1 {
				count = 1
			}
			if count > 0 {
				first--
			}
			out = append(out, old[at:first]...)
			at = first
			continue
		}
		text := l[1:]
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "\\") {
			text = strings.TrimSuffix(text, "\n")
			i++
		}
		if l[0] != '+' {
			if old[at] != text {
				return "", fmt.Errorf("line %d is %q, the diff says %q", at+1, old[at], text)
			}
			at++
		}
		if l[0] != '-' {
			out = append(out, text)
		}
	}
	return strings.Join(append(out, old[at:]...), ""), nil
}

func TestDiffLeadsFromBeforeToAfter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(30) {
			fmt.Fprintln(&b, random.IntN(4))
		}
		if random.IntN(3) == 0 {
			b.WriteString("end")
		}
		return b.String()
	}
	for range 3000 {
		before, after := text(), text()
		diff := Diff("a", "b", []byte(before), []byte(after))
		got, err := patch(before, diff)
		if err != nil || got != after {
			t.Fatalf("%v: %q, want %q, by\n%s", err, got, after, diff)
		}
	}
}
