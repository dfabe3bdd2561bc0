package redact

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ErrBadRule is wrapped by every error of New.
var ErrBadRule = errors.New("bad redaction rule")

// Options are what a user adds to the built-in rules.
type Options struct {
	// Rules are the user's own secrets.
	Rules []Rule
	// Allow lists what is never masked.
	Allow []Allow
}

// Rule is a user's rule: what Regex matches within Reach bytes of a keyword is
// masked as [REDACTED:<Name>].
type Rule struct {
	// Name is the kind in the placeholder: lower case letters, digits and
	// dashes, at most 64.
	Name string
	// Regex is an RE2 expression. Its first group, or the whole match when it
	// has none, is what is masked.
	Regex string
	// Keywords must have at least one entry, each of 2 to 64 bytes. Case does
	// not matter. The match must contain, or begin, one of them: a regex
	// without a fixed text in it would have to be run over everything.
	Keywords []string
	// MinEntropy is the least Shannon entropy of the secret, in bits per
	// byte; 0 takes everything.
	MinEntropy float64
}

// Allow is something that is never masked: a secret that equals Literal, or
// that Regex matches from end to end.
type Allow struct {
	Literal string
	Regex   string
}

// Finding is a secret in a text: text[Start:End], in bytes.
type Finding struct {
	// Kind is the name in the placeholder.
	Kind string
	// Rule says which rule found it.
	Rule string
	// Start and End bound it, in bytes.
	Start, End int
}

// userReach bounds a user rule's window on either side of a keyword, in bytes.
const userReach = 512

// Masker finds secrets and masks them. It does not change after New and is
// safe for concurrent use; one serves all rules of a process.
type Masker struct {
	rules    []rule
	compiled []lazy
	words    *automaton
	uses     [][]use // by keyword number: what a hit starts
	allow    map[string]bool
	allowRe  []*regexp.Regexp
	kinds    map[string]bool
	stop     func() *automaton
	pool     sync.Pool
}

// A use is one consequence of a keyword hit.
type use struct {
	rule    int // index into Masker.rules, or -1
	matcher matcher
	exact   string // the spelling the keyword must have, or ""
}

// lazy holds a rule's expressions, compiled when the rule's keyword is first
// met: most sessions need a handful of the several hundred.
type lazy struct {
	once  sync.Once
	re    *regexp.Regexp
	allow []*regexp.Regexp
}

// New makes a masker of the built-in rules and opts. It takes a few
// milliseconds: expressions are compiled at first use, but the user's own are
// checked here, and an error says which is wrong.
func New(opts Options) (*Masker, error) {
	m := &Masker{allow: map[string]bool{}, kinds: map[string]bool{}}
	m.rules = append(m.rules, gitleaksRules()...)
	m.rules = append(m.rules, ownRules()...)
	for i := range m.rules {
		m.kinds[m.rules[i].id] = true
	}
	for _, k := range matcherKinds() {
		m.kinds[k.Name] = true
	}
	for i, r := range opts.Rules {
		own, err := r.compile()
		if err != nil {
			return nil, fmt.Errorf("%w %d (%q): %w", ErrBadRule, i+1, r.Name, err)
		}
		m.rules = append(m.rules, own)
		m.kinds[own.id] = true
	}
	for i, a := range opts.Allow {
		re, err := a.compile()
		if err != nil {
			return nil, fmt.Errorf("%w: allow entry %d: %w", ErrBadRule, i+1, err)
		}
		if re == nil {
			m.allow[a.Literal] = true
			continue
		}
		m.allowRe = append(m.allowRe, re)
	}
	m.compiled = make([]lazy, len(m.rules))

	var words []string
	index := map[string]int{}
	add := func(word string, u use) {
		low := strings.ToLower(word)
		n, ok := index[low]
		if !ok {
			n = len(words)
			index[low] = n
			words = append(words, low)
			m.uses = append(m.uses, nil)
		}
		m.uses[n] = append(m.uses[n], u)
	}
	for i := range m.rules {
		for _, k := range m.rules[i].keywords {
			u := use{rule: i}
			if m.rules[i].exact {
				u.exact = k
			}
			add(k, u)
		}
	}
	for _, w := range matcherWords() {
		for _, k := range w.words {
			u := use{rule: -1, matcher: w.matcher}
			if w.exact {
				u.exact = k
			}
			add(k, u)
		}
	}
	m.words = newAutomaton(words)
	m.stop = sync.OnceValue(func() *automaton {
		return newAutomaton(strings.Split(gitleaksStopWords(), "\n"))
	})
	m.pool.New = func() any { return &scan{m: m} }
	return m, nil
}

// Check says what is wrong with a rule, as New would.
func (r Rule) Check() error {
	_, err := r.compile()
	return err
}

// Check says what is wrong with an entry, as New would.
func (a Allow) Check() error {
	_, err := a.compile()
	return err
}

// compile returns an entry's expression, nil for a literal.
func (a Allow) compile() (*regexp.Regexp, error) {
	if (a.Literal == "") == (a.Regex == "") {
		return nil, errors.New("give a literal or a regex")
	}
	if a.Literal != "" {
		return nil, nil
	}
	if _, err := regexp.Compile(a.Regex); err != nil {
		return nil, fmt.Errorf("regex: %w", err)
	}
	re, err := regexp.Compile(`^(?:` + a.Regex + `)$`)
	if err != nil {
		return nil, fmt.Errorf("regex: %w", err)
	}
	// What allows two secrets that have nothing in common would turn masking off.
	if re.MatchString("ghp_0Aa1Bb2Cc3Dd4Ee5Ff6Gg7Hh8Ii9Jj0Kk1Ll") && re.MatchString("correct horse, battery staple!") {
		return nil, errors.New("regex: it allows whatever there is; name the beginning or the length of what is no secret")
	}
	return re, nil
}

func (r Rule) compile() (rule, error) {
	if r.Name == "" || len(r.Name) > 64 || strings.Trim(r.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return rule{}, errors.New("name: want lower case letters, digits and dashes, at most 64")
	}
	re, err := regexp.Compile(r.Regex)
	switch {
	case err != nil:
		return rule{}, fmt.Errorf("regex: %w", err)
	case r.Regex == "":
		return rule{}, errors.New("regex: missing")
	case re.MatchString(""):
		return rule{}, errors.New("regex: it matches nothing at all, the empty text")
	}
	if len(r.Keywords) == 0 {
		return rule{}, errors.New("keywords: give at least one text that every match contains")
	}
	for _, k := range r.Keywords {
		if len(k) < 2 || len(k) > 64 {
			return rule{}, fmt.Errorf("keyword %q: want 2 to 64 bytes", k)
		}
	}
	return rule{
		id: r.Name, mode: modeNear, keywords: slices.Clone(r.Keywords), regex: r.Regex,
		before: userReach, after: userReach, entropy: r.MinEntropy, minLen: 1,
	}, nil
}

// compile returns the rule's expressions.
func (m *Masker) compile(n int) *lazy {
	l := &m.compiled[n]
	l.once.Do(func() {
		l.re = regexp.MustCompile(m.rules[n].regex)
		for _, a := range m.rules[n].allow {
			l.allow = append(l.allow, regexp.MustCompile(a))
		}
	})
	return l
}

// allowed reports whether the user said that this is no secret.
func (m *Masker) allowed(secret []byte) bool {
	if len(m.allow) > 0 && m.allow[string(secret)] {
		return true
	}
	for _, re := range m.allowRe {
		if re.Match(secret) {
			return true
		}
	}
	return false
}

// maxKept bounds the buffers that a finished scan keeps for the next one, in
// bytes of text.
const maxKept = 4 << 20

// release gives a scan back.
func (m *Masker) release(s *scan) {
	if cap(s.doc.text) > maxKept || cap(s.views[0].text) > maxKept {
		s.doc, s.views = document{}, [maxDepth]document{}
	}
	s.text = nil
	m.pool.Put(s)
}

// Text masks a plain text. It returns the masked text, which is s itself when
// nothing was found, and what was found, in order.
func (m *Masker) Text(s []byte) ([]byte, []Finding) {
	sc := m.pool.Get().(*scan)
	defer m.release(sc)
	sc.doc.loadText(s)
	spans := sc.run()
	if len(spans) == 0 {
		return s, nil
	}
	out := make([]byte, 0, len(s))
	found := make([]Finding, 0, len(spans))
	at := 0
	for _, sp := range spans {
		out = append(out, s[at:sp.start]...)
		out = appendMask(out, sp, 0)
		at = sp.end
		found = append(found, Finding{Kind: sp.kind, Rule: sp.rule, Start: sp.start, End: sp.end})
	}
	return append(out, s[at:]...), found
}

// appendMask appends a span's placeholder, to a text that is itself quoted
// depth times.
func appendMask(b []byte, sp span, depth int) []byte {
	if !sp.bare {
		return appendPlaceholder(b, sp.kind)
	}
	quote := strings.Repeat(`\`, 1<<(depth+int(sp.level))-1) + `"`
	return append(appendPlaceholder(append(b, quote...), sp.kind), quote...)
}

func appendPlaceholder(b []byte, kind string) []byte {
	b = append(b, placeholderHead...)
	b = append(b, kind...)
	return append(b, ']')
}

const placeholderHead = "[REDACTED:"
