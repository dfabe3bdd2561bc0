package quality

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Logs returns n lines of logs and tool output as sessions have them, without
// any secret: ids of every sort, digests, lock files, test runs, placeholders.
func Logs(seed uint64, n int) string {
	g := newGen(seed)
	var b strings.Builder
	for range n {
		b.WriteString(g.line())
		b.WriteByte('\n')
	}
	return b.String()
}

func newGen(seed uint64) gen { return gen{rand.New(rand.NewPCG(seed, 6))} }

func (g gen) line() string {
	switch g.IntN(34) {
	case 0:
		return "commit " + g.chars('h', 40)
	case 1:
		return g.chars('h', 7) + " Fix the token refresh (#" + g.chars('d', 4) + ")"
	case 2:
		return fmt.Sprintf("2026-03-01T10:%02d:%02d.%03dZ INFO  request_id=%s method=GET path=/v1/items/%s status=200 dur=%dms", g.IntN(60), g.IntN(60), g.IntN(1000), g.chars('g', 1), g.chars('d', 6), g.IntN(900))
	case 3:
		return `{"id":"msg_01` + g.chars('A', 22) + `","type":"message","usage":{"input_tokens":` + g.chars('d', 4) + `,"output_tokens":` + g.chars('d', 3) + `,"cache_read_input_tokens":0}}`
	case 4:
		return `{"type":"tool_use","id":"toolu_01` + g.chars('A', 22) + `","name":"Bash","input":{"command":"ls -la"}}`
	case 5:
		return "github.com/acme/lib v1." + g.chars('d', 2) + ".0 h1:" + base64.StdEncoding.EncodeToString([]byte(g.chars('A', 32)))
	case 6:
		return `      "integrity": "sha512-` + base64.StdEncoding.EncodeToString([]byte(g.chars('b', 64))) + `",`
	case 7:
		return `"cache_key":"` + g.chars('h', 32) + `"`
	case 8:
		return "sha256:" + g.chars('h', 64)
	case 9:
		return fmt.Sprintf("--- PASS: TestToken/case_%d (0.0%ds)", g.IntN(90), g.IntN(9))
	case 10:
		return "ok  \tways/hooks/redact\t0." + g.chars('d', 3) + "s"
	case 11:
		return `password = os.environ["DB_PASSWORD"]`
	case 12:
		return "API_KEY=${API_KEY:-}"
	case 13:
		return `token: "<your-token>"`
	case 14:
		return "export GITHUB_TOKEN=$(gh auth token)"
	case 15:
		return "    if password == nil || len(token) == 0 { return errNoToken }"
	case 16:
		return "req_" + g.chars('A', 24) + " completed"
	case 17:
		return "session " + g.chars('g', 1) + " started, pid " + g.chars('d', 5)
	case 18:
		return "image: registry.example.com/app@sha256:" + g.chars('h', 64)
	case 19:
		return "GET https://api.example.com/v2/users?page_token=" + g.chars('d', 8) + "&sort_key=name HTTP/1.1"
	case 20:
		return "-rw-r--r-- 1 dev dev " + g.chars('d', 5) + " Mar  1 10:00 id_ed25519.pub"
	case 21:
		return "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + g.chars('b', 43) + " dev@host"
	case 22:
		return "-----BEGIN CERTIFICATE-----"
	case 23:
		return g.chars('b', 64)
	case 24:
		return "func (s *Server) authenticate(ctx context.Context, token string) (*User, error) {"
	case 25:
		return `const tokenKey = "session_token"; const secretName = "app-secret";`
	case 26:
		return "The password field is required. Passwords must have 12 characters."
	case 27:
		return "primary_key: id, foreign_key: user_id, cache_key: users/list/v2"
	case 28:
		return "Authorization: Bearer ${TOKEN}"
	case 29:
		return `curl -H "Authorization: Bearer $TOKEN" -u "$USER:$PASS" https://api.example.com`
	case 30:
		return "postgres://user:${PGPASSWORD}@localhost:5432/db and http://localhost:8080/path@v1"
	case 31:
		return "max_tokens: 4096, temperature: 0.2, stop_token: </s>, tokens used: " + g.chars('d', 5)
	case 32:
		return "e2e/" + g.chars('a', 8) + "/trace-" + g.chars('h', 32) + ".zip"
	default:
		return "etag: W/\"" + g.chars('h', 32) + "\" x-request-id: " + g.chars('h', 16) + " content-md5: " + g.chars('b', 22) + "=="
	}
}
