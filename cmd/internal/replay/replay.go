// Package replay is the verb `ways sensors replay`: a past session's transcript,
// turned into records and sent to rules, so that a new log can begin with history.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"ways/actors/target"
	"ways/actors/target/visible"
	"ways/actors/transcript"
	"ways/cmd/internal/cli"
	"ways/cmd/internal/dispatch"
	"ways/config/plan"
	"ways/config/where"
	"ways/hooks/redact"
)

const usage = `Usage: ways sensors replay (--transcript FILE | --session ID) [--rule SENSOR/RULE ...] [--dry-run] [--json]

Turns a past session's transcript, and its subagents', into records and sends
them to the rules that select them: through the same masking, timeout and target
as a live session's. The records are marked "replayed": true, and their seq counts
in the replay. Without --rule, every rule that runs for the session's project gets
what it selects. What is sent twice carries the same delivery id.

Exit codes: 0 every record was accepted, 1 some were not or the transcript cannot
be read, 2 wrong words or flags.`

// Verb is the verb's entry.
func Verb() cli.Verb {
	return cli.Verb{Name: "replay", Short: "send a past session's records to a rule", Run: Run}
}

// giveUp is after how many failures in a row a rule gets nothing more.
const giveUp = 10

// barWidth is the progress bar's, in characters; a plain line is printed every
// plainEvery records.
const (
	barWidth   = 30
	plainEvery = 5000
	redrawEach = 100 * time.Millisecond
)

// outcome is what became of one rule's records.
type outcome struct {
	Rule     string `json:"rule"`
	Matched  int    `json:"matched"`
	Accepted int    `json:"accepted"`
	Failed   int    `json:"failed"`
	Skipped  int    `json:"skipped"`
	Last     string `json:"last_error,omitempty"`

	rule  plan.Rule
	match func([]byte) bool
	inRow int
	seq   uint64
}

// report is what --json prints.
type report struct {
	Session string     `json:"session"`
	Project string     `json:"project"`
	Records int        `json:"records"`
	Damaged int        `json:"damaged"`
	DryRun  bool       `json:"dry_run"`
	Rules   []*outcome `json:"rules"`
}

// Run is the verb.
func Run(env cli.Env, args []string) int {
	fs := cli.Flags("sensors replay")
	path := fs.String("transcript", "", "the transcript `FILE`")
	session := fs.String("session", "", "the session's `ID`, looked for below the client's projects")
	rules := fs.StringArray("rule", nil, "send to this `RULE` alone; can be given more than once")
	project := fs.String("project", "", "the project `DIR` whose rules count (default: where the session began)")
	dry := fs.Bool("dry-run", false, "count what would be sent, and send nothing")
	asJSON := fs.Bool("json", false, "print the counts as JSON")
	if code, done := cli.Parse(env, fs, usage, args); done {
		return code
	}
	if (*path == "") == (*session == "") || fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "one of --transcript FILE and --session ID")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if *session != "" {
		var err error
		if *path, err = find(env, *session); err != nil {
			return env.Fail("sensors replay", err)
		}
	}
	h, err := transcript.ReadHistory(ctx, *path)
	if err != nil {
		return env.Fail("sensors replay", err)
	}
	if *project == "" {
		*project = h.Project
	}
	sender, err := dispatch.NewSender(env, *project)
	if err != nil {
		return env.Fail("sensors replay", err)
	}
	defer sender.Close() //nolint:errcheck // every record was accepted or counted by then
	list, err := choose(sender, *rules)
	if err != nil {
		return env.Fail("sensors replay", err)
	}
	err = send(ctx, env, sender, h, list, *dry)
	rep := report{h.Session(), *project, h.Len(), h.Damaged, *dry, list}
	if *asJSON {
		out, encodeErr := json.MarshalIndent(rep, "", "  ")
		err = errors.Join(err, encodeErr)
		fmt.Fprintf(env.Stdout, "%s\n", out)
	} else {
		rep.print(env)
	}
	if err != nil {
		return env.Fail("sensors replay", err)
	}
	if slices.ContainsFunc(list, func(o *outcome) bool { return o.Failed+o.Skipped > 0 }) {
		return cli.Failed
	}
	return cli.OK
}

// find looks for a session's transcript where the client keeps them.
func find(env cli.Env, session string) (string, error) {
	if strings.ContainsAny(session, `/\*?[`) {
		return "", fmt.Errorf("%s is no session id", visible.Line(session))
	}
	base := env.Getenv("CLAUDE_CONFIG_DIR")
	if base == "" {
		base = filepath.Join(env.Getenv("HOME"), ".claude")
	}
	found, err := filepath.Glob(filepath.Join(base, "projects", "*", session+".jsonl"))
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", fmt.Errorf("no transcript of session %s below %s; name its file with --transcript", visible.Line(session), filepath.Join(base, "projects"))
	case len(found) > 1:
		return "", fmt.Errorf("session %s has %d transcripts, such as %s; name one with --transcript", visible.Line(session), len(found), found[0])
	}
	return found[0], nil
}

// choose returns the rules to send to.
func choose(s *dispatch.Sender, names []string) ([]*outcome, error) {
	var list []*outcome
	add := func(r plan.Rule) error {
		o := &outcome{Rule: r.ID, rule: r}
		if r.Where != nil {
			cond, err := where.Compile(r.Where, r.MatchAny)
			if err != nil {
				return fmt.Errorf("the condition of %s: %w", r.ID, err)
			}
			o.match = cond.Match
		}
		list = append(list, o)
		return nil
	}
	for _, name := range names {
		r, err := s.Rule(name)
		if err == nil {
			err = add(r)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		for _, r := range s.Rules() {
			if err := add(r); err != nil {
				return nil, err
			}
		}
	}
	if len(list) == 0 {
		return nil, errors.New("no rule runs for this project; ways sensors list shows what there is")
	}
	return list, nil
}

// send sends every record to every rule that selects it.
func send(ctx context.Context, env cli.Env, s *dispatch.Sender, h *transcript.History, list []*outcome, dry bool) error {
	bar := newBar(env, h.Len())
	defer bar.done()
	for i := range h.Len() {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped behind record %d of %d", i, h.Len())
		}
		rec, err := h.At(i)
		if err != nil {
			return fmt.Errorf("record %d: %w", i+1, err)
		}
		for _, o := range list {
			if o.rule.Sections.Has(rec.Section) && (o.match == nil || o.match(rec.JSON)) {
				o.take(ctx, s, h.Session(), rec, dry)
			}
		}
		bar.at(i + 1)
	}
	return nil
}

// take sends one record to one rule.
func (o *outcome) take(ctx context.Context, s *dispatch.Sender, session string, rec transcript.Record, dry bool) {
	o.Matched++
	o.seq++
	switch {
	case dry:
		return
	case o.inRow >= giveUp:
		o.Skipped++
		return
	}
	err := s.Send(ctx, o.Rule, func(r plan.Rule, m *redact.Masker) target.Dispatch {
		seal := m.Seal
		if r.Redact == plan.RedactNone {
			seal = redact.Plain
		}
		return target.Dispatch{
			ID: fmt.Sprintf("replay:%s:%s:%s", session, r.ID, rec.Ref), Rule: r.ID, Session: session, Seq: rec.Seq, Attempt: 1, Unordered: true,
			Body: seal(rec.JSON, redact.Envelope{Rule: r.ID, RuleSeq: o.seq}),
		}
	})
	if err == nil {
		o.Accepted++
		o.inRow = 0
		return
	}
	o.Failed++
	o.inRow++
	o.Last = err.Error()
}

// print prints the counts for people.
func (r report) print(env cli.Env) {
	fmt.Fprintf(env.Stdout, "session %s, project %s: %d records", visible.Line(r.Session), visible.Line(r.Project), r.Records)
	if r.Damaged > 0 {
		fmt.Fprintf(env.Stdout, "; %d damaged stretches passed over", r.Damaged)
	}
	fmt.Fprintln(env.Stdout)
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	if r.DryRun {
		fmt.Fprintln(w, "RULE\tWOULD GET")
	} else {
		fmt.Fprintln(w, "RULE\tMATCHED\tACCEPTED\tFAILED\tSKIPPED")
	}
	for _, o := range r.Rules {
		if r.DryRun {
			fmt.Fprintf(w, "%s\t%d\n", o.Rule, o.Matched)
		} else {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\n", o.Rule, o.Matched, o.Accepted, o.Failed, o.Skipped)
		}
	}
	_ = w.Flush() // a closed stdout is the caller's own choice
	for _, o := range r.Rules {
		if o.Last != "" {
			fmt.Fprintf(env.Stderr, "%s: %s\n", o.Rule, visible.Line(o.Last))
		}
		if o.Skipped > 0 {
			fmt.Fprintf(env.Stderr, "%s: given up after %d failures in a row\n", o.Rule, giveUp)
		}
	}
}

// bar shows how far it is: a bar on a terminal, plain lines elsewhere.
type bar struct {
	env      cli.Env
	total    int
	terminal bool
	drawn    time.Time
}

func newBar(env cli.Env, total int) *bar {
	return &bar{env: env, total: total, terminal: cli.Terminal(env.Stderr)}
}

func (b *bar) at(n int) {
	switch {
	case b.terminal && (n == b.total || time.Since(b.drawn) >= redrawEach):
		b.drawn = time.Now()
		full := barWidth * n / max(b.total, 1)
		fmt.Fprintf(b.env.Stderr, "\r[%s%s] %d/%d", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), n, b.total)
	case !b.terminal && n%plainEvery == 0:
		fmt.Fprintf(b.env.Stderr, "%d of %d records\n", n, b.total)
	}
}

func (b *bar) done() {
	if b.terminal && b.total > 0 {
		fmt.Fprintln(b.env.Stderr)
	}
}
