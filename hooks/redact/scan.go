package redact

import (
	"bytes"
	"math"
	"sort"
)

// The limits of a scan. They bound its work whatever the text is.
const (
	// maxDepth is how many levels of escapes are undone in one string: JSON
	// in JSON in JSON.
	maxDepth = 4
	// baseWork and workPerByte make the budget of bytes that regular
	// expressions may be given in one scan.
	baseWork    = 128 << 10
	workPerByte = 3
	// windowWeight is what a byte costs in a window, in which a match may
	// begin anywhere, against one behind an anchor.
	windowWeight = 4
	// unscannedRun bounds what is masked in place of a rule that the budget
	// did not reach, in bytes.
	unscannedRun = 512
	// maxRepeats is how many different secrets of one text are looked for
	// elsewhere in it.
	maxRepeats = 64
	// maxRefused is how many names may claim overlapping long stretches of
	// text as their value, in vain, before one is masked unread.
	maxRefused = 16
	// minRepeat is the least length of a secret whose other occurrences are
	// masked as well, in bytes.
	minRepeat = 8
)

// kindUnscanned is what is masked because the scan ran out of budget.
const kindUnscanned = "unscanned"

// A span is a secret in a text.
type span struct {
	start, end int
	kind       string
	rule       string
	prio       int8
	level      int8 // the view it was found in
	bare       bool // it is a JSON number: the placeholder needs quotes
}

// Priorities: of two findings of the same text the higher names the kind.
const (
	prioGuess  int8 = iota // entropy, or the name it is assigned to
	prioPlace              // its place: a header, a URL, a cookie
	prioFormat             // its own format
)

// scan is the state of one scan. It is reused.
type scan struct {
	m     *Masker
	doc   document
	views [maxDepth]document

	text    []byte // the view under scan
	level   int    // 0: doc, else views[level-1]
	found   []span // in text
	covered int    // text before it is masked already
	nameEnd int    // the end of the identifier judged last
	curlEnd int    // the end of the command line read last
	// manifestEnd is the end of the Kubernetes Secret read last.
	manifestEnd int
	encodedEnd  int  // the end of the base64 decoded last
	inner       bool // this scan is of text that was decoded
	manifests   int8 // whether the text has a Kubernetes Secret: 0 not known, 1 no, 2 yes
	valueEnd    int  // the end of the value that was refused last,
	refused     int  // and how often a value with that end was
	run0        int  // runs of non-space bytes seen last: [run0, run1)
	run1        int

	work   int // bytes given to regular expressions so far, weighed
	steps  int // bytes that matchers looked at so far
	budget int

	all []span // in doc.text
}

// run scans doc and returns the secrets in doc.text, in order, merged.
func (s *scan) run() []span {
	s.all = s.all[:0]
	s.work, s.steps = 0, 0
	s.budget = baseWork + workPerByte*len(s.doc.text)
	s.level = 0
	s.pass(s.doc.text)
	s.all = append(s.all, s.found...)
	prev := &s.doc
	for depth := range maxDepth {
		view := &s.views[depth]
		if !view.unescape(prev.text) {
			break
		}
		s.level = depth + 1
		s.pass(view.text)
		for _, f := range s.found {
			for d := depth; d >= 0; d-- {
				f.start, f.end = s.views[d].back(0, f.start, f.end)
			}
			s.all = append(s.all, f)
		}
		prev = view
	}
	if len(s.all) == 0 {
		return nil
	}
	return s.merge()
}

// merge sorts s.all and joins spans that overlap.
func (s *scan) merge() []span {
	all := s.all
	sort.SliceStable(all, func(i, j int) bool { return all[i].start < all[j].start })
	out := all[:1]
	for _, f := range all[1:] {
		last := &out[len(out)-1]
		if f.start >= last.end {
			out = append(out, f)
			continue
		}
		size, have := f.end-f.start, last.end-last.start
		if f.prio > last.prio && size*2 > have || f.prio >= last.prio && size > have {
			last.kind, last.rule, last.prio = f.kind, f.rule, f.prio
		}
		if f.start != last.start || f.end != last.end {
			last.bare = false
		}
		last.end = max(last.end, f.end)
	}
	return out
}

// pass looks for secrets in one view and leaves them in s.found.
func (s *scan) pass(text []byte) {
	s.text, s.found = text, s.found[:0]
	s.covered, s.nameEnd, s.curlEnd, s.manifestEnd, s.run0, s.run1 = 0, 0, 0, 0, 0, 0
	s.valueEnd, s.refused, s.manifests, s.encodedEnd = 0, 0, 0, 0
	a := s.m.words
	next, firstOut := a.next, a.firstOut
	st := uint32(0)
	for i, b := range text {
		st = next[st+uint32(a.class[b])]
		if st < firstOut {
			continue
		}
		for _, n := range a.outs[(st-firstOut)>>a.shift] {
			s.hit(int(n), i+1)
		}
	}
	s.repeats()
}

// hit handles an occurrence of keyword n that ends at end.
func (s *scan) hit(n, end int) {
	covered := s.covered
	for i := range s.m.uses[n] {
		u := &s.m.uses[n][i]
		if u.rule < 0 {
			start := end - s.m.words.length(n)
			if u.exact != "" && string(s.text[start:end]) != u.exact {
				continue
			}
			if start >= covered {
				u.matcher(s, start, end)
			}
			continue
		}
		r := &s.m.rules[u.rule]
		start := end - s.m.words.length(n)
		if start < covered || u.exact != "" && string(s.text[start:end]) != u.exact {
			continue
		}
		if r.word && start > 0 && (isWord(s.text[start-1]) && !s.joined(start, end) || s.inBase64(start)) {
			continue
		}
		if r.word && end-start <= 4 && s.text[end-1] == '-' && start > 1 && s.text[start-1] == '-' && isAlnum(s.text[start-2]) {
			// cache-key-<digest>: part of a longer name.
			continue
		}
		switch r.mode {
		case modePrefix:
			s.prefix(u.rule, r, start, end)
		case modeAssign:
			s.assigned(u.rule, r, start, end)
		case modeWindow, modeNear:
			s.window(u.rule, r, start, end)
		}
	}
}

// joined reports whether the keyword at text[start:end] begins a part of a name
// that is joined with underscores, as in mcp__ghp_..., and is a beginning that
// names have not by chance.
func (s *scan) joined(start, end int) bool {
	return s.text[start-1] == '_' && end-start >= 4 && (end-start > 4 || s.text[end-1] != '-')
}

// inBase64 reports whether the word that begins at start is a piece of
// encoded data, in which every short token begins somewhere by chance: a plus
// or a slash ahead of it, and data ahead of that.
func (s *scan) inBase64(start int) bool {
	const look = 24
	if c := s.text[start-1]; c != '+' && c != '/' || start < look {
		return false
	}
	sh := shape{}
	for _, c := range s.text[start-look : start] {
		switch {
		case isLower(c):
			sh.lower++
		case isUpper(c):
			sh.upper++
		case isDigit(c):
			sh.digit++
		case c != '+' && c != '/' && c != '\n':
			return false
		}
	}
	return sh.lower > 2 && sh.upper > 2 && sh.digit > 0
}

func (s *scan) prefix(n int, r *rule, start, end int) {
	if len(s.text)-start < r.minLen {
		return
	}
	win := s.text[start:min(len(s.text), start+r.after+1)]
	// A run of fewer than minLen bytes without a space cannot match; no
	// prefix rule matches a space before its end.
	if s.runEnd(start)-start < r.minLen {
		return
	}
	if !s.spend(len(win), start, end) {
		return
	}
	s.take(n, r, win, start)
}

func (s *scan) assigned(n int, r *rule, start, end int) {
	value := s.valueStart(end)
	if value < 0 || len(s.text)-value < r.minLen {
		return
	}
	if s.runEnd(value)-value < r.minLen {
		return
	}
	win := s.text[value:min(len(s.text), value+r.after)]
	if !s.spend(len(win), value, value) {
		return
	}
	s.take(n, r, win, value)
}

func (s *scan) window(n int, r *rule, start, end int) {
	from := max(start-r.before, s.covered)
	to := min(len(s.text), end+r.after)
	if from >= to {
		return
	}
	if !s.spend(windowWeight*(to-from), start, end) {
		return
	}
	// One byte more on the left keeps \b true to the text.
	lead := 0
	if from > 0 {
		lead = 1
	}
	win := s.text[from-lead : to]
	l := s.m.compile(n)
	for at := lead; at < len(win); {
		loc := l.re.FindSubmatchIndex(win[at-min(at, 1):])
		if loc == nil {
			return
		}
		base := from - lead + at - min(at, 1)
		lo, hi := base+loc[0], base+loc[1]
		if r.mode == modeNear || lo < end && hi > start {
			s.accept(n, r, l, loc, base)
		}
		at += max(loc[1]-min(at, 1), 1)
		if !s.spend(windowWeight*(len(win)-at), start, end) {
			return
		}
	}
}

// take runs an anchored rule on win, which begins at base.
func (s *scan) take(n int, r *rule, win []byte, base int) {
	l := s.m.compile(n)
	loc := l.re.FindSubmatchIndex(win)
	if loc != nil {
		s.accept(n, r, l, loc, base)
	}
}

// accept checks a match's secret and records it.
func (s *scan) accept(n int, r *rule, l *lazy, loc []int, base int) {
	g := 0
	if r.group > 0 {
		g = r.group
	} else {
		for i := 2; i < len(loc); i += 2 {
			if loc[i] >= 0 && loc[i+1] > loc[i] {
				g = i / 2
				break
			}
		}
	}
	if loc[2*g] < 0 {
		return
	}
	start, end := base+loc[2*g], base+loc[2*g+1]
	secret := s.text[start:end]
	if r.entropy > 0 && entropy(secret) <= r.entropy {
		return
	}
	for _, a := range l.allow {
		if a.Match(secret) {
			return
		}
	}
	if filler(secret) {
		return
	}
	prio := prioFormat
	if r.mode == modeAssign || r.mode == modeNear {
		prio = prioGuess
	}
	s.add(start, end, r.id, r.id, prio)
}

// add records a secret, unless the user allows it.
func (s *scan) add(start, end int, kind, rule string, prio int8) {
	// A backslash in front of the quote or the letter belongs to them: taking
	// it would break the JSON, or the program, that the secret stands in.
	for end > start && s.text[end-1] == '\\' {
		end--
	}
	if start > 0 && s.text[start-1] == '\\' && start < end && (s.text[start] == 'n' || s.text[start] == 'r' || s.text[start] == 't') {
		start++
	}
	if start >= end || s.masked(start, end) {
		return
	}
	if s.m.allowed(s.text[start:end]) {
		return
	}
	s.found = append(s.found, span{start: start, end: end, kind: kind, rule: rule, prio: prio, level: int8(s.level)})
	s.covered = max(s.covered, end)
}

// masked reports whether text[start:end] is made of our own placeholders: with
// them taken away, no letter or digit is left. A placeholder in front of a
// secret does not protect it.
func (s *scan) masked(start, end int) bool {
	any := false
	i := start
	for k := start - 1; k >= 0 && start-k < len(placeholderHead)+64; k-- {
		if s.text[k] == '[' {
			if k+s.placeholderAt(k) > start {
				i = k
			}
			break
		}
	}
	for i < end {
		if n := s.placeholderAt(i); n > 0 {
			any = true
			i += n
			continue
		}
		if c := s.text[i]; isAlnum(c) || c >= 0x80 {
			return false
		}
		i++
	}
	return any
}

// placeholderAt returns the length of the placeholder at i, or 0.
func (s *scan) placeholderAt(i int) int {
	if !hasPrefix(s.text, i, placeholderHead) {
		return 0
	}
	from := i + len(placeholderHead)
	for k := from; k < len(s.text) && k-from <= 64; k++ {
		if s.text[k] == ']' {
			if s.m.kinds[string(s.text[from:k])] {
				return k + 1 - i
			}
			return 0
		}
	}
	return 0
}

// spend takes n bytes of regular expression work from the budget. When it is
// used up, what the rule would have looked at is masked unread: a text made to
// exhaust the scanner loses more, never less.
func (s *scan) spend(n, start, end int) bool {
	s.work += n
	if s.work <= s.budget {
		return true
	}
	s.work -= n
	stop := min(s.runEnd(start), start+unscannedRun)
	if stop-end >= minRepeat {
		s.add(start, stop, kindUnscanned, kindUnscanned, prioGuess)
	}
	return false
}

// escape reports whether an escape sequence begins at i, as it does in a text
// that is quoted once more: `\n`, `\"`.
func (s *scan) escape(i int) bool {
	if s.text[i] != '\\' || i+1 >= len(s.text) {
		return false
	}
	switch s.text[i+1] {
	case 'n', 'r', 't', 'u', '\\', '"', '\'', '`':
		return true
	}
	return false
}

// ends reports whether a word ends at i: a space, a quote, an escape sequence.
func (s *scan) ends(i int) bool {
	return isSpace(s.text[i]) || isQuote(s.text[i]) || s.escape(i)
}

// runEnd returns where the run of bytes at start ends that have no space, quote
// or escape sequence in it.
func (s *scan) runEnd(start int) int {
	if start >= s.run0 && start < s.run1 {
		return s.run1
	}
	i := start
	for i < len(s.text) && !s.ends(i) {
		i++
	}
	s.run0, s.run1 = start, i
	s.steps += i - start
	return i
}

// repeats masks what else of the text equals a secret that was found in it.
func (s *scan) repeats() {
	n := len(s.found)
	if n == 0 {
		return
	}
	seen := make(map[string]bool, n)
	for i := range n {
		f := s.found[i]
		secret := s.text[f.start:f.end]
		if len(secret) < minRepeat || f.kind == kindUnscanned || seen[string(secret)] || plainWord(secret) {
			continue
		}
		seen[string(secret)] = true
		if len(seen) > maxRepeats {
			return
		}
		first, last := secret[0], secret[len(secret)-1]
		s.steps += len(s.text) / 8 // a vectored search
		for at := 0; ; {
			k := bytes.Index(s.text[at:], secret)
			if k < 0 {
				break
			}
			lo := at + k
			hi := lo + len(secret)
			at = hi
			if lo == f.start || isWord(first) && lo > 0 && isWord(s.text[lo-1]) || isWord(last) && hi < len(s.text) && isWord(s.text[hi]) {
				continue
			}
			s.found = append(s.found, span{start: lo, end: hi, kind: f.kind, rule: f.rule, prio: f.prio})
		}
	}
}

// plainWord reports whether a secret is an ordinary word or name, which stands
// in a text for many reasons.
func plainWord(b []byte) bool { return len(b) < 24 && identifier(b) }

// entropy returns the Shannon entropy of b, in bits per byte.
func entropy(b []byte) float64 {
	var count [256]uint16
	for _, c := range b {
		count[c]++
	}
	sum := 0.0
	n := float64(len(b))
	for _, c := range count {
		if c > 0 {
			p := float64(c) / n
			sum -= p * math.Log2(p)
		}
	}
	return sum
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func isLetter(c byte) bool { return isLower(c) || isUpper(c) }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }

func isWord(c byte) bool { return isAlnum(c) || c == '_' }
