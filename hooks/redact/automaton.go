package redact

// automaton finds every occurrence of a set of keywords in one pass over a
// text, folding ASCII case (Aho and Corasick, 1975). Its table is a full
// transition table over byte classes, so that the inner loop is one load per
// byte of text and never backs up.
type automaton struct {
	class [256]uint8
	shift uint
	// next holds row offsets rather than state numbers: next[s+class] is the
	// next s. Rows with an output come last, so the inner loop has one compare.
	next     []uint32
	firstOut uint32
	// outs[(s-firstOut)>>shift] lists the keywords that end in state s.
	outs [][]uint16
	size []uint8 // the keywords' lengths
}

// length returns the length of keyword n.
func (a *automaton) length(n int) int { return int(a.size[n]) }

// newAutomaton compiles keywords, which are lower case and of 1 to 255 bytes. Keyword
// numbers in outputs are indices into keywords.
func newAutomaton(keywords []string) *automaton {
	a := &automaton{}
	classes := 1
	for _, k := range keywords {
		for i := range len(k) {
			b := k[i]
			if a.class[b] == 0 {
				a.class[b] = uint8(classes)
				if b >= 'a' && b <= 'z' {
					a.class[b-'a'+'A'] = uint8(classes)
				}
				classes++
			}
		}
	}
	for 1<<a.shift < classes {
		a.shift++
	}
	width := 1 << a.shift

	total := 1
	for _, k := range keywords {
		total += len(k)
		a.size = append(a.size, uint8(len(k)))
	}
	// The trie, as rows of state numbers; 0 is the root and "no child".
	trie := make([]uint32, width, total*width)
	ends := make([][]uint16, 1, total)
	states := 1
	for n, k := range keywords {
		s := 0
		for i := range len(k) {
			at := s*width + int(a.class[k[i]])
			if trie[at] == 0 {
				trie[at] = uint32(states)
				trie = trie[:len(trie)+width]
				ends = append(ends, nil)
				states++
			}
			s = int(trie[at])
		}
		ends[s] = append(ends[s], uint16(n))
	}

	// Breadth first: a missing child takes the failure state's child.
	fail := make([]uint32, states)
	queue := make([]uint32, 0, states)
	for c := range width {
		if t := trie[c]; t != 0 {
			queue = append(queue, t)
		}
	}
	for head := 0; head < len(queue); head++ {
		s := queue[head]
		f := fail[s]
		if len(ends[f]) > 0 {
			ends[s] = append(ends[s], ends[f]...)
		}
		row, frow := int(s)*width, int(f)*width
		for c := range width {
			if t := trie[row+c]; t != 0 {
				fail[t] = trie[frow+c]
				queue = append(queue, t)
			} else {
				trie[row+c] = trie[frow+c]
			}
		}
	}

	order := make([]uint32, states) // old state -> new row offset
	plain := uint32(0)
	// The rows that most texts stay in, those of short beginnings, lie together.
	queue = append([]uint32{0}, queue...)
	for _, s := range queue {
		if len(ends[s]) == 0 {
			order[s] = plain << a.shift
			plain++
		}
	}
	a.firstOut = plain << a.shift
	for _, s := range queue {
		if len(ends[s]) > 0 {
			order[s] = a.firstOut + uint32(len(a.outs))<<a.shift
			a.outs = append(a.outs, ends[s])
		}
	}
	a.next = make([]uint32, states*width)
	for s := range states {
		to := a.next[order[s]:]
		for c := range width {
			to[c] = order[trie[s*width+c]]
		}
	}
	return a
}

// contains reports whether any keyword occurs in text.
func (a *automaton) contains(text []byte) bool {
	s := uint32(0)
	for _, b := range text {
		s = a.next[s+uint32(a.class[b])]
		if s >= a.firstOut {
			return true
		}
	}
	return false
}
