// Package quality measures the masking: a seeded corpus of planted secrets in
// texts as a session has them, ordinary texts without any, and tests that hold
// a floor of recall and a ceiling of false marks. No secret in it is real.
package quality

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Planted is one record with one secret in it.
type Planted struct {
	// Family says what sort of secret it is: "token", "assigned", "password",
	// "env", "url", "header", "key", "jwt" or "manifest".
	Family string
	// Service is whose it is, where it is a service's.
	Service string
	// Place names the text it stands in, and how that is wrapped.
	Place string
	// Parts are what must not be seen afterwards: the secret, or the lines of
	// a key.
	Parts []string
	// Text is the plain text it was planted in.
	Text string
	// Record is the record as a spool holds it.
	Record []byte
}

// gen makes random text by a pattern: "ghp_{A36}" is ghp_ and 36 letters and
// digits.
type gen struct{ *rand.Rand }

func (g gen) pattern(p string) string {
	var b strings.Builder
	for {
		head, rest, ok := strings.Cut(p, "{")
		b.WriteString(head)
		if !ok {
			return b.String()
		}
		var set byte
		var n, m int
		body, tail, _ := strings.Cut(rest, "}")
		set = body[0]
		if lo, hi, ok := strings.Cut(body[1:], "-"); ok {
			fmt.Sscan(lo, &n)
			fmt.Sscan(hi, &m)
			n += g.IntN(m - n + 1)
		} else {
			fmt.Sscan(lo, &n)
		}
		b.WriteString(g.chars(set, n))
		p = tail
	}
}

func (g gen) chars(set byte, n int) string {
	const lower, upper, digit = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	alphabet := map[byte]string{
		'A': lower + upper + digit,
		'a': lower + digit,
		'U': upper + digit,
		'u': upper,
		'l': lower,
		'L': lower + upper,
		'd': digit,
		'h': "0123456789abcdef",
		'H': "0123456789ABCDEF",
		'2': upper + "234567",
		'w': lower + upper + digit + "-_",
		'_': lower + upper + digit + "_",
		'b': lower + upper + digit + "+/",
		'p': lower + upper + digit + "!@%^*-_+.?",
	}[set]
	if set == 'D' { // a number in base64
		return base64.StdEncoding.EncodeToString([]byte(g.chars('d', n)))
	}
	if set == 'g' { // a UUID
		h := g.chars('h', 32)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
	}
	out := make([]byte, n)
	for i := range out {
		out[i] = alphabet[g.IntN(len(alphabet))]
	}
	return string(out)
}

func pick[T any](g gen, list []T) T { return list[g.IntN(len(list))] }

// Corpus returns n records with a planted secret, the same for the same seed.
func Corpus(seed uint64, n int) []Planted {
	g := newGen(seed)
	tokens, assigned := Tokens(), Assigned()
	out := make([]Planted, 0, n)
	for i := range n {
		var p Planted
		switch i % 10 {
		case 0, 1, 2:
			f := tokens[(i/10*3+i%10)%len(tokens)]
			p = g.token(f)
		case 3, 4:
			f := assigned[(i/10*2+i%10-3)%len(assigned)]
			p = g.assigned(f)
		case 5:
			p = g.password()
		case 6:
			p = g.env()
		case 7:
			p = g.url()
		case 8:
			p = g.header()
		default:
			switch i / 10 % 3 {
			case 0:
				p = g.key()
			case 1:
				p = g.jwt()
			default:
				p = g.manifest()
			}
		}
		g.wrap(&p)
		out = append(out, p)
	}
	return out
}

// Bare are the sentences and lines that a token with a format of its own may
// stand in, without a name that gives it away.
func bare() []string {
	return []string{
		"here is the key you asked for: %s",
		"use %s for the staging run, then delete it",
		"%s",
		"export X=%s",
		"I get a 401 with `%s`, why?",
		"curl -s https://api.example.com/v1/me?k=%s&limit=1",
		"    12\tconst k = \"%s\";",
		"+  value: '%s',",
		"[2026-03-01T10:00:00Z] INFO request ok cred=%s status=200",
		"{\"status\":\"ok\",\"result\":{\"v\":\"%s\"}}",
		"<setting>%s</setting>",
		"echo %s | tool login --stdin",
		"(%s)",
		"config set x %s, then retry",
		"- %s\n- next item",
	}
}

func (g gen) token(f Format) Planted {
	secret := g.pattern(f.Pattern)
	place := g.IntN(len(bare()))
	return Planted{
		Family: "token", Service: f.Service, Place: fmt.Sprintf("bare %d", place),
		Parts: []string{secret}, Text: strings.Replace(bare()[place], "%s", secret, 1),
	}
}

// assignments are the ways a value is given to a name. N is the name in upper
// case with underscores, n in lower case, C in camel case, D with dashes.
func assignments() []string {
	return []string{
		"{N}={s}",
		"export {N}={s}",
		"{N}=\"{s}\"",
		"  \"{n}\": \"{s}\",",
		"{n}: {s}",
		"{n}: '{s}'",
		"const {C} = \"{s}\";",
		"{C} := \"{s}\"",
		"self.{n} = '{s}'",
		"docker run -e {N}={s} image",
		"--{D}={s} --verbose",
		"tool --{D} {s} --verbose",
		"    7\t{N}={s}",
		"+{N}={s}",
		"os.environ[\"{N}\"] = \"{s}\"",
		"System.setProperty(\"{N}\", \"{s}\")",
		"      - name: {N}\n        value: {s}",
		"<{C}>{s}</{C}>",
		"{n} = {s}",
		"ENV {N} {s}",
	}
}

func (g gen) assign(names []string, secret string) (string, string) {
	name := pick(g, names) // lower case, underscores
	place := g.IntN(len(assignments()) - 1)
	words := strings.Split(name, "_")
	camel := words[0]
	for _, w := range words[1:] {
		camel += strings.ToUpper(w[:1]) + w[1:]
	}
	r := strings.NewReplacer("{N}", strings.ToUpper(name), "{n}", name, "{C}", camel, "{D}", strings.ReplaceAll(name, "_", "-"), "{s}", secret)
	return r.Replace(assignments()[place]), fmt.Sprintf("assignment %d", place)
}

func (g gen) assigned(f Format) Planted {
	secret := g.pattern(f.Pattern)
	text, place := g.assign([]string{f.Service + "_api_key", f.Service + "_token", f.Service + "_secret"}, secret)
	return Planted{Family: "assigned", Service: f.Service, Place: place, Parts: []string{secret}, Text: text}
}

// person returns a password as people make them.
func (g gen) person() string {
	words := []string{"hunter", "winter", "Summer", "correct", "dragon", "Monkey", "sunset", "Berlin", "tiger", "coffee"}
	marks := []string{"!", "?", "#", "", "", "."}
	switch g.IntN(4) {
	case 0:
		return pick(g, words) + g.chars('d', 2+g.IntN(3)) + pick(g, marks[:3])
	case 1:
		return g.chars('p', 10+g.IntN(14)) + "7a"
	case 2:
		return g.chars('A', 12+g.IntN(20)) + "3"
	}
	return pick(g, words) + "-" + pick(g, words) + "-" + g.chars('d', 2)
}

func (g gen) password() Planted {
	secret := g.person()
	if g.IntN(3) == 0 {
		forms := []string{
			"the db password is %s, please run the migration",
			"log in with user admin and password: %s",
			"my password is `%s`",
			"PGPASSWORD=%s psql -h db -U app",
			"mysql -u root -p%s -e 'show tables'",
			"sshpass -p '%s' ssh deploy@host",
			"curl -u admin:%s https://nexus.example.com/",
			"CREATE USER app WITH PASSWORD '%s';",
			"machine github.com login me password %s",
			"ALTER USER 'a'@'%' IDENTIFIED BY '{s}';",
		}
		place := g.IntN(len(forms))
		text := strings.Replace(strings.Replace(forms[place], "%s", secret, 1), "{s}", secret, 1)
		return Planted{Family: "password", Place: fmt.Sprintf("sentence %d", place), Parts: []string{secret}, Text: text}
	}
	text, place := g.assign([]string{"password", "db_password", "admin_passwd", "redis_pwd", "smtp_password", "keystore_passphrase", "user_password"}, secret)
	return Planted{Family: "password", Place: place, Parts: []string{secret}, Text: text}
}

func (g gen) env() Planted {
	names := []string{"SECRET_KEY", "APP_SECRET", "JWT_SECRET", "SESSION_SECRET", "ACCESS_TOKEN", "REFRESH_TOKEN", "INTERNAL_API_KEY", "ENCRYPTION_KEY", "MASTER_KEY", "WEBHOOK_SECRET", "CLIENT_SECRET", "DB_PASS", "AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "SIGNING_KEY"}
	secret := pick(g, []func() string{
		func() string { return g.chars('h', 32) },
		func() string { return g.chars('A', 24+g.IntN(24)) + "5" },
		func() string { return g.chars('b', 40) },
		func() string { return g.chars('w', 32+g.IntN(12)) + "1k" },
		func() string { return g.person() + g.chars('d', 2) },
	})()
	text := fmt.Sprintf("NODE_ENV=production\nPORT=3000\nLOG_LEVEL=debug\n%s=%s\nCACHE_TTL=3600\n", pick(g, names), secret)
	return Planted{Family: "env", Place: "environment file", Parts: []string{secret}, Text: text}
}

func (g gen) url() Planted {
	secret := g.chars('A', 6+g.IntN(20)) + g.chars('d', 1)
	if g.IntN(3) == 0 {
		secret = strings.NewReplacer("@", "%40", "?", "", "%", "").Replace(g.person()) + "9"
	}
	forms := []string{
		"postgres://app:%s@db.internal:5432/prod?sslmode=require",
		"DATABASE_URL=mysql://root:%s@127.0.0.1:3306/app",
		"mongodb+srv://svc:%s@cluster0.abcde.mongodb.net/?retryWrites=true",
		"redis://:%s@cache:6379/0",
		"amqp://guest:%s@mq:5672/%%2f",
		"origin\thttps://deploy:%s@git.example.com/team/app.git (fetch)",
		"cloudinary://123456789012345:%s@mycloud",
		"pip install --index-url https://build:%s@pypi.example.com/simple pkg",
		"clickhouse://default:%s@ch:9000/x",
		"https://hooks.example.com/in?token=%s&x=1",
	}
	place := g.IntN(len(forms))
	if place == len(forms)-1 {
		secret = g.chars('A', 24) + "4"
	}
	return Planted{Family: "url", Place: fmt.Sprintf("url %d", place), Parts: []string{secret}, Text: strings.ReplaceAll(strings.Replace(forms[place], "%s", secret, 1), "%%", "%")}
}

func (g gen) header() Planted {
	secret := g.chars('A', 24+g.IntN(30)) + "2b"
	forms := []string{
		`curl -H "Authorization: Bearer %s" https://api.example.com/v1`,
		`curl -H 'Authorization: token %s' https://api.example.com/v1`,
		"> Authorization: Bearer %s\n> Accept: */*",
		`headers = {"Authorization": "Bearer %s"}`,
		`curl -H "X-API-Key: %s" https://api.example.com`,
		"Cookie: theme=dark; session=%s",
		"< Set-Cookie: sid=%s; Path=/; HttpOnly",
		`fetch(u, {headers: {'x-auth-token': '%s'}})`,
		`req.Header.Set("Authorization", "Bearer %s")`,
		`curl -b "session=%s" -H "Cookie: sid=%s" https://x.example.com`,
		"authorization: Basic {b}",
		"X-Amz-Security-Token: %s",
		"PRIVATE-TOKEN: %s",
	}
	place := g.IntN(len(forms))
	form := forms[place]
	if strings.Contains(form, "{b}") {
		secret = base64.StdEncoding.EncodeToString([]byte("admin:" + g.person()))
		form = strings.Replace(form, "{b}", "%s", 1)
	}
	return Planted{Family: "header", Place: fmt.Sprintf("header %d", place), Parts: []string{secret}, Text: strings.ReplaceAll(form, "%s", secret)}
}

// key makes a private key in one of the shapes a session shows it in.
func (g gen) key() Planted {
	label := pick(g, []string{"RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"})
	lines := make([]string, 4+g.IntN(20))
	for i := range lines {
		lines[i] = g.chars('b', 64)
	}
	lines[len(lines)-1] = g.chars('b', 20+g.IntN(40)) + "=="
	begin, end := "-----BEGIN "+label+"-----", "-----END "+label+"-----"
	var text, place string
	parts := lines
	switch n := g.IntN(9); n {
	case 0:
		place, text = "file", begin+"\n"+strings.Join(lines, "\n")+"\n"+end+"\n"
	case 1:
		place = "numbered lines"
		for i, l := range append(append([]string{begin}, lines...), end) {
			text += fmt.Sprintf("%6d\t%s\n", i+1, l)
		}
	case 2:
		place, text = "one line with \\n", `KEY="`+begin+`\n`+strings.Join(lines, `\n`)+`\n`+end+`\n"`
	case 3:
		place = "diff"
		text = "+" + begin + "\n+" + strings.Join(lines, "\n+") + "\n+" + end + "\n context"
	case 4:
		place, text = "cut off", "$ head -8 key.pem\n"+begin+"\n"+strings.Join(lines[:3], "\n")+"\n"
		parts = lines[:3]
	case 5:
		place, text = "end only", "$ tail key.pem\n"+strings.Join(lines[1:], "\n")+"\n"+end+"\n"
		parts = lines[1:]
	case 6:
		whole := base64.StdEncoding.EncodeToString([]byte(begin + "\n" + strings.Join(lines, "\n") + "\n" + end + "\n"))
		place, text, parts = "base64", "TLS_KEY: "+whole, []string{whole}
	case 7:
		place = "source literal"
		text = "const k = \"" + begin + "\\n\" +\n  \"" + strings.Join(lines, "\\n\" +\n  \"") + "\\n\" +\n  \"" + end + "\";"
	default:
		inner, _ := json.Marshal(map[string]string{"type": "service_account", "private_key": begin + "\n" + strings.Join(lines, "\n") + "\n" + end + "\n"})
		place, text = "service account", string(inner)
	}
	return Planted{Family: "key", Place: place, Parts: parts, Text: text}
}

func (g gen) jwt() Planted {
	enc := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	token := enc(`{"alg":"HS256","typ":"JWT"}`) + "." + enc(`{"sub":"`+g.chars('d', 10)+`","iat":1516239022}`) + "." + g.chars('w', 43)
	place := g.IntN(len(bare()))
	return Planted{Family: "jwt", Place: fmt.Sprintf("bare %d", place), Parts: []string{token}, Text: strings.Replace(bare()[place], "%s", token, 1)}
}

func (g gen) manifest() Planted {
	secret := base64.StdEncoding.EncodeToString([]byte(g.person() + g.person()))
	text := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\ndata:\n  username: YWRtaW4=\n  conn: " + secret + "\n"
	if g.IntN(2) == 0 {
		text = "apiVersion: v1\ndata:\n  conn: " + secret + "\nkind: Secret\nmetadata:\n  name: app\n"
	}
	return Planted{Family: "manifest", Place: "yaml", Parts: []string{secret}, Text: text}
}

// wrap puts the text into a record: a prompt, a reply, a tool's input or its
// output, plain or as JSON inside a string.
func (g gen) wrap(p *Planted) {
	text := p.Text
	if g.IntN(2) == 0 {
		text = pick(g, []string{"Please look at this.\n\n", "$ cat config\n", "Error: request failed\n  at main.go:12\n", "commit 3f786850e387550fdab836ed7e6dc881de23001b\n"}) + text + pick(g, []string{"\n", "\n\nThanks!", "\nexit status 1\n", "\n--\n"})
	}
	var data any
	form := pick(g, []string{"prompt", "reply", "command", "write", "output", "nested", "nested twice", "mcp"})
	section := "tool_result"
	switch form {
	case "prompt":
		section, data = "user_prompt", map[string]any{"prompt": text, "origin": "human"}
	case "reply":
		section, data = "assistant_response", map[string]any{"text": text, "final": true}
	case "command":
		section, data = "tool_call", map[string]any{"id": "toolu_" + g.chars('A', 24), "name": "Bash", "input": map[string]any{"command": text, "timeout": 120000}}
	case "write":
		section, data = "tool_call", map[string]any{"id": "toolu_" + g.chars('A', 24), "name": "Write", "input": map[string]any{"file_path": "/home/dev/app/x", "content": text}}
	case "output":
		data = map[string]any{"id": "toolu_" + g.chars('A', 24), "name": "Bash", "status": "ok", "output": map[string]any{"stdout": text, "stderr": "", "interrupted": false}}
	case "nested":
		inner, _ := json.Marshal(map[string]any{"ok": true, "body": text})
		data = map[string]any{"id": "toolu_" + g.chars('A', 24), "name": "WebFetch", "status": "ok", "output": string(inner)}
	case "nested twice":
		inner, _ := json.Marshal(map[string]any{"body": text})
		outer, _ := json.Marshal(map[string]any{"n": 1, "log": string(inner)})
		data = map[string]any{"id": "toolu_" + g.chars('A', 24), "name": "WebFetch", "status": "ok", "output": string(outer)}
	default:
		data = map[string]any{"id": "toolu_" + g.chars('A', 24), "name": "mcp__srv__call", "status": "ok", "output": []any{map[string]any{"type": "text", "text": text}}}
	}
	p.Place += " in " + form
	p.Record, _ = json.Marshal(map[string]any{
		"v": 1, "section": section, "event": "PostToolUse", "source": "hook", "ts": "2026-03-01T10:00:00.000000001Z",
		"session": g.chars('g', 1), "seq": g.IntN(5000), "agent_id": "main", "agent_type": "main",
		"project": "/home/dev/app", "cwd": "/home/dev/app", "prompt_id": g.chars('g', 1), "data": data,
	})
}
