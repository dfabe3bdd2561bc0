package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// page is one Markdown file, by lines.
type page struct {
	path   string // from the repository's root
	lines  []string
	blocks []block
}

// block is a fenced block: lines[from:to], without the fences.
type block struct {
	lang     string
	from, to int
}

func (p page) text(b block) string { return strings.Join(p.lines[b.from:b.to], "\n") }

func (p page) file() string { return filepath.Join(root, p.path) }

// prose is the page's lines with fenced blocks emptied, so that line numbers stay.
func (p page) prose() []string {
	lines := slices.Clone(p.lines)
	for _, b := range p.blocks {
		for i := b.from; i < b.to; i++ {
			lines[i] = ""
		}
	}
	return lines
}

func readPage(t *testing.T, path string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	p := page{path: path, lines: strings.Split(string(text), "\n")}
	open := false
	for i, line := range p.lines {
		lang, fence := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case !fence:
		case open:
			p.blocks[len(p.blocks)-1].to = i
			open = false
		default:
			p.blocks = append(p.blocks, block{lang: lang, from: i + 1})
			open = true
		}
	}
	if open {
		t.Fatalf("%s: the last fenced block does not end", path)
	}
	return p
}

// pages reads every page for people.
func pages(t *testing.T) []page {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(docs) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	all := []page{readPage(t, "README.md"), readPage(t, "CHANGELOG.md")}
	for _, d := range docs {
		all = append(all, readPage(t, filepath.Join("docs", filepath.Base(d))))
	}
	return all
}

// anchors is every heading of a page as GitHub makes a fragment of it.
func (p page) anchors() map[string]bool {
	heading := regexp.MustCompile(`^#{1,6} (.*)`)
	drop := regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	all := map[string]bool{}
	for _, line := range p.prose() {
		if m := heading.FindStringSubmatch(line); m != nil {
			all[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
		}
	}
	return all
}

// section is the text under a heading of the second level.
func (p page) section(heading string) (string, bool) {
	prose := p.lines
	from := slices.Index(prose, "## "+heading)
	if from < 0 {
		return "", false
	}
	for i := from + 1; i < len(prose); i++ {
		if strings.HasPrefix(prose[i], "## ") {
			return strings.Join(prose[from+1:i], "\n"), true
		}
	}
	return strings.Join(prose[from+1:], "\n"), true
}
