package sensors

import (
	"strings"
	"testing"

	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
)

const head = "spec: 1\nkind: ways\n"

const goodRule = "  - name: log\n    sections: [tool_call]\n    dispatch: {file: {path: ~/a.jsonl}}\n"

// rule makes a file with one rule, whose keys are given at four spaces.
func rule(lines string) string {
	return head + "rules:\n  - name: log\n    sections: [tool_call]\n" + lines
}

const toFile = "    dispatch: {file: {path: ~/a.jsonl}}\n"

func command(lines string) string {
	return rule("    dispatch:\n      command:\n" + lines)
}

func httpRule(lines string) string {
	return rule("    dispatch:\n      http:\n        url: https://example.com/in\n" + lines)
}

// Every row is a file named s.yaml, and the one error it must have: its place,
// the key it is about, and parts of what it says.
func TestMistakes(t *testing.T) {
	for _, row := range []struct {
		name, text    string
		line, col     int
		key           string
		message, hint string
	}{
		// The file as a whole.
		{"empty file", "", 1, 1, "", "the file is empty", "write a sensor"},
		{"only a comment", "# nothing\n", 1, 1, "", "the file is empty", ""},
		{"a list", "- spec: 1\n", 1, 1, "", "is no sensor", "begins with spec: 1"},
		{"a word", "sensor\n", 1, 1, "", "is no sensor", ""},
		{"tab", "spec: 1\nkind: ways\nrules:\n\t- name: log\n", 4, 1, "", "a tab in front of the line", "spaces"},
		{"two documents", head + "rules: []\n---\n" + head, 4, 1, "", "a second document begins here", "one file"},
		{"not UTF-8", head + "description: caf\xe9\n", 3, 17, "", "the byte 0xe9", "UTF-8"},
		{"UTF-16", "\xff\xfes\x00p\x00", 1, 1, "", "is UTF-16", ""},
		{"NUL byte", head + "description: a\x00b\n", 3, 15, "", "holds a NUL byte", ""},
		{"NUL escape", head + "description: \"a\\0b\"\nrules:\n" + goodRule, 3, 14, "description", "holds a NUL character", ""},
		{"anchor at the top", "&a\nspec: 1\n", 1, 1, "", "the anchor &a is not available", ""},
		// The sensor's own keys.
		{"misspelt key", head + "enabeld: false\nrules:\n" + goodRule, 3, 1, "enabeld", `"enabeld" is no key of a sensor file`, `did you mean "enabled"?`},
		{"key in the wrong place", head + "timeout: 5s\nrules:\n" + goodRule, 3, 1, "timeout", `"timeout" is no key of a sensor file`, "it belongs in a rule"},
		{"unknown key", head + "zzzzzz: 5s\nrules:\n" + goodRule, 3, 1, "zzzzzz", "is no key of a sensor file", "its keys are spec, kind, name"},
		{"duplicate key", head + "enabled: true\nenabled: false\nrules:\n" + goodRule, 4, 1, "enabled", `"enabled" stands here a second time; the first is on line 3`, "remove one"},
		{"spec missing", "kind: ways\nrules:\n" + goodRule, 1, 1, "spec", "spec is missing", "add the line spec: 1"},
		{"kind missing", "spec: 1\nrules:\n" + goodRule, 1, 1, "kind", "kind is missing", "add the line kind: ways"},
		{"spec of the future", "spec: 2\nkind: ways\nrules:\n" + goodRule, 1, 7, "spec", "must be 1, not 2", ""},
		{"spec in quotes", "spec: \"1\"\nkind: ways\nrules:\n" + goodRule, 1, 7, "spec", `"1" in quotes is text, not a number`, "remove the quotes"},
		{"another kind", "spec: 1\nkind: attend\nrules:\n" + goodRule, 2, 7, "kind", `must be ways, not "attend"`, ""},
		{"another name", head + "name: other\nrules:\n" + goodRule, 3, 7, "name", "the file is named s.yaml, and its sensor other", "leave name out"},
		{"bad name", head + "name: Tool Audit\nrules:\n" + goodRule, 3, 7, "name", `"Tool Audit" is no name`, "1 to 64 characters"},
		{"enabled: no", head + "enabled: no\nrules:\n" + goodRule, 3, 10, "enabled", `"no" is neither true nor false`, "write true or false"},
		{"enabled in quotes", head + "enabled: \"true\"\nrules:\n" + goodRule, 3, 10, "enabled", "in quotes is text", "remove the quotes"},
		{"enabled empty", head + "enabled:\nrules:\n" + goodRule, 3, 1, "enabled", "has no value", ""},
		{"description list", head + "description: [a]\nrules:\n" + goodRule, 3, 14, "description", "is a list where one value is wanted", ""},
		{"no rules", head, 0, 0, "rules", "the sensor has no rules", "add rules"},
		{"empty rules", head + "rules: []\n", 0, 0, "rules", "the sensor has no rules", ""},
		{"rules without value", head + "rules:\n", 3, 1, "rules", "must be a list of rules", ""},
		{"rules as group", head + "rules:\n  log: {}\n", 4, 3, "rules", "must be a list of rules", "- name: ..."},
		{"too many rules", head + "rules: [" + strings.Repeat("{name: a},", 101) + "]\n", 3, 8, "rules", "more than 100 rules", ""},
		{"merge key", head + "<<: {enabled: true}\nrules:\n" + goodRule, 3, 1, "<<", "the merge key << is not available", ""},
		// One rule.
		{"rule without name", head + "rules:\n  - sections: [tool_call]\n" + toFile, 4, 5, "rules[].name", "the rule has no name", "name: log"},
		{"rule is a word", head + "rules: [log]\n", 3, 9, "rules[]", "is no rule", ""},
		{"rule name with dot", head + "rules:\n  - name: a.b\n    sections: [tool_call]\n" + toFile, 4, 11, "rules[].name", `"a.b" is no name`, ""},
		{"rule name no", head + "rules:\n  - name: no\n    sections: [tool_call]\n" + toFile, 4, 11, "rules[].name", "no without quotes is a truth value", "in quotes"},
		{"misspelt rule key", rule("    dispach: {file: {path: ~/x}}\n"), 6, 5, "rules[].dispach", `"dispach" is no key of a rule`, `did you mean "dispatch"?`},
		{"destinaton", rule(toFile + "    destinaton: x\n"), 7, 5, "rules[].destinaton", `"destinaton" is no key of a rule`, ""},
		{"duplicate rule key", rule(toFile + "    queue: 1\n    queue: 2\n"), 8, 5, "rules[].queue", "a second time; the first is on line 7", ""},
		{"path one level up", rule("    dispatch: {path: ~/x}\n"), 6, 16, "rules[].dispatch.path", `"path" is no key of dispatch`, "it belongs in dispatch.file"},
		{"no sections", head + "rules:\n  - name: log\n" + toFile, 4, 5, "rules[].sections", "the rule selects no section", "add sections"},
		{"empty sections", head + "rules:\n  - name: log\n    sections: []\n" + toFile, 5, 15, "rules[].sections", "must be a list of sections", ""},
		{"one section as text", head + "rules:\n  - name: log\n    sections: tool_call\n" + toFile, 5, 15, "rules[].sections", "must be a list of sections", "[tool_call, tool_result]"},
		{"unknown section", head + "rules:\n  - name: log\n    sections: [tool_call, tool_cal]\n" + toFile, 5, 27, "rules[].sections", `"tool_cal" is no section`, `did you mean "tool_call"?`},
		{"section from elsewhere", head + "rules:\n  - name: log\n    sections: [everything]\n" + toFile, 5, 16, "rules[].sections", `"everything" is no section`, "the sections are user_prompt"},
		{"section twice", head + "rules:\n  - name: log\n    sections: [tool_call, tool_call]\n" + toFile, 5, 27, "rules[].sections", "tool_call is listed twice", ""},
		{"timeout without unit", rule(toFile + "    timeout: 5\n"), 7, 14, "rules[].timeout", `"5" has no unit`, "write 5s for seconds"},
		{"timeout too long", rule(toFile + "    timeout: 2h\n"), 7, 14, "rules[].timeout", "must be 1ms to 1h, not 2h", ""},
		{"timeout zero", rule(toFile + "    timeout: 0s\n"), 7, 14, "rules[].timeout", "must be 1ms to 1h, not 0s", ""},
		{"queue zero", rule(toFile + "    queue: 0\n"), 7, 12, "rules[].queue", "must be 1 to 1000000, not 0", ""},
		{"queue too big", rule(toFile + "    queue: 1000001\n"), 7, 12, "rules[].queue", "must be 1 to 1000000, not 1000001", ""},
		{"queue in hex", rule(toFile + "    queue: 0x10\n"), 7, 12, "rules[].queue", "no whole number", ""},
		{"queue in quotes", rule(toFile + "    queue: \"10\"\n"), 7, 12, "rules[].queue", "in quotes is text, not a number", ""},
		{"mode misspelt", rule(toFile + "    mode: blokcing\n"), 7, 11, "rules[].mode", `must be async or blocking, not "blokcing"`, `did you mean "blocking"?`},
		{"redact misspelt", rule(toFile + "    redact: secret\n"), 7, 13, "rules[].redact", `must be secrets or none, not "secret"`, `did you mean "secrets"?`},
		{"redact no", rule(toFile + "    redact: no\n"), 7, 13, "rules[].redact", `must be secrets or none, not "no"`, ""},
		{"chain yes", rule(toFile + "    chain: yes\n"), 7, 12, "rules[].chain", "neither true nor false", ""},
		{"anchor in a rule", rule(toFile + "    timeout: &t 5s\n"), 7, 14, "rules[].timeout", "the anchor &t is not available", ""},
		{"tag in a rule", rule(toFile + "    queue: !!int \"5\"\n"), 7, 12, "rules[].queue", "the tag !!int is not available", ""},
		{"dotted key", rule("    dispatch.file: {path: ~/x}\n"), 6, 5, "rules[].dispatch.file", `"dispatch.file" is no key of a rule`, "as a group: dispatch: {file: ...}"},
		{"key of the table, not of a file", head + "rules[].mode: async\nrules:\n" + goodRule, 3, 1, "rules[].mode", `"rules[].mode" is no key of a sensor file`, ""},
		// Targets.
		{"no target", rule(""), 4, 5, "rules[].dispatch", "the rule has no target", "dispatch: {file"},
		{"empty dispatch", rule("    dispatch: {}\n"), 6, 15, "rules[].dispatch", "the rule has no target", ""},
		{"two targets", rule("    dispatch:\n      file: {path: ~/x}\n      http: {url: https://a/}\n"), 7, 7, "rules[].dispatch", "more than one target: file, http", "keep one"},
		{"unknown target", rule("    dispatch: {htpp: {url: https://a/}}\n"), 6, 16, "rules[].dispatch.htpp", `"htpp" is no key of dispatch`, `did you mean "http"?`},
		{"target without value", rule("    dispatch:\n      file:\n"), 7, 7, "rules[].dispatch.file", "must be a group of keys", "path, format, template"},
		{"file is a path", rule("    dispatch: {file: ~/x}\n"), 6, 22, "rules[].dispatch.file", "must be a group of keys", ""},
		{"file without path", rule("    dispatch: {file: {format: jsonl}}\n"), 6, 22, "rules[].dispatch.file.path", "dispatch.file has no path", ""},
		{"relative path", rule("    dispatch: {file: {path: audit/x}}\n"), 6, 29, "rules[].dispatch.file.path", `"audit/x" is relative`, "begin it with / or ~/"},
		{"another's home", rule("    dispatch: {file: {path: ~bob/x}}\n"), 6, 29, "rules[].dispatch.file.path", "another user", ""},
		{"shell variable", rule("    dispatch: {file: {path: $HOME/x}}\n"), 6, 29, "rules[].dispatch.file.path", "does not begin with / or ~/", "${NAME}"},
		{"bad variable", rule("    dispatch: {file: {path: \"/x/${A-b}\"}}\n"), 6, 29, "rules[].dispatch.file.path", "${A-b} is no environment variable", ""},
		{"open variable", rule("    dispatch: {file: {path: \"/x/${A\"}}\n"), 6, 29, "rules[].dispatch.file.path", "a ${ without its }", ""},
		{"path is a directory", rule("    dispatch: {file: {path: /tmp/}}\n"), 6, 29, "rules[].dispatch.file.path", "names a directory", ""},
		{"path is home", rule("    dispatch: {file: {path: \"~\"}}\n"), 6, 29, "rules[].dispatch.file.path", "names a directory", ""},
		{"path with NUL", rule("    dispatch: {file: {path: \"/a\\0b\"}}\n"), 6, 29, "rules[].dispatch.file.path", "holds a NUL", ""},
		{"path with newline", rule("    dispatch: {file: {path: \"/a\\nb\"}}\n"), 6, 29, "rules[].dispatch.file.path", "holds a line break", ""},
		{"format misspelt", rule("    dispatch: {file: {path: /x, format: json}}\n"), 6, 41, "rules[].dispatch.file.format", `must be jsonl or text, not "json"`, `did you mean "jsonl"?`},
		{"template with jsonl", rule("    dispatch: {file: {path: /x, template: \"{ts}\"}}\n"), 6, 43, "rules[].dispatch.file.template", "a template is for format: text", ""},
		{"template open brace", rule("    dispatch: {file: {path: /x, format: text, template: \"a {ts\"}}\n"), 6, 57, "rules[].dispatch.file.template", "character 3: a { without its }", ""},
		{"template empty name", rule("    dispatch: {file: {path: /x, format: text, template: \"{data.}\"}}\n"), 6, 57, "rules[].dispatch.file.template", `{data.}: "" is no field name`, ""},
		{"http without url", rule("    dispatch: {http: {headers: {A: b}}}\n"), 6, 22, "rules[].dispatch.http.url", "dispatch.http has no url", ""},
		{"url without scheme", rule("    dispatch: {http: {url: example.com/x}}\n"), 6, 28, "rules[].dispatch.http.url", "is no http or https address", "https://"},
		{"url of another scheme", rule("    dispatch: {http: {url: \"file:///etc/passwd\"}}\n"), 6, 28, "rules[].dispatch.http.url", "is no http or https address", ""},
		{"url without host", rule("    dispatch: {http: {url: \"https:///x\"}}\n"), 6, 28, "rules[].dispatch.http.url", "names no host", ""},
		{"url with port alone", rule("    dispatch: {http: {url: \"http://:80/\"}}\n"), 6, 28, "rules[].dispatch.http.url", "names no host", ""},
		{"url with password", rule("    dispatch: {http: {url: \"https://me:pw@a/\"}}\n"), 6, 28, "rules[].dispatch.http.url", "holds a user name or password", "header"},
		{"url with fragment", rule("    dispatch: {http: {url: \"https://a/#x\"}}\n"), 6, 28, "rules[].dispatch.http.url", "after # is never sent", ""},
		{"url with space", rule("    dispatch: {http: {url: \"https://a/b c\"}}\n"), 6, 28, "rules[].dispatch.http.url", "holds a space", ""},
		{"url with newline", rule("    dispatch: {http: {url: \"https://a/\\nb\"}}\n"), 6, 28, "rules[].dispatch.http.url", "control character", ""},
		{"url with bad port", rule("    dispatch: {http: {url: \"https://a:port/\"}}\n"), 6, 28, "rules[].dispatch.http.url", "is no address", ""},
		{"header with newline", httpRule("        headers: {X-A: \"a\\nInjected: b\"}\n"), 9, 19, "rules[].dispatch.http.headers", "holds a line break", "one line"},
		{"header name with newline", httpRule("        headers: {\"X\\nA\": b}\n"), 9, 19, "rules[].dispatch.http.headers", "is no name of a header", ""},
		{"header name with space", httpRule("        headers: {X A: b}\n"), 9, 19, "rules[].dispatch.http.headers", `"X A" is no name of a header`, ""},
		{"header twice", httpRule("        headers:\n          X-A: b\n          x-a: c\n"), 11, 11, "rules[].dispatch.http.headers", "stands here twice in different spelling", ""},
		{"header of ours", httpRule("        headers: {Webhook-Id: b}\n"), 9, 19, "rules[].dispatch.http.headers", "is set by ways itself", ""},
		{"header of the connection", httpRule("        headers: {transfer-encoding: b}\n"), 9, 19, "rules[].dispatch.http.headers", "is set by ways itself", ""},
		{"header without value", httpRule("        headers:\n          X-A:\n"), 10, 11, "rules[].dispatch.http.headers", "X-A: has no value", ""},
		{"header true", httpRule("        headers: {X-A: true}\n"), 9, 24, "rules[].dispatch.http.headers", "truth value", "in quotes"},
		{"headers as list", httpRule("        headers: [X-A]\n"), 9, 18, "rules[].dispatch.http.headers", "must be names with values", ""},
		{"secret instead of its variable", httpRule("        secret_env: whsec_abc=\n"), 9, 21, "rules[].dispatch.http.secret_env", "no name of an environment variable", "never stands in the file"},
		{"command without argv", command("        input: stdin\n"), 8, 9, "rules[].dispatch.command.argv", "dispatch.command has no argv", ""},
		{"argv empty", command("        argv: []\n"), 8, 15, "rules[].dispatch.command.argv", "is empty", "the program"},
		{"argv is a line", command("        argv: notify-send hi\n"), 8, 15, "rules[].dispatch.command.argv", "must be a list", "no shell"},
		{"argv line in a list", command("        argv: [notify-send hi]\n"), 8, 16, "rules[].dispatch.command.argv", "holds a space", "an item of its own"},
		{"argv relative", command("        argv: [./run.sh]\n"), 8, 15, "rules[].dispatch.command.argv", `the program "./run.sh" is a relative path, and there is no cwd`, "add cwd"},
		{"argv without program", command("        argv: [\"\", x]\n"), 8, 16, "rules[].dispatch.command.argv", "the program has no name", ""},
		{"argv with NUL", command("        argv: [cat, \"a\\0\"]\n"), 8, 21, "rules[].dispatch.command.argv", "holds a NUL", ""},
		{"argv with true", command("        argv: [cat, yes]\n"), 8, 21, "rules[].dispatch.command.argv", "truth value", "in quotes"},
		{"argv with a list", command("        argv: [cat, [x]]\n"), 8, 21, "rules[].dispatch.command.argv", "is a list where one value", ""},
		{"argv placeholder", command("        argv: [cat, \"{data\"]\n        input: args\n"), 8, 15, "rules[].dispatch.command.argv", "argv[1]: character 1: a { without its }", ""},
		{"env name", command("        argv: [cat]\n        env: {A-B: c}\n"), 9, 15, "rules[].dispatch.command.env", `"A-B" is no name of an environment variable`, ""},
		{"env twice", command("        argv: [cat]\n        env: {A: c, A: d}\n"), 9, 21, "rules[].dispatch.command.env", "a second time", ""},
		{"cwd relative", command("        argv: [cat]\n        cwd: tmp\n"), 9, 14, "rules[].dispatch.command.cwd", "is relative", ""},
		{"chain into a text file", rule("    dispatch: {file: {path: /x, format: text}}\n    chain: true\n"), 7, 12, "rules[].chain", "lines in the text format cannot be chained", ""},
		{"checkpoints without a chain", rule(toFile + "    checkpoint: {every: 5}\n"), 7, 25, "rules[].checkpoint.every", "of a chain only", ""},
		// Conditions.
		{"where as text", rule(toFile + "    where: data.name\n"), 7, 12, "rules[].where", "must be paths with values", ""},
		{"where empty", rule(toFile + "    where:\n"), 7, 5, "rules[].where", "must be paths with values", "{} for no condition"},
		{"tool: no", rule(toFile + "    where: {data.tool: no}\n"), 7, 24, "rules[].where", "data.tool: no without quotes is a truth value", `write "no"`},
		{"where without value", rule(toFile + "    where:\n      data.name:\n"), 8, 7, "rules[].where", "data.name: has no value", "null"},
		{"where hex", rule(toFile + "    where: {seq: 0x10}\n"), 7, 18, "rules[].where", "seq: 0x10 is no number", "decimal"},
		{"where .inf", rule(toFile + "    where: {seq: {above: .inf}}\n"), 7, 26, "rules[].where", ".inf is no number", ""},
		{"where octal", rule(toFile + "    where: {seq: 007}\n"), 7, 18, "rules[].where", "007 is no number", ""},
		{"where list", rule(toFile + "    where: {data.name: [Bash]}\n"), 7, 13, "rules[].where", "a list says nothing by itself", ""},
		{"where nested", rule(toFile + "    where: {data.name: {not: {like: x}}}\n"), 7, 30, "rules[].where", "operators cannot be nested", ""},
		{"where list in list", rule(toFile + "    where: {data.name: {in: [[x]]}}\n"), 7, 30, "rules[].where", "a list in a list", ""},
		{"where operator misspelt", rule(toFile + "    where: {data.name: {equal: x}}\n"), 7, 25, "rules[].where", "data.name: equal: no such operator", `did you mean "equals"?`},
		{"where bad path", rule(toFile + "    where: {\"data[x]\": 1}\n"), 7, 13, "rules[].where", "data[x]: [x] is no element", ""},
		{"where lookahead", rule(toFile + "    where: {data.name: {matches: \"(?=x)\"}}\n"), 7, 25, "rules[].where", "data.name: matches: RE2 has no lookahead", ""},
		{"where path twice", rule(toFile + "    where:\n      data.name: a\n      data.name: b\n"), 9, 7, "rules[].where", "a second time", ""},
		{"where operator twice", rule(toFile + "    where:\n      data.name: {not: a, not: b}\n"), 8, 27, "rules[].where", "a second time", ""},
		{"where alias", rule(toFile + "    where:\n      data.name: &n Bash\n"), 8, 18, "rules[].where", "the anchor &n", ""},
		{"where merge key", rule(toFile + "    where:\n      <<: {data.name: x}\n"), 8, 7, "rules[].where", "the merge key", ""},
		{"match misspelt", rule(toFile + "    match: al\n"), 7, 12, "rules[].match", `must be all or any, not "al"`, `did you mean "all"?`},
		{"match with no", rule(toFile + "    match: {tool: no}\n"), 7, 12, "rules[].match", "is a group where one value is wanted", ""},
	} {
		errs := problem.Errors(Check("s", []byte(row.text)))
		if len(errs) != 1 {
			t.Errorf("%s: %d errors: %v", row.name, len(errs), errs)
			continue
		}
		p := errs[0]
		if p.File != "s.yaml" || p.Sensor != "s" || p.Key != row.key || p.Line != row.line || p.Col != row.col ||
			!strings.Contains(p.Message, row.message) || !strings.Contains(p.Suggestion, row.hint) {
			t.Errorf("%s: %s", row.name, p)
		}
	}
}

func TestGoodFiles(t *testing.T) {
	for _, row := range []struct{ name, text string }{
		{"shortest", head + "rules:\n" + goodRule},
		{"BOM", "\xef\xbb\xbf" + head + "rules:\n" + goodRule},
		{"CRLF", strings.ReplaceAll(head+"rules:\n"+goodRule, "\n", "\r\n")},
		{"document marks", "---\n" + head + "rules:\n" + goodRule + "...\n"},
		{"as JSON", `{"spec":1,"kind":"ways","rules":[{"name":"a","sections":["tool_call"],"dispatch":{"file":{"path":"/x"}}}]}`},
		{"name is the file's", head + "name: s\nrules:\n" + goodRule},
		{"numeric names", head + "rules:\n  - name: 123\n    sections: [tool_call]\n" + toFile},
		{"env with a number", command("        argv: [sleep, 5]\n        env: {PORT: 8080, DATE: 2026-01-02}\n        cwd: ~/x\n")},
		{"program beside its directory", command("        argv: [bin/run]\n        cwd: ~/tool\n")},
		{"program with spaces", command("        argv: [\"/opt/my tool/run\", \"\"]\n")},
		{"braces in the program", command("        argv: [\"{x\"]\n        input: args\n")},
		{"headers of one's own", httpRule("        headers: {Host: a.example, Content-Type: application/cloudevents+json, User-Agent: x, X-Empty: \"\"}\n")},
		{"braces on stdin", command("        argv: [jq, \"{a\"]\n")},
		{"placeholders", command("        argv: [logger, \"{data.name|ts}\", \"{{x}}\", \"{data.a[0].b}\"]\n        input: args\n")},
		{"url with variables", rule("    dispatch: {http: {url: \"https://${HOST}:${PORT}/in?k=${KEY}\", headers: {Authorization: \"Bearer ${TOKEN}\"}, secret_env: SECRET}}\n")},
		{"url is a variable", rule("    dispatch: {http: {url: \"${URL}\"}}\n")},
		{"IPv6", rule("    dispatch: {http: {url: \"http://[::1]:8080/\"}}\n")},
		{"text format", rule("    dispatch: {file: {path: /x, format: text}}\n")},
		{"plain dollar", rule("    dispatch: {file: {path: \"/x/$${A}\"}}\n")},
		{"where of all kinds", rule(toFile + "    where:\n      data.a: null\n      data.b: ~\n      data.c: True\n      data.d: 1e3\n      data.e: \"no\"\n      data.f: 2026-01-02\n      data.g: {in: [a, 1, null], not: x}\n")},
		{"where empty object", rule(toFile + "    where: {}\n")},
	} {
		if errs := problem.Errors(Check("s", []byte(row.text))); len(errs) != 0 {
			t.Errorf("%s: %v", row.name, errs)
		}
	}
}

// One broken rule: the others of the file run.
func TestOneBrokenRule(t *testing.T) {
	text := head + "rules:\n" +
		"  - {name: a, sections: [tool_call], dispatch: {file: {path: /a}}}\n" +
		"  - {name: b, sections: [tool_call], dispatch: {file: {path: /b}}, timeout: 5}\n" +
		"  - {name: c, sections: [tool_call], dispatch: {file: {path: /c}}}\n" +
		"  - {name: d, sections: [tool_call], dispatch: {file: {path: /d}}}\n" +
		"  - {name: d, sections: [tool_call], dispatch: {file: {path: /e}}}\n" +
		"  - 7\n"
	table := schema.NewTable(schema.Sensor())
	s, problems := merge(table, "s", []*document{parse(table, Source{Layer: plan.User, File: "f"}, "s", []byte(text))})
	if s.Refused {
		t.Fatal("the sensor was refused")
	}
	var active, refused []string
	for _, r := range s.Rules {
		if r.Active {
			active = append(active, r.ID)
		}
		if r.Refused {
			refused = append(refused, r.ID)
		}
	}
	if got := strings.Join(active, " "); got != "s/a s/c" {
		t.Errorf("active: %s", got)
	}
	if got := strings.Join(refused, " "); got != "s/b s/d s/rules[5]" {
		t.Errorf("refused: %s", got)
	}
	var said []string
	for _, p := range problem.Errors(problems) {
		said = append(said, p.String())
	}
	want := []string{
		`f:5:77: error: s/b: rules[].timeout: "5" has no unit; write 5s for seconds or 5ms for milliseconds`,
		`f:7:5: error: s/d: rules[].name: two rules are named d; the other is on line 8; rename one of them`,
		`f:8:5: error: s/d: rules[].name: two rules are named d; the other is on line 7; rename one of them`,
		`f:9:5: error: s/rules[5]: rules[]: is no rule; a rule is a group of keys that begins with name`,
	}
	if strings.Join(said, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
}

// What is used, but ought to be said.
func TestNotices(t *testing.T) {
	for _, row := range []struct {
		name, text string
		severity   problem.Severity
		message    string
	}{
		{"http", httpRule(""), problem.Notice, "sends session content off this machine, to https://example.com/in"},
		{"loopback", rule("    dispatch: {http: {url: \"http://127.0.0.1:9000/x?token=abc\"}}\n"), problem.Notice, "to http://127.0.0.1:9000/x, an address of this machine"},
		{"localhost", rule("    dispatch: {http: {url: \"http://localhost/\"}}\n"), problem.Notice, "an address of this machine"},
		{"not localhost", rule("    dispatch: {http: {url: \"http://localhost.example.com/\"}}\n"), problem.Notice, "off this machine, to http://localhost.example.com/"},
		{"command", command("        argv: [logger, -t, x]\n"), problem.Notice, "hands session content to the program logger, which may send it off"},
		{"unmasked", rule(toFile + "    redact: none\n"), problem.Warning, "sends unmasked session content, secrets included, to ~/a.jsonl"},
		{"blocking too long", rule(toFile + "    mode: blocking\n    timeout: 30s\n"), problem.Warning, "a blocking rule is cut off after 10s"},
		{"no such field", rule(toFile + "    where: {tool_name: Bash}\n"), problem.Warning, `a condition sees no field "tool_name", so tool_name matches nothing`},
		{"field misspelt", rule(toFile + "    where: {dat.name: Bash}\n"), problem.Warning, `a condition sees no field "dat"`},
	} {
		problems := Check("s", []byte(row.text))
		if len(problems) != 1 || problems[0].Severity != row.severity || !strings.Contains(problems[0].Message, row.message) {
			t.Errorf("%s: %v", row.name, problems)
		}
	}
	if problems := Check("s", []byte(rule(toFile+"    where: {$..command: x, \"*\": q, data.name: z}\n"))); len(problems) != 0 {
		t.Errorf("paths that begin with no plain name: %v", problems)
	}
}

// What leaves the machine unmasked is said first and loudest, as long as it runs.
func TestLoudest(t *testing.T) {
	program := command("        argv: [logger, -t, x]\n")
	for _, row := range []struct{ name, text, message string }{
		{"address", httpRule("") + "    redact: none\n", "SENDS UNMASKED SESSION CONTENT, SECRETS INCLUDED, OFF THIS MACHINE: TO https://example.com/in"},
		{"program", program + "    redact: none\n", "HANDS UNMASKED SESSION CONTENT, SECRETS INCLUDED, TO A PROGRAM, WHICH MAY SEND IT OFF THIS MACHINE: logger"},
		{"off", program + "    redact: none\n    enabled: false\n", ""},
		{"masked", httpRule(""), ""},
		{"loopback", rule("    dispatch: {http: {url: \"http://127.0.0.1:9000/x\"}}\n    redact: none\n"), ""},
		{"file", rule(toFile + "    redact: none\n"), ""},
	} {
		problems := Check("s", []byte(row.text))
		if len(problems) == 0 && row.message == "" {
			continue
		}
		p := problems[0]
		if p.Loud != (row.message != "") || p.Loud && (p.Message != row.message || p.Severity != problem.Warning || !strings.Contains(p.String(), ": WARNING: ")) {
			t.Errorf("%s: %v", row.name, problems)
		}
	}
}

// A message quotes what is wrong, but no secret that stands in the wrong place.
func TestMessagesAreMasked(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	for _, text := range []string{
		rule(toFile + "    timeout: " + token + "\n"),
		rule(toFile + "    mode: " + token + "\n"),
		rule(toFile + "    " + token + ": 1\n"),
		rule(toFile + "    where: {" + token + ": x}\n"),
		rule("    dispatch: {http: {url: \"ftp://" + token + "@h/\"}}\n"),
		rule("    dispatch: {http: {url: \"https://h/\", headers: {\"X " + token + "\": x}}}\n"),
		rule("    dispatch: {command: {argv: [\"curl " + token + "\"]}}\n"),
	} {
		problems := Check("s", []byte(text))
		if len(problems) == 0 {
			t.Errorf("no problem: %s", text)
		}
		for _, p := range problems {
			if strings.Contains(p.Message+p.Suggestion, token[8:]) {
				t.Errorf("%s", p)
			}
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, name := range Shipped() {
		text, err := ShippedText(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, seed := range []string{
		"", head, head + "rules:\n" + goodRule, httpRule("        headers: {A: \"${B}\"}\n"), command("        argv: [a]\n"),
		rule(toFile + "    where: {a: {in: [1]}, b: \"*\"}\n"), head + "rules: [{name: a, name: b}]\n", head + "rules: [[], {}, ~]\n",
		rule("    dispatch: {file: {path: &x /a}, http: *x}\n"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, p := range Check("s", text) {
			if p.Message == "" || p.Severity == "" {
				t.Fatalf("a problem without words: %+v", p)
			}
			_ = p.String()
		}
	})
}
