package redact

// A matcher is a rule written by hand: it looks at the text around a keyword
// that stands at text[start:end]. Each reads a bounded stretch of text, or
// moves scan.covered past what it read.
type matcher func(s *scan, start, end int)

// matcherWord lists the keywords of one matcher.
type matcherWord struct {
	matcher matcher
	words   []string
	exact   bool // as spelled
}

func matcherWords() []matcherWord {
	return []matcherWord{
		{matcher: (*scan).pemBegin, words: []string{"-----begin"}},
		{matcher: (*scan).pemEnd, words: []string{"-----end"}},
		{matcher: (*scan).pemBase64, words: []string{"LS0tLS1CRUdJTi"}, exact: true},
		{matcher: (*scan).encoded, words: encodedWords(), exact: true},
		{matcher: (*scan).putty, words: []string{"private-lines:"}},
		{matcher: (*scan).jwt, words: []string{"eyJ"}, exact: true},
		{matcher: (*scan).urlUser, words: []string{"://"}},
		{matcher: (*scan).authorization, words: []string{"authorization"}},
		{matcher: (*scan).cookie, words: []string{"cookie"}},
		{matcher: (*scan).bearer, words: []string{"bearer"}},
		{matcher: (*scan).basic, words: []string{"basic"}},
		{matcher: (*scan).curlUser, words: []string{"curl"}},
		{matcher: (*scan).optionP, words: []string{"mysql", "mariadb", "sshpass", "docker login", "podman login", "az login", "registry login", "redis-cli", "mongosh"}},
		{matcher: (*scan).secretManifest, words: []string{"data:\n"}},
		{matcher: (*scan).named, words: []string{"pass", "pwd", "secret", "token", "key", "cred", "auth"}},
	}
}

// Kind describes a kind of secret that is no pattern rule's.
type Kind struct {
	// Name is what stands in the placeholder.
	Name string
	// Text says what it is.
	Text string
}

const (
	kindPrivateKey    = "private-key"
	kindJWT           = "jwt"
	kindURLPassword   = "url-password"
	kindURLToken      = "url-token"
	kindAuthorization = "authorization"
	kindBearer        = "bearer-token"
	kindBasic         = "basic-auth"
	kindCookie        = "cookie"
	kindUserOption    = "user-password"
	kindManifest      = "kubernetes-secret"
	kindPassword      = "password"
	kindSecret        = "secret"
	kindToken         = "token"
	kindKey           = "api-key"
	kindGeneric       = "generic-secret"
)

// matcherKinds lists the kinds of the matchers, and of the engine itself.
func matcherKinds() []Kind {
	return []Kind{
		{kindPrivateKey, "a PEM, OpenSSH, PGP or PuTTY private key, whole or cut off, also in base64"},
		{kindJWT, "a JSON Web Token"},
		{kindURLPassword, "the password in a URL or connection string: `scheme://user:password@host`"},
		{kindURLToken, "a token in place of the user in a URL: `https://token@host`"},
		{kindAuthorization, "the credentials of an `Authorization` header of another scheme"},
		{kindBearer, "the token behind `Bearer` or `Token`"},
		{kindBasic, "the base64 behind `Basic`"},
		{kindCookie, "the value of a `Cookie` or `Set-Cookie` header"},
		{kindUserOption, "the password in `curl -u user:password`, `mysql -p...`, `sshpass -p ...` and the like"},
		{kindManifest, "a value in the `data` or `stringData` of a Kubernetes Secret"},
		{kindPassword, "a value assigned to a name that says password"},
		{kindSecret, "a value assigned to a name that says secret or credential"},
		{kindToken, "a value assigned to a name that says token"},
		{kindKey, "a value assigned to a name that says API, access, private or another secret key"},
		{kindGeneric, "a value of high entropy assigned to another name with key, auth or access in it"},
		{kindUnscanned, "text that was masked unread because the record had used up its share of work"},
	}
}

// lineEnd returns where the line of i ends, at most limit bytes on.
func (s *scan) lineEnd(i, limit int) int {
	stop := min(len(s.text), i+limit)
	from := i
	for i < stop && s.text[i] != '\n' && s.text[i] != '\r' {
		i++
	}
	s.steps += i - from
	return i
}

// stringEnd returns where the string of the record ends in which i stands;
// in a view of undone escapes that is not known, and it is the text's end.
func (s *scan) stringEnd(i int) int {
	if s.level > 0 {
		return len(s.text)
	}
	if p := s.doc.pieceAt(i); p < len(s.doc.pieces) && s.doc.pieces[p].start <= i {
		return s.doc.pieces[p].end
	}
	return len(s.text)
}

// opens reports whether the quote at i opens a string of the record itself,
// and where that string ends.
func (s *scan) opens(i int) (int, bool) {
	if s.level > 0 {
		return 0, false
	}
	p := s.doc.pieceAt(i)
	for ; p < len(s.doc.pieces) && s.doc.pieces[p].start <= i+1; p++ {
		if s.doc.pieces[p].start == i+1 {
			return s.doc.pieces[p].end, true
		}
	}
	return 0, false
}

func hasFold(t []byte, at int, low string) bool {
	if at < 0 || at+len(low) > len(t) {
		return false
	}
	for i := range len(low) {
		c := t[at+i]
		if isUpper(c) {
			c += 'a' - 'A'
		}
		if c != low[i] {
			return false
		}
	}
	return true
}

func isBase64(c byte) bool {
	return isAlnum(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

// jwt masks a JSON Web Token, signed, unsigned or encrypted, and one that was
// cut off in its claims.
func (s *scan) jwt(start, end int) {
	t := s.text
	if start > 0 && (isWord(t[start-1]) || t[start-1] == '-') {
		return
	}
	i, dots := end, 0
	part := start
	for i < len(t) {
		switch {
		case isWord(t[i]) || t[i] == '-':
		case t[i] == '.' && dots < 4 && (i-part >= 8 || dots >= 1):
			dots++
			part = i + 1
		default:
			goto done
		}
		i++
	}
done:
	s.steps += i - start
	if dots == 0 || i-start < 36 {
		return
	}
	for i > start && t[i-1] == '.' && dots != 2 {
		i--
		dots--
	}
	s.add(start, i, kindJWT, kindJWT, prioFormat)
}
