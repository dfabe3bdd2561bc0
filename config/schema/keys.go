package schema

import (
	"time"

	"ways/config/plan"
)

func everyLayer() []plan.Layer { return []plan.Layer{plan.Shipped, plan.User, plan.Project} }

func userOnly() []plan.Layer { return []plan.Layer{plan.User} }

const (
	variables    = "`${NAME}` is replaced by that environment variable of the dispatcher at dispatch; when it is not set, the dispatch is refused and says which one. `$${` is a plain `${`."
	placeholders = "`{data.text}` is replaced by that field of the record, by nothing when the record has none; `[0]` in it names the first element of a list; of `{data.prompt|data.text}` the first that holds something is taken; `{{` and `}}` are plain braces."
)

func sensorKeys() []Key {
	all := everyLayer()
	return []Key{
		{
			Name: "spec", Type: Int, Min: 1, Max: 1, Required: true, EachFile: true, Scope: all,
			Short: "The version of this file format.",
			Long:  "Every file says it, so that a later format can be told apart.",
		},
		{
			Name: "kind", Type: Choice, Choices: []string{"ways"}, Required: true, EachFile: true, Scope: all,
			Short: "What the file is.",
			Long:  "Sensor files of other programs carry another kind, and are refused here.",
		},
		{
			Name: "name", Type: Name, Scope: all,
			Short: "The sensor's name.",
			Long:  "It must be the file's own name without `.yaml`, and may be left out. Files of different layers with one name are one sensor.",
		},
		{
			Name: "description", Type: Text, Max: 1000, Scope: all,
			Short: "What the sensor is for, for people.",
		},
		{
			Name: "enabled", Type: Bool, Default: "true", Scope: all,
			Short: "Whether any of the sensor's rules runs.",
			Long:  "`false` turns all of its rules off, whatever they say.",
		},
		{
			Name: "rules", Type: Rules, Max: 100, Required: true, Scope: all,
			Short: "The sensor's rules.",
			Long:  "Rules of different layers with one `name` are one rule, field by field; a rule that only a lower layer names stays.",
		},
		{
			Name: "rules[].name", Type: Name, Required: true, EachFile: true, Scope: all,
			Short: "The rule's name, unique in the file.",
			Long:  "`<sensor>/<rule>` is the rule's id in status, logs, counters and records.",
		},
		{
			Name: "rules[].enabled", Type: Bool, Default: "true", Scope: all,
			Short: "Whether the rule runs.",
		},
		{
			Name: "rules[].sections", Type: Sections, Max: 10, Required: true, Scope: all,
			Short: "The kinds of record the rule selects.",
			Long:  "At least one of `user_prompt`, `queued_message`, `assistant_response`, `tool_call`, `tool_result`, `subagent`, `compaction`, `session_start`, `session_end`, `way_event`, `gap`.",
		},
		{
			Name: "rules[].where", Type: Where, Max: 64, Scope: all,
			Short: "A condition on the record.",
			Long:  "Paths into the record, each with a value or with operators; see [sensors.md](sensors.md#conditions). Without one the rule takes every record of its sections. `where: {}` removes the condition of a lower layer.",
		},
		{
			Name: "rules[].match", Type: Choice, Choices: []string{"all", "any"}, Default: "all", Scope: all,
			Short: "Whether all paths of `where` must hold, or any.",
		},
		{
			Name: "rules[].dispatch", Type: Group, Required: true, Scope: all,
			Short: "Where the records go: exactly one of `file`, `http` and `command`.",
			Long:  "A layer that sets any of it replaces the whole of it. So headers written for one address never go to another that a higher layer named.",
		},
		{
			Name: "rules[].dispatch.file", Type: Group, Scope: all,
			Short: "Append each record to a local file.",
		},
		{
			Name: "rules[].dispatch.file.path", Type: Text, Max: 4096, Required: true, Scope: all,
			Short: "The file.",
			Long:  "Absolute, or beginning with `~/`. Missing directories are made. " + variables,
		},
		{
			Name: "rules[].dispatch.file.format", Type: Choice, Choices: []string{"jsonl", "text"}, Default: "jsonl", Scope: all,
			Short: "One JSON object a line, or text made by `template`.",
		},
		{
			Name: "rules[].dispatch.file.template", Type: Text, Max: 16384, Scope: all,
			Default: "{ts} {agent_type} {section}: {data.prompt|data.text|data}",
			Short:   "The text written for one record, with `{field}` placeholders.",
			Long:    "With `format: text` only. " + placeholders + " A newline is written after it.",
		},
		{
			Name: "rules[].dispatch.http", Type: Group, Scope: all,
			Short: "POST each record as JSON.",
			Long:  "May send session content off the machine: `ways sensors lint` names the address.",
		},
		{
			Name: "rules[].dispatch.http.url", Type: Text, Max: 4096, Required: true, Scope: all,
			Short: "The address, http:// or https://.",
			Long:  variables,
		},
		{
			Name: "rules[].dispatch.http.headers", Type: Pairs, Max: 64, Scope: all,
			Short: "Headers sent with every request.",
			Long:  "They may replace `Host`, `Content-Type` and `User-Agent`, and none that frames the request or begins with `webhook-`. In values, " + variables,
		},
		{
			Name: "rules[].dispatch.http.secret_env", Type: Text, Max: 255, Scope: all,
			Short: "The environment variable that holds the signing secret.",
			Long:  "Requests are then signed as Standard Webhooks says (`webhook-signature`). The secret itself never stands in the file.",
		},
		{
			Name: "rules[].dispatch.command", Type: Group, Scope: all,
			Short: "Run a program for each record.",
			Long:  "May send session content off the machine: `ways sensors lint` names the program.",
		},
		{
			Name: "rules[].dispatch.command.argv", Type: Texts, Max: 256, Required: true, Scope: all,
			Short: "The program and its arguments.",
			Long:  "Run directly, by no shell; the program is an absolute path, `~/` and a path, a path in `cwd`, or a name to look up in PATH. With `input: args` the arguments after it may hold placeholders: " + placeholders,
		},
		{
			Name: "rules[].dispatch.command.input", Type: Choice, Choices: []string{"stdin", "args"}, Default: "stdin", Scope: all,
			Short: "Whether the record comes on stdin, or in the arguments.",
		},
		{
			Name: "rules[].dispatch.command.env", Type: Pairs, Max: 64, Scope: all,
			Short: "Environment variables for the program.",
			Long:  "It gets PATH, HOME, LANG, TMPDIR, XDG_*, and these; nothing else of the session's environment. In values, " + variables,
		},
		{
			Name: "rules[].dispatch.command.cwd", Type: Text, Max: 4096, Scope: all, Default: "/",
			Short: "The program's working directory.",
			Long:  "Absolute, or beginning with `~/`. " + variables,
		},
		{
			Name: "rules[].mode", Type: Choice, Choices: []string{"async", "blocking"}, Default: "async", Scope: all,
			Short: "Whether the hook waits for the consumer.",
			Long:  "An `async` rule never holds the session. All `blocking` rules of one hook event together hold it for the largest of their timeouts, and never longer than 10 s.",
		},
		{
			Name: "rules[].timeout", Type: Duration, Min: int64(time.Millisecond), Max: int64(time.Hour), Default: "5s", Scope: all,
			Short: "How long one dispatch may take before it is killed.",
		},
		{
			Name: "rules[].queue", Type: Int, Min: 1, Max: 1_000_000, Default: "1000", Scope: all,
			Short: "How many records may wait in memory for this rule.",
			Long:  "Past it a best-effort record is dropped and counted.",
		},
		{
			Name: "rules[].delivery", Type: Choice, Choices: []string{"best_effort", "at_least_once"}, Default: "best_effort", Scope: all,
			Short: "What is promised about a record.",
			Long:  "`best_effort`: delivered within the timeout, or counted as lost. `at_least_once`: kept until the consumer accepts it, also over restarts; tried again with growing waits.",
		},
		{
			Name: "rules[].chain", Type: Bool, Default: "false", Scope: all,
			Short: "Whether the rule's records form a hash chain.",
			Long:  "Each record then carries its number, the hash of the one before it, and its own; [chain.md](chain.md) says how to check them, and what they prove. Not with `format: text`. All rules that write one file must agree.",
		},
		{
			Name: "rules[].checkpoint", Type: Group, Scope: all,
			Short: "When the chain's head is signed, and who is told.",
			Long:  "With `chain: true` only. Without it, a checkpoint is made after every 100 records and when a dispatcher ends; see [chain.md](chain.md#checkpoints).",
		},
		{
			Name: "rules[].checkpoint.every", Type: Int, Min: 1, Max: 1_000_000, Default: "100", Scope: all,
			Short: "After how many records a checkpoint is made.",
		},
		{
			Name: "rules[].checkpoint.to", Type: Text, Max: 129, Scope: all,
			Short: "The rule, `sensor/rule`, whose target is sent each checkpoint.",
			Long:  "A place that whoever can change the log cannot change. That rule must run and write another file, and send its own checkpoints nowhere. Its sections and condition do not matter.",
		},
		{
			Name: "rules[].redact", Type: Choice, Choices: []string{"secrets", "none"}, Default: "secrets", Scope: all,
			Short: "What is masked before a record leaves.",
			Long:  "`none` sends session content as it is, secrets included; `ways sensors lint` says so, and where to.",
		},
	}
}

func settingsKeys() []Key {
	user := userOnly()
	return []Key{
		{
			Name: "ways", Type: Group, Scope: user,
			Short: "Settings of ways itself.",
		},
		{
			Name: "ways.project_sensors", Type: Dirs, Max: 256, Scope: user,
			Short: "The projects whose own sensor files are loaded.",
			Long:  "Absolute paths, or beginning with `~/`. A project is trusted when its root is one of them after symbolic links are resolved; a directory below it or above it is not. No project file can set this.",
		},
		{
			Name: "spool", Type: Group, Scope: user,
			Short: "Settings of the spool.",
		},
		{
			Name: "spool.sync", Type: Choice, Choices: []string{"never", "always"}, Default: "never", Scope: user,
			Short: "Whether a hook waits until its record is on the disk.",
			Long:  "With `never` a record survives the death of every process, but not a power cut in the next seconds.",
		},
		{
			Name: "spool.max_age", Type: Duration, Min: int64(time.Minute), Max: int64(10 * 365 * 24 * time.Hour), Default: "168h", Scope: user,
			Short: "How old an undelivered record may grow.",
			Long:  "A record of an `at_least_once` rule that its consumer has not accepted by then goes to the dead letters (`ways sensors dead`).",
		},
		{
			Name: "log", Type: Group, Scope: user,
			Short: "Settings of the logs.",
		},
		{
			Name: "log.level", Type: Choice, Choices: []string{"trace", "debug", "info", "warn", "error"}, Default: "info", Scope: user,
			Short: "What dispatchers and blocking rules write to their logs.",
			Long:  "Lines of this level and above; see `ways logs`. A dispatcher reads it when it starts. The environment variable `WAYS_LOG_LEVEL` goes before it.",
		},
		{
			Name: "redaction", Type: Group, Scope: user,
			Short: "What the user adds to the built-in masking rules.",
			Long:  "See [redaction.md](redaction.md#your-own-rules). An entry with a mistake is left out and reported; the built-in rules hold whatever stands here.",
		},
		{
			Name: "redaction.rules", Type: Masks, Max: 64, Scope: user,
			Short: "Secrets of your own.",
			Long:  "What a rule's `regex` matches near one of its `keywords` is masked as `[REDACTED:<name>]`.",
		},
		{
			Name: "redaction.rules[].name", Type: Name, Required: true, Scope: user,
			Short: "The kind that stands in the placeholder.",
		},
		{
			Name: "redaction.rules[].regex", Type: Text, Max: 1000, Required: true, Scope: user,
			Short: "An RE2 expression.",
			Long:  "Its first group, or the whole match when it has none, is what is masked. It must not match nothing.",
		},
		{
			Name: "redaction.rules[].keywords", Type: Texts, Max: 16, Required: true, Scope: user,
			Short: "Texts of which one stands within 512 bytes of every match.",
			Long:  "Each of 2 to 64 bytes; case does not matter. Only around one of them is the expression run.",
		},
		{
			Name: "redaction.rules[].min_entropy", Type: Number, Min: 0, Max: 8, Default: "0", Scope: user,
			Short: "The least Shannon entropy of the secret, in bits per byte.",
			Long:  "Words and repeated characters are below 3, random letters and digits mostly above 3.5.",
		},
		{
			Name: "redaction.allow", Type: Allows, Max: 256, Scope: user,
			Short: "What is never masked.",
			Long:  "A text is allowed when the whole of what would be masked equals it. An entry that would allow whatever there is is refused.",
		},
		{
			Name: "redaction.allow[].regex", Type: Text, Max: 1000, Scope: user,
			Short: "An RE2 expression in place of a text.",
			Long:  "It must match the whole of what would be masked: `{regex: \"ghp_0{4}[0-9a-z]+\"}`.",
		},
	}
}
