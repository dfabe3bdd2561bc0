package sensors

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
	"ways/config/where"
	"ways/config/yamlfile"
)

// maxItem is the length of one argument, or of one header's or variable's
// value, in bytes.
const maxItem = 8192

// checkText checks a text beyond its type. An empty message is agreement.
func checkText(key, text string) (message, hint string) {
	switch key {
	case "rules[].dispatch.file.path":
		if text == "~" || strings.HasSuffix(text, "/") {
			return fmt.Sprintf("%q names a directory", text), "add a file name"
		}
		return checkPath(text)
	case "rules[].dispatch.command.cwd":
		return checkPath(text)
	case "rules[].dispatch.http.url":
		return checkURL(text)
	case "rules[].dispatch.http.secret_env":
		if !isVariable(text) {
			return fmt.Sprintf("%q is no name of an environment variable", text),
				"write the variable's name alone, without $; the secret itself never stands in the file"
		}
	}
	return "", ""
}

func checkPath(path string) (message, hint string) {
	switch {
	case path == "":
		return "empty", ""
	case strings.ContainsAny(path, "\n\r"):
		return "holds a line break", ""
	case path == "~" || strings.HasPrefix(path, "~/") || strings.HasPrefix(path, "/") || strings.HasPrefix(path, "${"):
		return checkVariables(path)
	case strings.HasPrefix(path, "~"):
		return fmt.Sprintf("%q: the home directory of another user is not looked up", path), "write the whole path"
	case strings.HasPrefix(path, "$"):
		return fmt.Sprintf("%q does not begin with / or ~/", path), "write a variable as ${NAME}"
	}
	return fmt.Sprintf("%q is relative, and there is no directory it could be relative to", path), "begin it with / or ~/"
}

// checkVariables checks every ${NAME} in a text.
func checkVariables(text string) (message, hint string) {
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			return "", ""
		}
		if strings.HasSuffix(before, "$") {
			rest = after
			continue
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			return "holds a ${ without its }", "write ${NAME}, or $${ for a plain ${"
		}
		if !isVariable(name) {
			return fmt.Sprintf("${%s} is no environment variable", name), "a name is letters, digits and _; write $${ for a plain ${"
		}
		rest = behind
	}
}

func isVariable(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 255
}

// blankVariables puts something harmless in the place of each ${NAME}.
func blankVariables(text string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(after, "}")
		b.WriteString("x")
	}
}

func checkURL(text string) (message, hint string) {
	const want = "write an address that begins with https:// or http://"
	if message, hint := checkVariables(text); message != "" {
		return message, hint
	}
	if strings.HasPrefix(text, "${") {
		return "", "" // only the dispatcher can know
	}
	for _, r := range text {
		if r <= ' ' || r == 0x7f {
			return fmt.Sprintf("%q holds a space or a control character", text), want
		}
	}
	// A variable can stand for a port, which must be digits.
	u, err := url.Parse(strings.ReplaceAll(blankVariables(strings.ReplaceAll(text, ":${", ":0${")), ":0x", ":0"))
	switch {
	case err != nil:
		return fmt.Sprintf("%q is no address", text), want
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Sprintf("%q is no http or https address", text), want
	case u.Host == "" || u.Hostname() == "":
		return fmt.Sprintf("%q names no host", text), want
	case u.User != nil:
		return "the address holds a user name or password", "send it in a header: headers: {Authorization: \"Basic ${NAME}\"}"
	case u.Fragment != "":
		return "the part of an address after # is never sent", "remove it; write %23 for a plain #"
	}
	return "", ""
}

// describeURL names an address for people, without user, password and query,
// and says whether it names this machine.
func describeURL(text string) (to string, local bool) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		// ${NAME} is not always a valid address; what is in front of a ? or
		// behind an @ is not secret.
		to, _, _ = strings.Cut(text, "?")
		if scheme, rest, ok := strings.Cut(to, "://"); ok {
			if at := strings.LastIndexByte(rest, '@'); at >= 0 {
				rest = rest[at+1:]
			}
			to = scheme + "://" + rest
		}
		return to, false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	local = host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
	// Not EscapedPath: a ${NAME} in the path stays readable.
	return u.Scheme + "://" + u.Host + u.Path, local
}

func checkItem(key string, i int, text string) (message, hint string) {
	if key != "rules[].dispatch.command.argv" || i > 0 {
		return "", ""
	}
	switch {
	case text == "":
		return "the program has no name", "name it: an absolute path, ~/path, or a name to look up in PATH"
	case !strings.ContainsRune(text, '/') && strings.ContainsAny(text, " \t\n"):
		return fmt.Sprintf("the program %q holds a space", text), "no shell splits it: write each argument as an item of its own"
	}
	return "", ""
}

func checkPair(key, name, value string) (message, hint string) {
	if message, hint := checkVariables(value); message != "" {
		return name + ": " + message, hint
	}
	if strings.HasSuffix(key, ".env") {
		if !isVariable(name) {
			return fmt.Sprintf("%q is no name of an environment variable", name), "a name is letters, digits and _"
		}
		return "", ""
	}
	if !isToken(name) {
		return fmt.Sprintf("%q is no name of a header", name), "a name is letters, digits and - alone"
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Sprintf("the value of %s holds a line break or another control character", name), "write it on one line"
		}
	}
	switch lower := strings.ToLower(name); {
	case lower == "connection", lower == "content-length", lower == "transfer-encoding", lower == "te", lower == "trailer", lower == "upgrade", lower == "expect",
		lower == "keep-alive", lower == "proxy-connection", strings.HasPrefix(lower, "webhook-"):
		return fmt.Sprintf("the header %s is set by ways itself", name), "remove it"
	}
	return "", ""
}

// isToken reports whether s is a token as RFC 9110 section 5.6.2 has it.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// recordFields are the names at the top of a record that a condition can see:
// those of design §4 that are there before a rule is chosen.
func recordFields() []string {
	return []string{
		"v", "section", "event", "source", "ts", "session", "seq", "agent_id", "agent_type",
		"project", "cwd", "prompt_id", "data", "test",
	}
}

// unknownField warns of a path whose first name no record has: it would
// match nothing, silently. It stays a warning, since fields may be added.
func (p *parser) unknownField(f *field, pair yamlfile.Pair) {
	first, ok := where.FirstName(pair.Name)
	if !ok {
		return
	}
	for _, known := range recordFields() {
		if first == known {
			return
		}
	}
	warning := Problem{
		File: p.doc.source.File, Line: pair.Key.Line, Col: pair.Key.Column,
		Sensor: p.doc.name, Rule: p.rule.name, Key: f.key.Name,
		Message:    fmt.Sprintf("a condition sees no field %q, so %s matches nothing", first, pair.Name),
		Suggestion: "what the session said is under data, such as data.name or data.input.command",
		Severity:   problem.Warning,
	}
	if near := schema.Suggest(first, recordFields()); near != "" {
		warning.Suggestion = fmt.Sprintf("did you mean %q?", near)
	}
	p.rule.problems = append(p.rule.problems, warning)
}

// finding is what check says about a merged rule: at the key it is about.
type finding struct {
	key           string // without "rules[]."
	message, hint string
	severity      problem.Severity
	// loud is what it says, in place of message, of a rule that runs.
	loud string
}

// check looks at a merged rule as a whole: what must be there, and what does
// not go together.
func check(r *Rule) []finding {
	var found []finding
	say := func(s problem.Severity, key, message, hint string) {
		found = append(found, finding{key: key, message: message, hint: hint, severity: s})
	}
	has := func(key string) bool { _, ok := r.fields[key]; return ok }

	if !has("sections") {
		say(problem.Error, "sections", "the rule selects no section", "add sections, such as sections: [tool_call, tool_result]")
	}
	var targets []string
	for _, t := range []string{"file", "http", "command"} {
		if has("dispatch." + t) {
			targets = append(targets, t)
		}
	}
	switch len(targets) {
	case 0:
		say(problem.Error, "dispatch", "the rule has no target", "add one, such as dispatch: {file: {path: ~/audit/tools.jsonl}}")
	case 1:
		for _, need := range map[string][]string{"file": {"path"}, "http": {"url"}, "command": {"argv"}}[targets[0]] {
			if key := "dispatch." + targets[0] + "." + need; !has(key) {
				say(problem.Error, key, fmt.Sprintf("dispatch.%s has no %s", targets[0], need), "add it")
			}
		}
	default:
		say(problem.Error, "dispatch", "the rule has more than one target: "+strings.Join(targets, ", "), "keep one, and write a rule of its own for each other")
	}

	if f := r.Target.File; f != nil {
		if f.Format == "jsonl" && f.Template != "" {
			say(problem.Error, "dispatch.file.template", "a template is for format: text", "add format: text, or remove the template")
		} else if message := checkTemplate(f.Template); message != "" {
			say(problem.Error, "dispatch.file.template", message, "")
		}
	}
	if c := r.Target.Command; c != nil && len(c.Argv) > 0 {
		program := c.Argv[0]
		if c.Cwd == "" && strings.ContainsRune(program, '/') && program[0] != '/' && !strings.HasPrefix(program, "~/") {
			say(problem.Error, "dispatch.command.argv", fmt.Sprintf("the program %q is a relative path, and there is no cwd", program),
				"write an absolute path, a name without / to look up in PATH, or add cwd")
		}
		for i, arg := range c.Argv[1:] {
			if c.Input != "args" {
				break
			}
			if message := checkTemplate(arg); message != "" {
				say(problem.Error, "dispatch.command.argv", fmt.Sprintf("argv[%d]: %s", i+1, message), "")
			}
		}
	}
	if r.Chain && r.Target.File != nil && r.Target.File.Format != "jsonl" {
		say(problem.Error, "chain", "lines in the text format cannot be chained", "write format: jsonl, or remove chain")
	}
	for _, key := range []string{"checkpoint.every", "checkpoint.to"} {
		if at, set := r.Origins[key]; set && at.Layer != Default && !r.Chain {
			say(problem.Error, key, "there are checkpoints of a chain only", "add chain: true, or remove checkpoint")
			break
		}
	}
	if r.Mode == plan.Blocking && r.Timeout > blockingCap {
		say(problem.Warning, "timeout", fmt.Sprintf("a blocking rule is cut off after %s, whatever its timeout", blockingCap), "lower the timeout, or make the rule async")
	}

	to := r.Destination()
	_, local, off := r.OffMachine()
	switch {
	case off && local:
		say(problem.Notice, "dispatch", "sends session content to "+to+", an address of this machine", "")
	case off && r.Target.Command != nil:
		say(problem.Notice, "dispatch", "hands session content to the program "+to+", which may send it off this machine", "")
	case off:
		say(problem.Notice, "dispatch", "sends session content off this machine, to "+to, "")
	}
	if r.Redact == plan.RedactNone {
		say(problem.Warning, "redact", "sends unmasked session content, secrets included, to "+to, "")
		last := &found[len(found)-1]
		switch {
		case off && r.Target.Command != nil:
			last.loud = "HANDS UNMASKED SESSION CONTENT, SECRETS INCLUDED, TO A PROGRAM, WHICH MAY SEND IT OFF THIS MACHINE: " + to
		case off && !local:
			last.loud = "SENDS UNMASKED SESSION CONTENT, SECRETS INCLUDED, OFF THIS MACHINE: TO " + to
		}
	}
	return found
}
