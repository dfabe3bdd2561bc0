// Package plan holds what sensor files compile to: rules that are checked and
// have their defaults, as the dispatcher runs them. It is data only; how it is
// read from YAML is config/sensors, how it is evaluated is config/where, how it
// is carried is hooks/index.
package plan

import (
	"time"

	"ways/hooks/record"
)

// Mode says whether the hook waits for a rule's consumer (seed §5).
type Mode string

// The modes.
const (
	Async    Mode = "async"
	Blocking Mode = "blocking"
)

// Delivery says what a rule promises about a record (seed §6).
type Delivery string

// The deliveries.
const (
	BestEffort  Delivery = "best_effort"
	AtLeastOnce Delivery = "at_least_once"
)

// Redaction says what is masked before a record leaves (seed §7).
type Redaction string

// The redactions.
const (
	RedactSecrets Redaction = "secrets"
	RedactNone    Redaction = "none"
)

// Layer says which directory a sensor or rule came from; later layers win.
type Layer string

// The layers, weakest first.
const (
	Shipped Layer = "shipped"
	User    Layer = "user"
	Project Layer = "project"
)

// Plan is every enabled rule that applies to one project, in order of rule id.
type Plan struct {
	// Project is the project root the plan was compiled for, as the client named it.
	Project string `json:"project"`
	Rules   []Rule `json:"rules"`
	// Masking is what the user adds to the built-in masking rules. It is part of
	// the plan, so that a running dispatcher follows a change of it.
	Masking Masking `json:"masking,omitzero"`
}

// Masking is what config.yaml says below redaction, checked.
type Masking struct {
	Rules []MaskRule  `json:"rules,omitempty"`
	Allow []MaskAllow `json:"allow,omitempty"`
}

// MaskRule is a secret of the user's own.
type MaskRule struct {
	Name       string   `json:"name"`
	Regex      string   `json:"regex"`
	Keywords   []string `json:"keywords"`
	MinEntropy float64  `json:"min_entropy,omitempty"` // bits per byte
}

// MaskAllow is what is never masked: exactly one field is set.
type MaskAllow struct {
	Literal string `json:"literal,omitempty"`
	Regex   string `json:"regex,omitempty"`
}

// Rule is one compiled rule. All fields are set: defaults were filled in.
type Rule struct {
	// ID is "<sensor>/<rule>", unique in a plan.
	ID       string     `json:"id"`
	Layer    Layer      `json:"layer"`
	File     string     `json:"file,omitempty"` // the file that defines it; empty for shipped
	Sections record.Set `json:"sections"`
	// Where is the rule's condition as config/where reads it: a JSON object of
	// paths to values or operators; nil when the rule has none.
	Where []byte `json:"where,omitempty"`
	// MatchAny is true for `match: any`.
	MatchAny bool          `json:"match_any,omitempty"`
	Target   Target        `json:"target"`
	Mode     Mode          `json:"mode"`
	Timeout  time.Duration `json:"timeout_ns"`
	// Queue caps the records waiting in memory for this rule.
	Queue    int      `json:"queue"`
	Delivery Delivery `json:"delivery"`
	Chain    bool     `json:"chain,omitempty"`
	// Checkpoint says when a chain's head is signed, and who is told.
	Checkpoint Checkpoint `json:"checkpoint,omitzero"`
	Redact     Redaction  `json:"redact"`
	// Off is true for a rule that no sensor file has any more, or that is turned off:
	// a dispatcher keeps what waits for it, and sends nothing. No index holds one.
	Off bool `json:"off,omitempty"`
}

// Checkpoint is about the signed heads of a rule's chain; zero for a rule without
// a chain.
type Checkpoint struct {
	// Every is after how many records one is made.
	Every int `json:"every"`
	// To is the id of the rule whose target is sent each of them; empty for none.
	To string `json:"to,omitempty"`
	// Way is the rule To.
	Way *Rule `json:"way,omitempty"`
}

// Target is where a rule's records go: exactly one field is set.
type Target struct {
	File    *File    `json:"file,omitempty"`
	HTTP    *HTTP    `json:"http,omitempty"`
	Command *Command `json:"command,omitempty"`
}

// File appends to a local file.
type File struct {
	// Path may begin with ~/ and hold ${NAME}; both are resolved at dispatch.
	Path string `json:"path"`
	// Format is "jsonl" or "text".
	Format string `json:"format"`
	// Template is the text format's template over the record's fields.
	Template string `json:"template,omitempty"`
}

// HTTP posts each record as JSON.
type HTTP struct {
	// URL may hold ${NAME}, resolved at dispatch.
	URL string `json:"url"`
	// Headers are sent with every request; values may hold ${NAME}.
	Headers []Pair `json:"headers,omitempty"`
	// SecretEnv names the environment variable that holds the Standard
	// Webhooks signing secret; empty for unsigned requests.
	SecretEnv string `json:"secret_env,omitempty"`
}

// Command runs a program for each record.
type Command struct {
	// Argv is run directly, with no shell. With Input "args" its elements may
	// hold {field} placeholders.
	Argv []string `json:"argv"`
	// Input is "stdin" or "args".
	Input string `json:"input"`
	// Env is added to the cleared environment; values may hold ${NAME}.
	Env []Pair `json:"env,omitempty"`
	// Cwd is the working directory; empty means /
	Cwd string `json:"cwd,omitempty"`
}

// Pair is one name and value; a slice of them keeps the file's order.
type Pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
