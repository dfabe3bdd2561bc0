package redact

import "bytes"

// What is no secret: placeholders, code, references, words.

// placeholder reports whether a value stands for a secret that is elsewhere:
// a variable, a template's gap, a mask, a sample.
func placeholder(v []byte) bool {
	v = bytes.Trim(v, `"'`+"`")
	n := len(v)
	if n == 0 {
		return true
	}
	switch v[0] {
	case '$':
		// $NAME, ${NAME}, $(command), ${{ expression }}; not $2b$ or $ecret!.
		if n > 1 && (v[1] == '{' || v[1] == '(') {
			return true
		}
		i := 1
		for i < n && isWord(v[i]) {
			i++
		}
		return n > 1 && (i == n || v[i] == ':' || v[i] == '/' || v[i] == '-' && i+1 < n && v[i+1] == '>') && !isDigit(v[1]) && !hasDigitAndCase(v[1:i])
	case '{':
		return n > 1 && (v[1] == '{' || v[n-1] == '}' || bytes.IndexByte(v, '}') > 0 && bytes.IndexByte(v, '}') < 24)
	case '<':
		return v[n-1] == '>' || n < 40
	case '%':
		if n > 2 && v[n-1] == '%' {
			return true
		}
		return n <= 3 || v[1] == '(' || v[1] == 's' && n < 6
	case '@':
		return n > 2 && v[n-1] == '@'
	case '#':
		return n > 1 && v[1] == '{'
	case '[':
		if v[n-1] == ']' {
			return !hasDigitAndCase(v[1:n-1]) || false
		}
	case '(':
		return v[n-1] == ')'
	}
	if bytes.HasPrefix(v, []byte("...")) || bytes.HasSuffix(v, []byte("...")) && n < 24 || bytes.HasPrefix(v, []byte("…")) {
		return true
	}
	if bytes.Contains(v, []byte("****")) || bytes.Contains(v, []byte("••")) || bytes.Contains(v, []byte("xxxxx")) || bytes.Contains(v, []byte("XXXXX")) {
		return n < 48
	}
	return sample(v)
}

// numeral reports whether v is a number as in a program: decimal of up to six
// digits, hexadecimal, with a fraction.
func numeral(v []byte) bool {
	if len(v) > 0 && v[0] == '-' {
		v = v[1:]
	}
	if len(v) > 2 && v[0] == '0' && v[1]|0x20 == 'x' && len(v) <= 18 {
		for _, c := range v[2:] {
			if hexValue(c) < 0 {
				return false
			}
		}
		return true
	}
	for _, c := range v {
		if !isDigit(c) && c != '.' && c != '_' {
			return false
		}
	}
	return len(v) <= 6
}

func hasDigit(v []byte) bool {
	for _, c := range v {
		if isDigit(c) {
			return true
		}
	}
	return false
}

func hasDigitAndCase(v []byte) bool {
	sh := shapeOf(v)
	return sh.digit > 0 && sh.lower > 0 && sh.upper > 0
}

// sample reports whether a value is made of the words that stand for a value
// in documentation, and has nothing else of substance in it.
func sample(v []byte) bool {
	if len(v) > 64 {
		return false
	}
	rest, hit := 0, false
	for i := 0; i < len(v); {
		if !isLetter(v[i]) {
			if isDigit(v[i]) {
				rest++
			}
			i++
			continue
		}
		j := i
		for j < len(v) && isLetter(v[j]) && (j == i || !isUpper(v[j]) || isUpper(v[j-1])) {
			j++
		}
		switch w := string(bytes.ToLower(v[i:j])); w {
		case "your", "example", "examples", "placeholder", "changeme", "dummy", "redacted", "sample", "insert", "replace", "todo", "fixme", "xxx", "xxxx", "yours", "hidden", "masked", "fake", "mock", "notreal":
			hit = true
		case "my", "here", "key", "api", "token", "secret", "password", "passwd", "pass", "the", "a", "me", "with", "change", "enter", "value", "id", "access", "client", "auth", "user", "db", "app", "test", "goes", "this", "sk", "pk", "live", "of", "in", "real", "actual", "string", "some", "new", "x":
		default:
			rest += j - i
		}
		i = j
	}
	return hit && rest <= 6
}

// filler reports whether a secret's text says that it is none: one byte
// repeated, or the alphabet in order.
func filler(v []byte) bool {
	if bytes.Contains(v, []byte("abcdefghijklmnopqrstuvwxyz")) {
		return true
	}
	same := 1
	for i := 1; i < len(v); i++ {
		if v[i] == v[0] {
			same++
		}
	}
	return len(v) >= 3 && same == len(v)
}

// code reports whether an unquoted value is an expression: a call, a member, an
// index, a literal that is no text.
func code(v []byte) bool {
	switch string(bytes.ToLower(bytes.TrimRight(v, ",;)"))) {
	case "none", "null", "nil", "true", "false", "undefined", "string", "str", "int", "bytes", "bool", "any", "optional", "self", "this", "new", "await", "func", "function", "lambda", "return", "void", "object", "required", "unknown", "number", "boolean", "secretstr", "[]byte", "yes", "no", "on", "off", "not", "empty", "set", "unset", "default", "invalid", "missing", "is", "the", "and", "or", "if", "in", "for", "with", "from":
		return true
	}
	if v[0] == '!' && len(v) < 12 && identifier(v[1:]) && !hasDigit(v) {
		return true // a YAML tag: !vault, !Ref
	}
	if v[0] == '[' || v[0] == '{' || v[0] == '(' || v[0] == '&' || v[0] == '*' && (identifier(v[1:]) || dotted(v[1:])) {
		return true
	}
	i := 0
	for i < len(v) && isWord(v[i]) {
		i++
	}
	if i == 0 || i == len(v) || isDigit(v[0]) {
		return false
	}
	switch v[i] {
	case '(', '[', '{':
		return true
	case ':':
		return i+1 < len(v) && v[i+1] == ':'
	case '-':
		return i+1 < len(v) && v[i+1] == '>'
	case '?':
		return i+1 < len(v) && v[i+1] == '.'
	case '.':
		// a.b.c, without digits: os.environ, self.password; and minified code,
		// in which more of the expression follows: s._password,l=
		for k, c := range v[i:] {
			if isCodeEnd(c) || c == '(' || c == '[' || c == '=' && i+k+1 < len(v) {
				return true
			}
			if !isWord(c) && c != '.' {
				return false
			}
		}
		return !hasDigit(v)
	case ',', ';', ')':
		// name;more, null,more
		return i+1 < len(v) && identifier(v[:i])
	}
	return false
}

// dotted reports whether v is a member of something: pkg.Name2, C.NAME_6.
func dotted(v []byte) bool {
	dots, digits, first := 0, 0, true
	for _, c := range v {
		switch {
		case c == '.':
			if first {
				return false
			}
			dots++
			first = true
			continue
		case isDigit(c):
			digits++
			if first {
				return false
			}
		case !isLetter(c) && c != '_':
			return false
		}
		first = false
	}
	return dots > 0 && !first && digits*3 <= len(v)
}

// constant reports whether v is a constant's name: WORDS_IN_CAPITALS.
func constant(v []byte) bool {
	seps := 0
	for _, c := range v {
		if c == '_' {
			seps++
		} else if !isUpper(c) && !isDigit(c) {
			return false
		}
	}
	return seps > 0 && isUpper(v[0]) && wordyDigits(bytes.ToLower(v))
}

// identifier reports whether v is a name as in a program: letters, with
// underscores, dots or capitals between its words, and few digits at its end.
func identifier(v []byte) bool {
	if len(v) == 0 || !isLetter(v[0]) && v[0] != '_' {
		return false
	}
	digits := 0
	for _, c := range v {
		switch {
		case isLetter(c) || c == '_' || c == '.' || c == '-':
			if digits > 0 {
				return false
			}
		case isDigit(c):
			digits++
		default:
			return false
		}
	}
	return digits <= 1
}

// identifier2 reports whether v is a plain variable name that repeats what its
// own name says: password, newPassword, pass_word.
func identifier2(v []byte) bool {
	return identifier(v) && (bytes.IndexByte(v, '_') >= 0 || classify(v) != classNone || labelWord(v)) || typeWord(v) || hasUpperInside(v) && wordyDigits(v)
}

func hasUpperInside(v []byte) bool {
	for i := 1; i < len(v); i++ {
		if isUpper(v[i]) && isLower(v[i-1]) {
			return identifier(v)
		}
	}
	return false
}

// labelWord reports whether a quoted value names a field rather than filling
// it: the words of names themselves.
func labelWord(v []byte) bool {
	switch string(bytes.ToLower(v)) {
	case "password", "passwd", "pwd", "pass", "secret", "token", "string", "text", "hidden", "required", "username", "user", "str", "email", "none", "null", "true", "false", "new-password", "current-password", "off", "on", "keyword", "object", "optional", "varchar", "char", "bytes", "invalid", "incorrect", "missing", "unknown", "basic", "bearer", "oauth2", "key":
		return true
	}
	return name(v) && !hasDigit(v) && classify(v) >= classToken
}

// name reports whether v could be a program's name: word characters, and words
// in them.
func name(v []byte) bool {
	digits := 0
	for i, c := range v {
		if !isWord(c) && c != '-' && c != '.' || i == 0 && isDigit(c) {
			return false
		}
		if isDigit(c) {
			digits++
		}
	}
	return digits*6 <= len(v)
}

// reference reports whether v says where a secret is: a path, a URL without
// credentials, the name of a resource.
func reference(v []byte, sh shape) bool {
	if v[0] == '/' || bytes.HasPrefix(v, []byte("./")) || bytes.HasPrefix(v, []byte("../")) || bytes.HasPrefix(v, []byte("~/")) {
		// Base64 may begin with a slash; a path has a word in it.
		return bytes.IndexByte(v[1:], '/') >= 0 && wordy(v) || sh.digit == 0 && wordy(v)
	}
	if bytes.Contains(v, []byte("://")) {
		return true
	}
	if bytes.HasPrefix(v, []byte("arn:")) || bytes.HasPrefix(v, []byte("op:")) || bytes.HasPrefix(v, []byte("vault:")) || bytes.HasPrefix(v, []byte("projects/")) || bytes.HasPrefix(v, []byte("ssm:")) || bytes.HasPrefix(v, []byte("data:")) || bytes.HasPrefix(v, []byte("sha256:")) || bytes.HasPrefix(v, []byte("env:")) || bytes.HasPrefix(v, []byte("file:")) {
		return true
	}
	if bytes.Contains(v, []byte("os.environ")) || bytes.Contains(v, []byte("process.env")) || bytes.Contains(v, []byte("getenv")) || bytes.Contains(v, []byte("${")) || bytes.Contains(v, []byte("$(")) || bytes.Contains(v, []byte("{{")) {
		return true
	}
	return false
}

// wordy reports whether v is made of words: letters in runs of one case, with
// separators between, and at most a few digits.
func wordy(v []byte) bool {
	letters, breaks, digits := 0, 0, 0
	for i, c := range v {
		switch {
		case isLetter(c):
			letters++
			if i > 0 && isUpper(c) && isLower(v[i-1]) || i > 0 && isLower(c) && isUpper(v[i-1]) && i > 1 && isUpper(v[i-2]) {
				breaks++
			}
		case isDigit(c):
			digits++
		default:
			if i > 0 && isAlnum(v[i-1]) {
				breaks++
			}
		}
	}
	if digits > 3 || letters == 0 {
		return false
	}
	return letters >= 3*breaks && vowels(v)*6 >= letters
}

func vowels(v []byte) int {
	n := 0
	for _, c := range v {
		switch c | 0x20 {
		case 'a', 'e', 'i', 'o', 'u', 'y':
			n++
		}
	}
	return n
}

// wordyDigits reports whether v is words with a number: user-service-2,
// sha256-rsa, v1beta1. Most runs of letters must be longer than two and have a
// vowel, and vowels must be as frequent as in words.
func wordyDigits(v []byte) bool {
	runs, odd, digits := 0, 0, 0
	for i := 0; i < len(v); {
		if !isLetter(v[i]) {
			if isDigit(v[i]) {
				digits++
			}
			i++
			continue
		}
		j := i + 1
		for j < len(v) && isLower(v[j]) {
			j++
		}
		runs++
		if j-i < 3 || vowels(v[i:j]) == 0 {
			odd++
		}
		i = j
	}
	return len(v) <= 28 && digits <= 4 && digits*4 <= len(v) && runs > 0 && odd*3 <= runs && vowels(v)*10 >= 3*(len(v)-digits)
}

// hexID reports whether v is a digest or a UUID in its plain form.
func hexID(v []byte) bool {
	n := 0
	for _, c := range v {
		if hexValue(c) >= 0 {
			n++
		} else if c != '-' {
			return false
		}
	}
	return n == 32 || n == 40 || n == 64
}

// maxWords bounds the words of a name.
const maxWords = 12

// classify says what a name promises of its value.
func classify(name []byte) class {
	var buf [maxName + 64]byte
	var words [maxWords][]byte
	n := 0
	low := buf[:0]
	begin := 0
	flush := func() {
		if len(low) > begin && n < maxWords {
			words[n] = low[begin:]
			n++
		}
		begin = len(low)
	}
	if len(name) > len(buf) {
		name = name[len(name)-len(buf):]
	}
	for i, c := range name {
		switch {
		case isUpper(c):
			if i > 0 && (isLower(name[i-1]) || isDigit(name[i-1])) || i > 0 && i+1 < len(name) && isUpper(name[i-1]) && isLower(name[i+1]) && !(i+2 == len(name) && name[i+1] == 's') {
				flush()
			}
			low = append(low, c+'a'-'A')
		case isLower(c):
			low = append(low, c)
		case isDigit(c):
			// A trailing number is no word: password2.
			flush()
		default:
			flush()
		}
	}
	flush()
	// What says which of several values it is comes last and says nothing.
	for n > 1 && trailing(words[n-1]) {
		n--
	}
	if n == 0 {
		return classNone
	}
	last := string(words[n-1])
	prev := ""
	if n > 1 {
		prev = string(words[n-2])
	}
	has := func(suffix string) bool { return len(last) >= len(suffix) && last[len(last)-len(suffix):] == suffix }
	switch {
	case has("password") || has("passwd") || has("passwort") || has("passphrase") || has("passcode") || has("pwd") && last != "cwd" || last == "pass" && (n > 1 || len(name) == 4) || has("dbpass") || has("userpass") || has("sshpass") || has("smtppass") || has("ldappass") || last == "phrase" && prev == "pass" || last == "word" && prev == "pass" || last == "psw" || last == "pw" && n > 1:
		switch prev {
		case "reset", "forgot", "change", "show", "hide", "has", "is", "no", "use", "require", "validate", "check", "verify", "confirm":
			if prev != "confirm" {
				return classNone
			}
		case "old":
			if last == "pwd" {
				return classNone
			}
		}
		if last == "pwd" && n == 1 && isUpper(name[0]) {
			// PWD is the working directory.
			return classNone
		}
		return classPassword
	case has("credential") && (prev == "amz" || prev == "goog"):
		return classNone
	case has("secret") || has("credential") || has("credentials") || last == "creds" || last == "cred" || has("secretkey"):
		return classSecret
	case has("token"):
		switch prev {
		case "page", "next", "continuation", "cancel", "cancellation", "eos", "bos", "pad", "unk", "mask", "sep", "cls", "special", "stop", "start", "end", "lexer", "parse", "syntax", "sync", "per", "max", "min", "last", "first", "prev", "current", "cur", "design", "css", "color", "begin", "image", "is", "expected", "unexpected", "single", "invalid":
			return classNone
		}
		return classToken
	case has("apikey") || has("accesskey") || has("privatekey") || has("authkey") || has("masterkey") || has("sharedkey") || has("signingkey") || has("encryptionkey") || has("accountkey"):
		return classKey
	case last == "key":
		switch prev {
		case "api", "secret", "private", "access", "auth", "encryption", "encrypt", "signing", "sign", "master", "service", "app", "application", "client", "consumer", "license", "admin", "session", "deploy", "storage", "shared", "webhook", "hmac", "crypto", "jwt", "cipher", "aes", "account", "role", "anon", "subscription", "security", "write", "ingest", "integration", "account-key":
			return classKey
		case "public", "foreign", "primary", "cache", "sort", "partition", "hash", "map", "dict", "object", "row", "column", "unique", "index", "group", "routing", "shard", "lookup", "join", "idempotency", "translation", "i18n", "react", "sub", "natural", "bucket", "schema", "sequence", "hot", "pub", "issue", "project", "message", "config", "registry", "state", "storage-key", "query", "field", "property", "event", "press", "arrow", "keyboard", "this", "item", "list", "json", "param", "header", "cookie", "metric", "label", "tag", "env", "node", "tree", "root", "str", "string", "int":
			return classNone
		}
		return classGeneric
	case last == "auth" || last == "access" || last == "authorization" || has("auth"):
		return classGeneric
	}
	return classNone
}

// trailing reports whether a name's last word only says which value it is.
func trailing(w []byte) bool {
	switch string(w) {
	case "value", "val", "string", "str", "plain", "plaintext", "raw", "text", "b", "base", "v", "new", "old", "prod", "production", "dev", "development", "test", "live", "staging", "primary", "secondary", "default", "current", "data", "main", "backup", "ro", "rw", "read", "readonly", "env", "var", "local", "master", "admin", "root", "qa":
		return true
	}
	return false
}

// passPhrase reports whether v is a pass phrase rather than a message: four
// words or more in lower case, and none of those that make a sentence.
func passPhrase(v []byte) bool {
	n := 0
	for w := range bytes.FieldsSeq(v) {
		for _, c := range w {
			if !isLower(c) {
				return false
			}
		}
		switch string(w) {
		case "a", "an", "the", "is", "are", "was", "be", "to", "of", "for", "in", "on", "at", "by", "and", "or", "not", "no", "your", "my", "must", "should", "will", "can", "enter", "with", "from", "password", "passphrase", "this", "that", "if", "used", "has", "have":
			return false
		}
		n++
	}
	return n >= 4
}
