// Package unified shows how two texts differ, in the unified format that patch
// and git apply read.
package unified

import (
	"fmt"
	"slices"
	"strings"
)

// context is how many unchanged lines stand around a change.
const context = 3

// line is one line of the comparison; kind is ' ', '-' or '+'.
type line struct {
	kind byte
	text string // with its line end, which the last line may lack
}

// Diff is the difference from before to after, headed by the two names; empty
// when the texts are equal. Its cost grows with the size of the texts times the
// number of changed lines.
func Diff(beforeName, afterName string, before, after []byte) string {
	if string(before) == string(after) {
		return ""
	}
	lines := compare(split(before), split(after))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", beforeName, afterName)
	oldLine, newLine := 1, 1 // of lines[at]
	for at := 0; at < len(lines); {
		change := nextChange(lines, at)
		if change == len(lines) {
			break
		}
		start := max(at, change-context)
		oldLine += start - at
		newLine += start - at
		end := hunkEnd(lines, change)
		oldCount, newCount := 0, 0
		for _, l := range lines[start:end] {
			if l.kind != '+' {
				oldCount++
			}
			if l.kind != '-' {
				newCount++
			}
		}
		fmt.Fprintf(&b, "@@ -%s +%s @@\n", position(oldLine, oldCount), position(newLine, newCount))
		for _, l := range lines[start:end] {
			b.WriteByte(l.kind)
			b.WriteString(l.text)
			if !strings.HasSuffix(l.text, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
		oldLine += oldCount
		newLine += newCount
		at = end
	}
	return b.String()
}

// position is a hunk's place: an empty stretch is named by the line before it.
func position(first, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", first-1)
	case 1:
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, count)
}

func nextChange(lines []line, from int) int {
	for from < len(lines) && lines[from].kind == ' ' {
		from++
	}
	return from
}

// hunkEnd joins changes whose context would touch.
func hunkEnd(lines []line, change int) int {
	for {
		end := change
		for end < len(lines) && lines[end].kind != ' ' {
			end++
		}
		next := nextChange(lines, end)
		if next == len(lines) || next-end > 2*context {
			return min(end+context, len(lines))
		}
		change = next
	}
}

func split(text []byte) []string {
	lines := strings.SplitAfter(string(text), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// compare finds a shortest edit by Myers' greedy algorithm ("An O(ND)
// Difference Algorithm and Its Variations", 1986) between the common head and
// the common tail.
func compare(a, b []string) []line {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []line
	for _, t := range a[:head] {
		out = append(out, line{' ', t})
	}
	out = append(out, shortest(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, t := range a[len(a)-tail:] {
		out = append(out, line{' ', t})
	}
	return out
}

func shortest(a, b []string) []line {
	n, m := len(a), len(b)
	// reach[d][k+d] is the furthest x on diagonal k = x-y after d edits.
	var reach [][]int
	for d := 0; ; d++ {
		now := make([]int, 2*d+1)
		done := false
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x = from(reach[d-1], d, k)
			}
			for x < n && x-k < m && x-k >= 0 && a[x] == b[x-k] {
				x++
			}
			now[k+d] = x
			done = done || (x >= n && x-k >= m)
		}
		reach = append(reach, now)
		if done {
			break
		}
	}
	var back []line
	x, y := n, m
	for d := len(reach) - 1; d >= 0; d-- {
		k := x - y
		start := 0
		if d > 0 {
			start = from(reach[d-1], d, k)
		}
		for x > start {
			x, y = x-1, y-1
			back = append(back, line{' ', a[x]})
		}
		if d == 0 {
			break
		}
		if down(reach[d-1], d, k) {
			y--
			back = append(back, line{'+', b[y]})
		} else {
			x--
			back = append(back, line{'-', a[x]})
		}
	}
	slices.Reverse(back)
	return back
}

// down reports whether the way to diagonal k with d edits ends in an insertion;
// last is the row of d-1 edits.
func down(last []int, d, k int) bool {
	return k == -d || (k != d && last[k-1+d-1] < last[k+1+d-1])
}

// from is where the way to diagonal k begins after its last edit.
func from(last []int, d, k int) int {
	if down(last, d, k) {
		return last[k+1+d-1]
	}
	return last[k-1+d-1] + 1
}
