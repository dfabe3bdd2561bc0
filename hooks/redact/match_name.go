package redact

import "bytes"

// Values assigned to a name: `DB_PASSWORD=...`, `"token": "..."`, `--api-key ...`.
// The name says how likely the value is a secret, the value itself whether it is one.

// class is what a name says of its value.
type class uint8

const (
	classNone     class = iota
	classGeneric        // key, auth or access in some place: needs high entropy
	classKey            // api key, access key, private key
	classToken          // token
	classSecret         // secret, credentials
	classPassword       // password
)

func (c class) kind() string {
	switch c {
	case classPassword:
		return kindPassword
	case classSecret:
		return kindSecret
	case classToken:
		return kindToken
	case classKey:
		return kindKey
	}
	return kindGeneric
}

// maxName bounds a name, maxValue a value, in bytes. A value longer than
// longValue counts towards maxRefused.
const (
	maxName   = 96
	maxValue  = 4096
	longValue = 256
)

// style is how a value stands behind its name.
type style uint8

const (
	styleSpaced   style = iota // name = value, name: value
	styleTight                 // name=value
	styleEnv                   // NAME=value, as in an environment file
	styleFlag                  // --name value
	styleArgument              // ("name", "value")
	styleProse                 // name is value
	styleMarkup                // <name>value</name>
)

// scoped reports whether the name at lo stands behind a scope: $env:NAME of
// PowerShell, g:name of Vim.
func scoped(t []byte, lo int) bool {
	if lo >= 5 && hasFold(t, lo-5, "$env:") {
		return true
	}
	return lo >= 2 && bytes.IndexByte([]byte("bwtglsav"), t[lo-2]) >= 0 && (lo == 2 || isSpace(t[lo-3]))
}

// named judges the value assigned to the name around start.
func (s *scan) named(start, end int) {
	t := s.text
	if start < s.nameEnd {
		return
	}
	lo, hi := start, end
	for lo > 0 && start-lo < maxName/2 && isName(t[lo-1]) {
		lo--
	}
	for hi < len(t) && hi-end < maxName/2 && isName(t[hi]) {
		hi++
	}
	s.nameEnd = hi
	for hi > end && (t[hi-1] == '.' || t[hi-1] == '-') {
		hi--
	}
	at, st := s.operator(lo, hi)
	if at < 0 || lo > 0 && t[lo-1] == '@' {
		return
	}
	c := classify(t[lo:hi])
	if lo > 0 && t[lo-1] == ':' && st == styleSpaced && !scoped(t, lo) {
		// A list of fields: user:password:uid.
		return
	}
	if lo > 0 && t[lo-1] == ' ' && string(t[lo:hi]) == "key" {
		// "The API key is ...", "secret key: ..."
		from := lo - 1
		for from > 0 && lo-from < 12 && isLetter(t[from-1]) {
			from--
		}
		switch string(bytes.ToLower(t[from : lo-1])) {
		case "api", "access", "secret", "private", "license", "auth", "encryption", "signing":
			c = classKey
		}
	}
	if c == classNone || st == styleProse && c == classGeneric {
		return
	}
	from, to, quoted, ok := s.value(at, st)
	s.steps += to - lo
	for n := 1; from < to && n > 0; from += n {
		if n = s.placeholderAt(from); n > 0 {
			// What is glued to a placeholder is looked at, what follows is not.
			stop := from + n
			for stop < to && !s.ends(stop) {
				stop++
			}
			if to = stop; s.masked(from, to) {
				return
			}
		}
	}
	if !ok || from >= to {
		return
	}
	if to-from > longValue {
		if from >= s.valueEnd {
			s.refused = 0
		}
		s.valueEnd = to
		if s.refused++; s.refused > maxRefused {
			s.add(from, to, kindUnscanned, kindUnscanned, prioGuess)
			return
		}
	}
	if quoted && lo > 0 && (isCodeEnd(t[from]) || isSpace(t[from])) && t[lo-1] == t[from-1] && (hi >= len(t) || t[hi] != t[lo-1]) {
		if _, whole := s.opens(lo - 1); !whole {
			// The quote closes a prompt: 'Password: '.
			return
		}
	}
	if st == styleMarkup {
		k := to
		for n := 0; n < 16 && k < len(t) && isSpace(t[k]); n++ {
			k++
		}
		if !hasPrefix(t, k, "</") {
			return
		}
	}
	if st == styleTight && !quoted && envName(t[lo:hi]) {
		st = styleEnv
	}
	v := t[from:to]
	if c == classPassword && shortPass(t[lo:hi]) && !quoted && st != styleEnv && st != styleFlag {
		// "First pass: assign addresses", renderPass=renderPass; and the
		// lines of test runs, "--- PASS: TestName/7".
		if !mixed(v) || hi-lo == 4 && (t[lo] == 'P' || wordyDigits(v) && !s.aloneOnLine(lo, to)) {
			return
		}
	}
	if !quoted && (st == styleSpaced || st == styleFlag) && identifier(v) && !hasDigit(v) && !s.aloneOnLine(lo, to) {
		// "Password: Optional. The password of ...", --password options
		return
	}
	if s.number(from) {
		// A JSON number is a password or nothing.
		if c != classPassword {
			return
		}
	}
	if !secretValue(c, v, quoted, st) {
		return
	}
	if c == classGeneric && s.m.stop().contains(v) {
		return
	}
	n := len(s.found)
	s.add(from, to, c.kind(), "assignment", prioGuess)
	if len(s.found) > n && !quoted && shapeOf(v).onlyDigits(v) && t[hi] == '"' {
		s.found[n].bare = true
	}
}

// number reports whether i stands in a number of the record.
func (s *scan) number(i int) bool {
	if s.level > 0 {
		return false
	}
	p := s.doc.pieceAt(i)
	return p < len(s.doc.pieces) && s.doc.pieces[p].number && s.doc.pieces[p].start <= i
}

func isName(c byte) bool { return isWord(c) || c == '-' || c == '.' }

// aloneOnLine reports whether the line of text[lo:hi] has nothing else on it.
func (s *scan) aloneOnLine(lo, hi int) bool {
	t := s.text
	for hi < len(t) && (t[hi] == ' ' || t[hi] == '\t' || isQuote(t[hi])) {
		hi++
	}
	if hi < len(t) && t[hi] != '\n' && t[hi] != '\r' {
		return false
	}
	for lo > 0 && (t[lo-1] == ' ' || t[lo-1] == '\t' || t[lo-1] == '+' || t[lo-1] == '-') {
		lo--
	}
	return lo == 0 || t[lo-1] == '\n' || isQuote(t[lo-1]) || t[lo-1] == '\t' || isDigit(t[lo-1])
}

// shortPass reports whether a name ends in "pass", which is a step of work as
// often as a password.
func shortPass(name []byte) bool { return hasFold(name, len(name)-4, "pass") }

// envName reports whether a name is an environment variable's.
func envName(name []byte) bool {
	for _, c := range name {
		if isLower(c) || c == '-' || c == '.' {
			return false
		}
	}
	return true
}

// operator finds what assigns a value to the name text[lo:hi], and returns
// where the value may begin, or -1.
func (s *scan) operator(lo, hi int) (int, style) {
	t := s.text
	i := hi
	quoted := false
	if i < len(t) && isQuote(t[i]) {
		quoted = true
		i++
	}
	for n := 0; n < 2 && i < len(t) && (t[i] == ']' || t[i] == ')'); n++ {
		i++
	}
	gap := i
	for i < len(t) && i-gap < 24 && (t[i] == ' ' || t[i] == '\t') {
		i++
	}
	if i >= len(t) {
		return -1, 0
	}
	switch t[i] {
	case '=', ':', '?', '+', '|', '!':
		// One of = : := ::= => ?= += ||= ?? !: and the comparisons.
		j := i
		for j < len(t) && j-i < 4 && (t[j] == ':' || t[j] == '?' || t[j] == '+' || t[j] == '|' || t[j] == '!') {
			j++
		}
		for j < len(t) && j-i < 4 && t[j] == '=' {
			j++
		}
		if t[j-1] != '=' && t[j-1] != ':' {
			break
		}
		if op := string(t[i:j]); (op == "!=" || op == "==" || op == "!==" || op == "===") && !s.quoteFollows(j) {
			// A comparison with a name, not with a literal.
			return -1, 0
		}
		if j < len(t) && t[j-1] == '=' && (t[j] == '>' || t[j] == '~') {
			j++
		}
		if t[j-1] == ':' && hasPrefix(t, j, "//") {
			return -1, 0
		}
		if i == hi && j == i+1 && t[i] == '=' && j < len(t) && !isSpace(t[j]) {
			return j, styleTight
		}
		return j, styleSpaced
	case '>':
		if lo > 0 && (t[lo-1] == '<' || t[lo-1] == ':') {
			return i + 1, styleMarkup
		}
		if i > hi && i-1 >= 0 && t[i-1] == '-' {
			return i + 1, styleSpaced
		}
		return -1, 0
	case ',':
		if !quoted || lo == 0 || !isQuote(t[lo-1]) {
			return -1, 0
		}
		if at, ok := s.nameValue(i + 1); ok {
			return at, styleSpaced
		}
		j := i + 1
		for j < len(t) && j-i < 4 && (isSpace(t[j]) && t[lo] == '-' || t[j] == ' ' || t[j] == '\t') {
			j++
		}
		if j >= len(t) || !isQuote(t[j]) {
			return -1, 0
		}
		if t[lo] == '-' {
			return j, styleFlag
		}
		return j, styleArgument
	}
	if t[lo] == '-' && i > hi || t[lo] == '-' && quoted {
		for n := 0; n < 4 && i < len(t) && isSpace(t[i]); n++ {
			i++
		}
		return i, styleFlag
	}
	if at, ok := s.nameValue(i); ok {
		return at, styleSpaced
	}
	if i == gap {
		return -1, 0
	}
	if lo >= 4 && hasFold(t, lo-4, "set ") {
		return i, styleFlag
	}
	if hasPrefix(t, i, ".= ") {
		return i + 2, styleSpaced
	}
	if hasFold(t, i, "is ") || hasFold(t, i, "is: ") || hasFold(t, i, "was ") {
		for i < len(t) && t[i] != ' ' {
			i++
		}
		return i, styleProse
	}
	if hasFold(t, i, "for ") || hasFold(t, i, "to ") {
		return -1, 0
	}
	// `var password string = "x"`: a type between name and operator.
	j := i
	for j < len(t) && j-i < 24 && (isWord(t[j]) || t[j] == '*' || t[j] == '[' || t[j] == ']' || t[j] == '.') {
		j++
	}
	if j > i && hasPrefix(t, j, ` = "`) {
		return j + 2, styleSpaced
	}
	// SQL: PASSWORD 'x'. The login lines of a netrc file: password x.
	if t[i] == '\'' && string(t[lo:hi]) == "PASSWORD" {
		return i, styleSpaced
	}
	if string(t[lo:hi]) == "password" && bytes.Contains(t[max(0, lo-120):lo], []byte("login ")) && bytes.Contains(t[max(0, lo-240):lo], []byte("machine ")) {
		return i, styleFlag
	}
	return -1, 0
}

// quoteFollows reports whether a literal begins behind the spaces at i.
func (s *scan) quoteFollows(i int) bool {
	for i < len(s.text) && s.text[i] == ' ' {
		i++
	}
	return i < len(s.text) && isQuote(s.text[i])
}

// nameValue finds the value where the name is a value itself:
// `"name": "TOKEN", "value": "..."`, `key="Password" value="..."`.
func (s *scan) nameValue(i int) (int, bool) {
	t := s.text
	stop := min(len(t), i+24)
	for i < stop && (isSpace(t[i]) || isQuote(t[i]) || t[i] == ',' || t[i] == ';') {
		i++
	}
	if !hasFold(t, i, "value") {
		return 0, false
	}
	i += len("value")
	if i < len(t) && isQuote(t[i]) {
		i++
	}
	for i < len(t) && i < stop+8 && t[i] == ' ' {
		i++
	}
	if i < len(t) && (t[i] == ':' || t[i] == '=') {
		return i + 1, true
	}
	return 0, false
}

// value returns the value that begins at or behind i.
func (s *scan) value(i int, st style) (from, to int, quoted, ok bool) {
	t := s.text
	for n := 0; n < 16 && i < len(t) && (t[i] == ' ' || t[i] == '\t' || st == styleMarkup && isSpace(t[i])); n++ {
		i++
	}
	if i >= len(t) {
		return 0, 0, false, false
	}
	// A type annotation between the name and its value.
	if st == styleSpaced && isLetter(t[i]) {
		j := i
		for j < len(t) && j-i < 24 && (isWord(t[j]) || t[j] == '.' || t[j] == '[' || t[j] == ']') {
			j++
		}
		if hasPrefix(t, j, " = ") && typeWord(t[i:j]) {
			i = j + 3
		}
	}
	// The letter of a string literal.
	if i+1 < len(t) && isQuote(t[i+1]) && (t[i] == 'f' || t[i] == 'b' || t[i] == 'r' || t[i] == 'u' || t[i] == 'L' || t[i] == '@' || t[i] == '$') {
		i++
	}
	if i < len(t) && isQuote(t[i]) {
		if stop, whole := s.opens(i); whole {
			return i + 1, stop, true, stop-i <= maxValue
		}
		q := t[i]
		i++
		if i+1 < len(t) && t[i] == q && t[i+1] == q {
			i += 2
		}
		j := i
		for j < len(t) && j-i < maxValue && t[j] != q && t[j] != '\n' {
			if t[j] == '\\' && j+1 < len(t) && t[j+1] != 'n' {
				j++
			}
			j++
		}
		j = min(j, len(t))
		for j > i && t[j-1] == '\r' {
			j--
		}
		return i, j, true, true
	}
	if st == styleArgument {
		return 0, 0, false, false
	}
	j := i
	for j < len(t) && j-i < maxValue {
		c := t[j]
		if s.ends(j) || c == '<' || c == '>' || c == '|' || c == 0 {
			break
		}
		if c == '&' && j > i || (c == ',' || c == ';') && j > i && s.assigns(j+1) {
			break
		}
		if (c == ',' || c == ';' || c == ')' || c == ']' || c == '}') && (j+1 >= len(t) || isSpace(t[j+1]) || isQuote(t[j+1]) || isCodeEnd(t[j+1])) {
			break
		}
		j++
	}
	if st == styleProse {
		for j > i && (t[j-1] == '.' || t[j-1] == '!' || t[j-1] == '?') {
			j--
		}
	}
	return i, j, false, true
}

// assigns reports whether another name and its equals sign stand at i, as in
// Password=x;User Id=sa and a=x,b=y.
func (s *scan) assigns(i int) bool {
	t := s.text
	j := i
	for j < len(t) && j-i < 32 && (isName(t[j]) || t[j] == ' ') {
		j++
	}
	return j > i && j < len(t) && t[j] == '=' && isLetter(t[i])
}

func typeWord(b []byte) bool {
	switch string(bytes.ToLower(b)) {
	case "str", "string", "bytes", "any", "text", "optional[str]", "final", "char", "secretstr", "varchar":
		return true
	}
	return false
}

// secretValue decides whether v, assigned to a name of class c, is a secret.
func secretValue(c class, v []byte, quoted bool, st style) bool {
	if len(v) < 4 && !(c == classPassword && len(v) == 3 && (quoted || st == styleEnv)) || len(v) > maxValue {
		return false
	}
	if placeholder(v) || filler(v) || numeral(v) && (c != classPassword || !quoted && st != styleEnv && st != styleFlag) {
		return false
	}
	sh := shapeOf(v)
	if sh.space && (c != classPassword || !quoted || sh.words > 6 || st == styleArgument) {
		return false
	}
	if sh.space && passPhrase(v) {
		return true
	}
	if sh.space && (sh.lower+sh.upper+sh.spaces == len(v) || isUpper(v[0]) && v[len(v)-1] != '!') {
		// A phrase in quotes is a message or a label far more often than
		// a pass phrase.
		return false
	}
	if v[0] == ':' || constant(v) && st != styleEnv {
		return false
	}
	if !quoted && (code(v) || st == styleSpaced && dotted(v) || st == styleSpaced && sh.letters(v) && identifier(v) && c != classPassword) {
		return false
	}
	if reference(v, sh) && !(st == styleEnv && c == classPassword) {
		return false
	}
	switch c {
	case classPassword:
		switch {
		case st == styleEnv || st == styleFlag:
			return true
		case quoted && st != styleArgument:
			return !labelWord(v)
		case st == styleArgument:
			return sh.digit > 0 && sh.lower+sh.upper > 0 && entropy(v) > 2.5
		case st == styleProse:
			return sh.digit > 0 && sh.lower+sh.upper > 0 || sh.other > 0 && sh.lower+sh.upper > 3 && !wordy(v)
		}
		return sh.digit > 0 && !identifier2(v) || sh.other > 0 && !identifier(v) || len(v) >= 6 && identifier(v) && sh.letters(v) && !isUpper(v[0]) && !identifier2(v)
	case classSecret:
		if st == styleEnv {
			return len(v) >= 6 && !sh.onlyDigits(v)
		}
		if len(v) < 8 || wordyDigits(v) || st == styleProse && sh.digit == 0 {
			return false
		}
		return sh.digit > 0 && sh.lower+sh.upper > 0 && entropy(v) > 2.5 || sh.other > 1 && entropy(v) > 3 && !wordy(v) || len(v) >= 20 && !wordy(v) && entropy(v) > 3.5
	case classToken, classKey:
		if len(v) < 8 || sh.onlyDigits(v) {
			return false
		}
		if st == styleArgument && len(v) < 16 {
			return false
		}
		if st == styleProse && (len(v) < 16 || sh.digit == 0) {
			return false
		}
		if sh.digit > 0 && sh.lower+sh.upper > 0 {
			return entropy(v) > 2.6 && ((st == styleEnv || st == styleFlag) && sh.digit > 1 || !wordyDigits(v))
		}
		return len(v) >= 20 && !wordy(v) && entropy(v) > 3.3
	}
	// The generic class: gitleaks' conditions.
	if len(v) < 10 || len(v) > 150 || sh.digit == 0 || sh.lower+sh.upper == 0 || st == styleProse {
		return false
	}
	for _, b := range v {
		if !isBase64(b) && b != '=' && b != '.' {
			return false
		}
	}
	if !quoted && st == styleSpaced && len(v) < 20 {
		return false
	}
	return entropy(v) > 3.5 && !hexID(v) && !wordyDigits(v)
}

// shape counts the bytes of a value.
type shape struct {
	lower, upper, digit, other, spaces, words int
	space                                     bool
}

func shapeOf(v []byte) shape {
	var sh shape
	in := false
	for _, c := range v {
		switch {
		case isLower(c):
			sh.lower++
		case isUpper(c):
			sh.upper++
		case isDigit(c):
			sh.digit++
		case isSpace(c):
			sh.space = true
			sh.spaces++
		default:
			sh.other++
		}
		if isSpace(c) {
			in = false
		} else if !in {
			in = true
			sh.words++
		}
	}
	return sh
}

func (sh shape) letters(v []byte) bool { return sh.digit == 0 && sh.other == 0 && len(v) > 0 }

func (sh shape) onlyDigits(v []byte) bool { return sh.digit == len(v) }

// mixed reports whether b has a digit and a letter, or both cases.
func mixed(b []byte) bool {
	sh := shapeOf(b)
	return sh.digit > 0 && sh.lower+sh.upper > 0 || sh.lower > 1 && sh.upper > 1 && len(b) >= 20
}

// valueStart returns where the value begins that is assigned to a name whose
// known part ends at i, in the forms that gitleaks' rules know, or -1.
func (s *scan) valueStart(i int) int {
	t := s.text
	for n := 0; n < 23 && i < len(t) && (isName(t[i]) || t[i] == ' ' || t[i] == '\t'); n++ {
		i++
	}
	for n := 0; n < 3 && i < len(t) && (isSpace(t[i]) || t[i] == '\'' || t[i] == '"' || t[i] == ']'); n++ {
		i++
	}
	if i >= len(t) {
		return -1
	}
	switch {
	case t[i] == '=' || t[i] == '>' || t[i] == ',':
		i++
	case t[i] == ':':
		for n := 0; n < 3 && i < len(t) && t[i] == ':'; n++ {
			i++
		}
	case hasPrefix(t, i, "||") || hasPrefix(t, i, "?="):
		i += 2
	default:
		return -1
	}
	if i < len(t) && t[i] == '>' {
		i++
	}
	for n := 0; n < 5 && i < len(t) && (isSpace(t[i]) || isQuote(t[i]) || t[i] == '='); n++ {
		i++
	}
	return i
}
