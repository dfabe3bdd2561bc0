package redact

import (
	"bytes"
	"encoding/base64"
)

// maxUser bounds the user part of a URL, in bytes.
const maxUser = 512

// urlUser masks the password in scheme://user:password@host, and a token that
// stands in place of the user.
func (s *scan) urlUser(start, end int) {
	t := s.text
	if start == 0 || !isAlnum(t[start-1]) {
		return
	}
	stop := min(len(t), end+maxUser)
	colon, at := -1, -1
	for i := end; i < stop; i++ {
		c := t[i]
		if c == '@' {
			// The last @ of the authority counts: a password may have one.
			at = i
			continue
		}
		if c == ':' && colon < 0 {
			colon = i
		}
		if s.ends(i) || c == '<' || c == '>' {
			break
		}
		if (c == '/' || c == '?' || c == '#') && (at >= 0 || colon < 0) {
			break
		}
		// A slash in a password is not rare, but a path without user is the
		// common case: host:port/path.
		if c == '/' && colon >= 0 && portOnly(t[colon+1:i]) {
			break
		}
	}
	s.steps += stop - end
	if at < 0 {
		return
	}
	if colon >= 0 && colon < at {
		value := t[colon+1 : at]
		if len(value) == 0 || placeholder(value) || sampleWord(value) {
			return
		}
		s.add(colon+1, at, kindURLPassword, kindURLPassword, prioPlace)
		return
	}
	user := t[end:at]
	if len(user) >= 16 && !placeholder(user) && mixed(user) && entropy(user) > 3 {
		s.add(end, at, kindURLToken, kindURLToken, prioPlace)
	}
}

func portOnly(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return len(b) <= 5
}

// sampleWord reports whether a URL's password is the word that stands for one
// in documentation.
func sampleWord(b []byte) bool {
	switch string(bytes.ToLower(b)) {
	case "password", "passwd", "pass", "pwd", "pw", "secret", "token", "pass_word", "yourpassword", "mypassword":
		return true
	}
	return false
}

// maxHeader bounds how far a header's value is looked at before it is judged,
// in bytes; what is then masked goes on to the end of its last word.
const maxHeader = 1 << 10

// headerValue returns the value behind a header's name that ends at i: behind
// a colon, or an equals sign or a comma in code, and a quote. end is the value's
// quote, or the line's end.
func (s *scan) headerValue(i int) (start, end int, ok bool) {
	t := s.text
	quoted := byte(0)
	if i < len(t) && isQuote(t[i]) {
		quoted = t[i]
		i++
	}
	for i < len(t) && (t[i] == ' ' || t[i] == '\t' || t[i] == ']') {
		i++
	}
	if i >= len(t) || t[i] != ':' && t[i] != '=' && t[i] != ',' {
		return 0, 0, false
	}
	if t[i] == ',' && quoted == 0 {
		return 0, 0, false
	}
	i++
	if i < len(t) && t[i] == '>' {
		i++
	}
	for n := 0; i < len(t) && n < 8 && (t[i] == ' ' || t[i] == '\t' || t[i] == '[' || n == 0 && t[i] == '='); n++ {
		i++
	}
	if i < len(t) && isQuote(t[i]) {
		if stop, ok := s.opens(i); ok {
			return i + 1, stop, true
		}
		q := t[i]
		i++
		end = s.lineEnd(i, maxHeader)
		for k := i; k < end; k++ {
			if t[k] == q || s.escape(k) {
				end = k
			}
		}
		return i, end, true
	}
	end = s.lineEnd(i, maxHeader)
	if s.level == 0 {
		end = min(end, s.stringEnd(i))
	}
	// An argument of a command: the quote that opened ahead of the name.
	for k := i; k < end; k++ {
		if isQuote(t[k]) || s.escape(k) {
			end = k
		}
	}
	return i, end, i < end
}

// authorization masks the credentials of an Authorization header.
func (s *scan) authorization(_, end int) {
	i, stop, ok := s.headerValue(end)
	if !ok {
		return
	}
	t := s.text
	// The scheme: a word and a space.
	j := i
	for j < stop && (isAlnum(t[j]) || t[j] == '-') {
		j++
	}
	if j == stop || t[j] != ' ' {
		// No scheme: the value is the credential, if it looks like one.
		k := i
		for k < stop && !s.ends(k) && !isCodeEnd(t[k]) {
			k++
		}
		if v := t[i:k]; k-i >= 12 && !placeholder(v) && mixed(v) && !bytes.Contains(v, []byte("://")) && !dotted(v) && !identifier(v) && !code(v) {
			s.add(i, k, kindAuthorization, kindAuthorization, prioPlace)
		}
		return
	}
	scheme := string(bytes.ToLower(t[i:j]))
	for j < stop && t[j] == ' ' {
		j++
	}
	switch scheme {
	case "bearer", "token", "apikey", "api-key", "api-token", "key", "basic", "jwt", "bot", "splunk", "ssws", "negotiate", "ntlm", "genie", "genie-key":
		k := j
		for k < len(t) && (k < stop || stop-i >= maxHeader) && !s.ends(k) && t[k] != ',' && t[k] != ';' {
			k++
		}
		kind := kindBearer
		if scheme == "basic" {
			kind = kindBasic
		}
		v := t[j:k]
		if len(v) >= 6 && !placeholder(v) && !proseWord(v) {
			s.add(j, k, kind, kind, prioPlace)
		}
	case "oauth", "digest", "aws4-hmac-sha256", "hawk", "signature", "sharedkey", "sharedkeylite", "aws", "hmac", "google-oauth":
		if stop-i >= maxHeader {
			stop = s.runEnd(stop)
		}
		if v := bytes.TrimRight(t[j:stop], " \t"); len(v) >= 12 && !placeholder(v) && mixed(v) {
			s.add(j, j+len(v), kindAuthorization, kindAuthorization, prioPlace)
		}
	}
}

func isCodeEnd(c byte) bool {
	return c == ',' || c == ';' || c == ')' || c == '}' || c == ']'
}

// proseWord reports whether a word behind "Bearer" is English rather than a
// token: letters only, in one case, and short.
func proseWord(b []byte) bool {
	if len(b) > 24 {
		return false
	}
	for i, c := range b {
		if !isLower(c) && (i > 0 || !isUpper(c)) && c != '.' && c != '-' && c != '_' && c != '(' && c != ')' {
			return false
		}
	}
	return true
}

// cookie masks the values of a Cookie header, and the value, without its
// attributes, of a Set-Cookie header.
func (s *scan) cookie(start, end int) {
	t := s.text
	set := start >= 4 && hasFold(t, start-4, "set-")
	if !set && start > 0 && (isWord(t[start-1]) || t[start-1] == '-') {
		return
	}
	if end < len(t) && isWord(t[end]) {
		return
	}
	i, stop, ok := s.headerValue(end)
	if !ok {
		return
	}
	// name=value, or it is no cookie.
	eq := i
	for eq < stop && (isWord(t[eq]) || t[eq] == '-' || t[eq] == '.') {
		eq++
	}
	if eq == i || eq >= stop || t[eq] != '=' {
		return
	}
	if stop-i >= maxHeader {
		stop = s.lineEnd(stop, 64<<10)
	}
	if set {
		if k := bytes.IndexByte(t[i:stop], ';'); k >= 0 {
			stop = i + k
		}
	}
	s.cookies(i, stop)
}

// cookies masks the values of the cookies in text[i:stop].
func (s *scan) cookies(i, stop int) {
	t := s.text
	for i < stop {
		end := stop
		if k := bytes.IndexByte(t[i:stop], ';'); k >= 0 {
			end = i + k
		}
		next := end + 1
		for end > i && (isSpace(t[end-1]) || t[end-1] == '\\') {
			end--
		}
		for k := i; k+1 < end; k++ {
			if t[k] == '\\' && (t[k+1] == 'r' || t[k+1] == 'n') {
				end, next = k, stop
			}
		}
		for i < end && t[i] == ' ' {
			i++
		}
		from := i
		if k := bytes.IndexByte(t[i:end], '='); k >= 0 {
			from = i + k + 1
		}
		if from < end && !cookieAttribute(t[i:max(i, from-1)]) && !placeholder(t[from:end]) {
			s.add(from, end, kindCookie, kindCookie, prioPlace)
		}
		i = next
	}
}

// cookieAttribute reports whether a name is one that says how a cookie is
// kept (RFC 6265 §4.1).
func cookieAttribute(name []byte) bool {
	switch string(bytes.ToLower(name)) {
	case "path", "domain", "expires", "max-age", "samesite", "version", "priority":
		return true
	}
	return false
}

// bearer masks what follows the word Bearer anywhere, if it looks like a
// token.
func (s *scan) bearer(_, end int) {
	t := s.text
	i := end
	for i < len(t) && i-end < 4 && (t[i] == ' ' || t[i] == ':' || t[i] == '"') {
		i++
	}
	if i == end {
		return
	}
	k := i
	for k < len(t) && (isBase64(t[k]) || t[k] == '.' || t[k] == '~' || t[k] == '=') {
		k++
	}
	for k > i && t[k-1] == '.' {
		k--
	}
	v := t[i:k]
	if len(v) >= 16 && mixed(v) && !placeholder(v) && entropy(v) > 2.8 && !identifier(v) {
		s.add(i, k, kindBearer, kindBearer, prioPlace)
	}
}

// basic masks what follows the word Basic, if it is the base64 of a user and a
// password.
func (s *scan) basic(_, end int) {
	t := s.text
	if end >= len(t) || t[end] != ' ' {
		return
	}
	i := end + 1
	k := i
	for k < len(t) && k-i < 512 && (isBase64(t[k]) || t[k] == '=') {
		k++
	}
	if k-i < 8 {
		return
	}
	v := bytes.TrimRight(t[i:k], "=")
	plain, err := base64.RawStdEncoding.DecodeString(string(v))
	if err != nil || bytes.IndexByte(plain, ':') <= 0 {
		return
	}
	for _, c := range plain {
		if c < ' ' || c == 0x7f {
			return
		}
	}
	s.add(i, k, kindBasic, kindBasic, prioPlace)
}

// curlUser masks the password of curl's -u and --user.
func (s *scan) curlUser(start, end int) {
	if start < s.curlEnd {
		return
	}
	t := s.text
	stop := s.commandEnd(end)
	s.curlEnd = stop
	for i := end; i < stop; i++ {
		if t[i] != '-' || !isSpace(t[i-1]) && !isQuote(t[i-1]) {
			continue
		}
		j, cookie := 0, false
		switch {
		case hasPrefix(t, i, "--user ") || hasPrefix(t, i, "--user="):
			j = i + len("--user ")
		case hasPrefix(t, i, "--proxy-user ") || hasPrefix(t, i, "--proxy-user="):
			j = i + len("--proxy-user ")
		case hasPrefix(t, i, "-b ") || hasPrefix(t, i, "--cookie ") || hasPrefix(t, i, "--cookie="):
			j = i + bytes.IndexAny(t[i:], " =") + 1
			cookie = true
		case hasPrefix(t, i, "-u") && i+2 < len(t) && t[i+2] == ' ':
			j = i + 3
		case hasPrefix(t, i, "-u"):
			j = i + 2
		default:
			continue
		}
		for j < stop && t[j] == ' ' {
			j++
		}
		q := byte(0)
		if j < stop && isQuote(t[j]) {
			q = t[j]
			j++
		}
		k := j
		for k < stop && (q != 0 && t[k] != q && !s.escape(k) || q == 0 && !s.ends(k)) {
			k++
		}
		if cookie {
			if bytes.IndexByte(t[j:k], '=') > 0 {
				s.cookies(j, k)
			}
			i = max(i, k-1)
			continue
		}
		colon := bytes.IndexByte(t[j:k], ':')
		if colon == k-j-1 && colon >= 8 && mixed(t[j:j+colon]) && !placeholder(t[j:j+colon]) {
			// A key as the user, and no password.
			s.add(j, j+colon, kindUserOption, kindUserOption, prioPlace)
			i = k
			continue
		}
		if colon == k-j-1 && q == 0 && k < stop && isQuote(t[k]) {
			// user:'password'
			quote := t[k]
			j, colon = k, 0
			for k++; k < stop && t[k] != quote; k++ {
			}
		}
		if colon < 0 || placeholder(t[j+colon+1:k]) || sampleWord(t[j+colon+1:k]) {
			continue
		}
		s.add(j+colon+1, k, kindUserOption, kindUserOption, prioPlace)
		i = k
	}
}

// optionP masks the password of mysql's -pPASSWORD, and the -p PASSWORD of
// sshpass and of several log-in commands.
func (s *scan) optionP(start, end int) {
	if start < s.curlEnd {
		return
	}
	t := s.text
	stop := s.commandEnd(end)
	s.curlEnd = stop
	// mysql's -p takes its value without a space, and asks for it otherwise.
	letter, spaced := byte('p'), !hasFold(t, start, "mysql") && !hasFold(t, start, "maria")
	if hasFold(t, start, "redis") {
		letter = 'a'
	}
	for i := end + 1; i+2 < stop; i++ {
		if t[i] != '-' || t[i+1] != letter || t[i-1] != ' ' || spaced && t[i+2] != ' ' && !hasFold(t, start, "sshpass") {
			continue
		}
		j := i + 2
		for spaced && j < stop && t[j] == ' ' {
			j++
		}
		if j >= stop {
			return
		}
		k := j
		if isQuote(t[j]) {
			j++
			for k = j; k < stop && t[k] != t[j-1]; k++ {
			}
		} else {
			for k < stop && !s.ends(k) && t[k] != ';' && t[k] != '|' {
				k++
			}
		}
		if k-j >= 3 && !placeholder(t[j:k]) && t[j] != '-' {
			s.add(j, k, kindUserOption, kindUserOption, prioPlace)
		}
		return
	}
}

// commandEnd returns where the command line ends in which i stands: a line
// break that no backslash continues.
func (s *scan) commandEnd(i int) int {
	t := s.text
	stop := min(len(t), i+4<<10)
	from := i
	for i < stop && (t[i] != '\n' || i > 0 && t[i-1] == '\\') {
		i++
	}
	s.steps += i - from
	return i
}

// manifestKind reports whether t says `kind: Secret`.
func manifestKind(t []byte) bool {
	for {
		i := bytes.Index(t, []byte("ecret"))
		if i < 0 {
			return false
		}
		if hasFold(t, i-7, "kind: s") || hasFold(t, i-8, `kind: "s`) || hasFold(t, i-8, `kind: 's`) {
			return true
		}
		t = t[i+5:]
	}
}

// secretManifest masks the values of a Kubernetes Secret.
func (s *scan) secretManifest(start, end int) {
	t := s.text
	if start < s.manifestEnd {
		return
	}
	if s.manifests == 0 {
		s.manifests = 1
		if manifestKind(t) {
			s.manifests = 2
		}
	}
	if s.manifests == 1 {
		return
	}
	// The kind stands within a few lines, before or behind.
	around := t[max(0, start-800):min(len(t), end+800)]
	s.steps += len(around)
	if !manifestKind(around) {
		return
	}
	line := start
	for line > 0 && t[line-1] != '\n' && start-line < 64 {
		line--
	}
	indent := 0
	for line+indent < start && t[line+indent] == ' ' {
		indent++
	}
	for i := end; i < len(t); {
		stop := s.lineEnd(i, 64<<10)
		j := i
		for j < stop && t[j] == ' ' {
			j++
		}
		if j-i <= indent && j < stop {
			break
		}
		colon := bytes.IndexByte(t[j:min(stop, j+256)], ':')
		if colon > 0 {
			v := j + colon + 1
			for v < stop && (t[v] == ' ' || isQuote(t[v])) {
				v++
			}
			w := stop
			for w > v && (isSpace(t[w-1]) || isQuote(t[w-1])) {
				w--
			}
			if w > v && t[v] != '|' && t[v] != '>' && !placeholder(t[v:w]) {
				s.add(v, w, kindManifest, kindManifest, prioPlace)
			}
		}
		i = stop + 1
		s.manifestEnd = i
	}
}
