package redact

import (
	"bytes"
	"encoding/base64"
)

// Key blocks. A private key has many shapes in a session: a file with line
// numbers in front, a diff, a string literal with \n in it, one line of an
// environment file, a list of lines, a piece of the file's end. So the
// matchers walk runs of base64 and whatever may stand between two of them.

const pemDashes = "-----"

// pemBegin masks a private key from its BEGIN line to its END line, or, when
// that is missing, to the end of the base64.
func (s *scan) pemBegin(start, end int) {
	t := s.text
	label := bytes.Index(t[end:min(len(t), end+120)], []byte(pemDashes))
	if label < 0 || !isPrivateLabel(t[end:end+label]) {
		return
	}
	body := end + label + len(pemDashes)
	stop, runs := s.pemBody(body)
	s.steps += stop - start
	if hasFold(t, stop, "-----end") {
		if close := bytes.Index(t[stop+8:min(len(t), stop+8+120)], []byte(pemDashes)); close >= 0 {
			stop += 8 + close + len(pemDashes)
		}
	} else if runs == 0 {
		return
	}
	if runs > 0 {
		s.add(start, stop, kindPrivateKey, kindPrivateKey, prioFormat)
	}
}

func isPrivateLabel(label []byte) bool {
	return bytes.Contains(bytes.ToUpper(label), []byte("PRIVATE KEY"))
}

// pemBody walks a key's body from i, and returns where it ends and how many
// runs of base64 it has. It ends before the next dashes, or at the last run
// when something follows that no key contains.
func (s *scan) pemBody(i int) (stop, runs int) {
	t := s.text
	stop = i
	for {
		j := s.pemGap(i)
		if j >= len(t) || hasPrefix(t, j, pemDashes) {
			if hasFold(t, j, "-----end") {
				return j, runs
			}
			return stop, runs
		}
		k := j
		for k < len(t) && isBase64Pem(t[k]) {
			k++
		}
		for k < len(t) && t[k] == '=' && k-j < 1<<16 {
			k++
		}
		switch {
		case k == j:
			return stop, runs
		case k < len(t) && (t[k] == ':' || t[k] == '-') && runs == 0:
			// Proc-Type, DEK-Info, Version, Comment: headers ahead of the body.
			i = s.lineEnd(k, 200)
			stop = i
			if i < len(t) && !isSpace(t[i]) {
				return stop, runs
			}
			continue
		case k-j < 16 && !s.lastRun(k):
			// Too short for a line of a key, and not its last one.
			return stop, runs
		}
		runs++
		stop, i = k, k
	}
}

// lastRun reports whether a short run that ends at k is a key's last line: the
// end of the string, or the END line, follows.
func (s *scan) lastRun(k int) bool {
	j := s.pemGap(k)
	return j >= len(s.text) || hasPrefix(s.text, j, pemDashes) || s.text[k-1] == '=' || hasPrefix(s.text, j, "=")
}

func isBase64Pem(c byte) bool { return isAlnum(c) || c == '+' || c == '/' }

func hasPrefix(t []byte, at int, s string) bool {
	return at >= 0 && at+len(s) <= len(t) && string(t[at:at+len(s)]) == s
}

// pemGap skips what may stand between two lines of a key: white space, the
// escapes of a literal, quotes and commas, line numbers, the marks of a diff,
// a quotation or a box. It never skips base64 other than a line number.
func (s *scan) pemGap(i int) int {
	t := s.text
	for i < len(t) {
		c := t[i]
		switch {
		case isSpace(c) || isQuote(c) || c == ',' || c == '>' || c == '|' || c == '#' || c == '*' || c == ';' || c == '[' || c == ']' || c == '(' || c == ')' || c == '$':
			i++
		case c == '\\':
			i++
			if i < len(t) && (t[i] == 'n' || t[i] == 'r' || t[i] == 't') {
				i++
			}
		case c == '+' && (i == 0 || isSpace(t[i-1]) || isQuote(t[i-1])):
			i++
		case c == '-' && !hasPrefix(t, i, pemDashes):
			i++
		case hasPrefix(t, i, "→") || hasPrefix(t, i, "│"):
			i += len("→")
		case isDigit(c):
			// A line number: digits, then a tab, a colon, a bar or an arrow.
			j := i
			for j < len(t) && j-i < 8 && isDigit(t[j]) {
				j++
			}
			if j < len(t) && (t[j] == '\t' || t[j] == ':' || t[j] == '|' || t[j] == ' ' || t[j] == '-' && !hasPrefix(t, j, pemDashes) || hasPrefix(t, j, "→") || hasPrefix(t, j, "│")) {
				i = j + 1
				if t[j] >= 0x80 {
					i = j + len("→")
				}
				continue
			}
			return i
		default:
			return i
		}
	}
	return i
}

// pemEnd masks the end of a private key whose beginning is not in the text.
func (s *scan) pemEnd(start, end int) {
	t := s.text
	label := bytes.Index(t[end:min(len(t), end+120)], []byte(pemDashes))
	if label < 0 || !isPrivateLabel(t[end:end+label]) {
		return
	}
	// Walk back over lines that are base64 but for what pemGap skips.
	from, lines := start, 0
	for from > s.covered {
		lo := from
		// The line ahead of from, at most 120 bytes.
		hi := lo
		for hi > s.covered && (isSpace(t[hi-1]) || isQuote(t[hi-1]) || t[hi-1] == ',' || t[hi-1] == '\\') {
			hi--
		}
		if hi >= 2 && t[hi-1] == 'n' && t[hi-2] == '\\' {
			from = hi - 2
			continue
		}
		lo = hi
		for lo > s.covered && hi-lo < 120 && (isBase64Pem(t[lo-1]) || t[lo-1] == '=') {
			lo--
		}
		if hi-lo < 16 && lines > 0 || hi-lo < 4 || hi-lo >= 120 {
			break
		}
		if hasPrefix(t, lo, "n") && lo > 0 && t[lo-1] == '\\' {
			lo++
		}
		lines++
		from = lo
		// A line number or a diff mark ahead of it.
		mark := lo
		for mark > s.covered && lo-mark < 12 && (isDigit(t[mark-1]) || t[mark-1] == '\t' || t[mark-1] == ' ' || t[mark-1] == '+' || t[mark-1] == '-' || t[mark-1] == ':' || t[mark-1] == '|' || t[mark-1] == '>' || t[mark-1] >= 0x80) {
			mark--
		}
		if mark == 0 || t[mark-1] == '\n' || isQuote(t[mark-1]) {
			from = mark
		}
		if from == mark && mark < lo {
			continue
		}
	}
	if lines == 0 {
		return
	}
	for from < start && (isSpace(t[from]) || isDigit(t[from]) && from+1 < start && t[from+1] == '\t') {
		from++
	}
	s.add(from, end+label+len(pemDashes), kindPrivateKey, kindPrivateKey, prioFormat)
}

// pemBase64 masks the base64 of a PEM private key; that of a certificate is
// left alone.
func (s *scan) pemBase64(start, _ int) {
	t := s.text
	var plain [96]byte
	head := start
	for head < len(t) && head-start < 128 && isBase64Pem(t[head]) {
		head++
	}
	n := (head - start) / 4 * 4
	k, err := base64.StdEncoding.Decode(plain[:], t[start:start+n])
	if err != nil || !isPrivateLabel(plain[:k]) {
		return
	}
	stop, _ := s.pemBody(start)
	s.add(start, max(stop, head), kindPrivateKey, kindPrivateKey, prioFormat)
}

// putty masks the private part of a PuTTY key file.
func (s *scan) putty(_, end int) {
	body := s.lineEnd(end, 16)
	stop, runs := s.pemBody(body)
	if runs == 0 {
		return
	}
	i := s.pemGap(body)
	s.add(i, stop, kindPrivateKey, kindPrivateKey, prioFormat)
}
