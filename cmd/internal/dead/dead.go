// Package dead is the verb family `ways sensors dead`: the records that
// at-least-once rules gave up, to be looked at, sent again or dropped.
package dead

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"ways/actors/deadletter"
	"ways/actors/target"
	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/cmd/internal/dispatch"
	"ways/config/plan"
	"ways/hooks/dirs"
	"ways/hooks/redact"
)

const about = `Records that an at-least-once rule's consumer refused for good, or that grew too
old, are put aside with the reason.`

// Verb is the family's entry.
func Verb() cli.Verb {
	return cli.Verb{Name: "dead", Short: "records put aside: list, show, retry, drop", Run: func(env cli.Env, args []string) int {
		return cli.Dispatch(env, "ways sensors dead", about, []cli.Verb{
			{Name: "list", Short: "what was put aside, and why", Run: list},
			{Name: "show", Short: "one record, as it would have been sent", Run: show},
			{Name: "retry", Short: "send records again", Run: retry},
			{Name: "drop", Short: "throw records away", Run: drop},
		}, args)
	}}
}

// choose returns the letters that the arguments name: of all rules, of one rule,
// or by id.
func choose(env cli.Env, names []string) (deadletter.Store, []deadletter.Letter, error) {
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return deadletter.Store{}, nil, err
	}
	store := deadletter.NewStore(d.State)
	rules, err := store.Rules()
	if err != nil {
		return store, nil, err
	}
	var all []deadletter.Letter
	for _, rule := range rules {
		letters, damaged, err := store.List(rule)
		if err != nil {
			return store, nil, err
		}
		if damaged > 0 {
			fmt.Fprintf(env.Stderr, "%s: %d lines of its dead letters are damaged\n", visible.Line(rule), damaged)
		}
		all = append(all, letters...)
	}
	if len(names) == 0 {
		return store, all, nil
	}
	var chosen []deadletter.Letter
	for _, name := range names {
		found := false
		for _, l := range all {
			if l.ID == name || l.Rule == name {
				chosen, found = append(chosen, l), true
			}
		}
		if !found {
			return store, nil, fmt.Errorf("there is no dead letter of the rule or with the id %q; ways sensors dead list shows what there is", visible.Line(name))
		}
	}
	return store, chosen, nil
}

func list(env cli.Env, args []string) int {
	fs := cli.Flags("sensors dead list")
	asJSON := fs.Bool("json", false, "print JSON lines")
	if code, done := cli.Parse(env, fs, "Usage: ways sensors dead list [SENSOR/RULE ...] [--json]\n\nLists what was put aside, and why.", args); done {
		return code
	}
	_, letters, err := choose(env, fs.Args())
	if err != nil {
		return env.Fail("sensors dead list", err)
	}
	if *asJSON {
		enc := json.NewEncoder(env.Stdout)
		for _, l := range letters {
			if err := enc.Encode(l); err != nil {
				return env.Fail("sensors dead list", err)
			}
		}
		return cli.OK
	}
	if len(letters) == 0 {
		fmt.Fprintln(env.Stdout, "no dead letters")
		return cli.OK
	}
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "WHEN\tREASON\tTRIES\tID")
	for _, l := range letters {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", l.At.Local().Format("2006-01-02 15:04:05"), visible.Line(l.Reason), l.Attempts, visible.Line(l.ID))
	}
	w.Flush()
	return cli.OK
}

func show(env cli.Env, args []string) int {
	fs := cli.Flags("sensors dead show")
	if code, done := cli.Parse(env, fs, "Usage: ways sensors dead show ID ...\n\nShows records as they would have been sent, with the reason, as JSON lines.", args); done {
		return code
	}
	if fs.NArg() == 0 {
		return cli.WrongArgs(env, fs, "at least one ID")
	}
	_, letters, err := choose(env, fs.Args())
	if err != nil {
		return env.Fail("sensors dead show", err)
	}
	enc := json.NewEncoder(env.Stdout)
	for _, l := range letters {
		if err := enc.Encode(l); err != nil {
			return env.Fail("sensors dead show", err)
		}
	}
	return cli.OK
}

func drop(env cli.Env, args []string) int {
	fs := cli.Flags("sensors dead drop")
	all := fs.Bool("all", false, "every dead letter of every rule")
	if code, done := cli.Parse(env, fs, "Usage: ways sensors dead drop ID|SENSOR/RULE ... | --all\n\nThrows records away. They cannot be had back.", args); done {
		return code
	}
	if (fs.NArg() == 0) != *all {
		return cli.WrongArgs(env, fs, "IDs or rules, or --all")
	}
	store, letters, err := choose(env, fs.Args())
	if err != nil {
		return env.Fail("sensors dead drop", err)
	}
	n, err := remove(store, letters)
	if err != nil {
		return env.Fail("sensors dead drop", err)
	}
	fmt.Fprintf(env.Stdout, "%d dropped\n", n)
	return cli.OK
}

// remove takes letters out of the store, each rule's at once.
func remove(store deadletter.Store, letters []deadletter.Letter) (int, error) {
	byRule := map[string][]string{}
	for _, l := range letters {
		byRule[l.Rule] = append(byRule[l.Rule], l.ID)
	}
	sum := 0
	var errs []error
	for rule, ids := range byRule {
		n, err := store.Remove(rule, ids)
		sum += n
		errs = append(errs, err)
	}
	return sum, errors.Join(errs...)
}

const retryUsage = `Usage: ways sensors dead retry [ID|SENSOR/RULE ...]

Sends records again, all of them when none is named, each once and under the same
id as before. What is accepted leaves the dead letters; the rest stays. Exits 1
when something stays.`

func retry(env cli.Env, args []string) int {
	fs := cli.Flags("sensors dead retry")
	project := fs.String("project", env.Getenv("CLAUDE_PROJECT_DIR"), "the project `DIR` whose own sensors count")
	if code, done := cli.Parse(env, fs, retryUsage, args); done {
		return code
	}
	store, letters, err := choose(env, fs.Args())
	if err != nil {
		return env.Fail("sensors dead retry", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	sender, err := dispatch.NewSender(env, *project)
	if err != nil {
		return env.Fail("sensors dead retry", err)
	}
	defer sender.Close()
	slices.SortStableFunc(letters, func(a, b deadletter.Letter) int { return strings.Compare(a.Rule, b.Rule) })
	var sent []deadletter.Letter
	stay := 0
	for _, l := range letters {
		if err := resend(ctx, sender, l); err != nil {
			fmt.Fprintf(env.Stdout, "%s: %s\n", visible.Line(l.ID), visible.Line(err.Error()))
			stay++
			continue
		}
		sent = append(sent, l)
		// Taken out one by one: what was accepted must not be sent again when
		// this process dies.
		if _, err := remove(store, []deadletter.Letter{l}); err != nil {
			return env.Fail("sensors dead retry", err)
		}
	}
	fmt.Fprintf(env.Stdout, "%d accepted, %d stay\n", len(sent), stay)
	if stay > 0 {
		return cli.Failed
	}
	return cli.OK
}

// errNoRecord is why a letter cannot be sent again.
var errNoRecord = errors.New("the record itself was lost, and there is nothing to send; ways sensors dead drop takes it off the list")

// resend sends one letter once.
func resend(ctx context.Context, sender *dispatch.Sender, l deadletter.Letter) error {
	if len(l.Body) == 0 || string(l.Body) == "null" {
		return errNoRecord
	}
	return sender.Send(ctx, l.Rule, func(r plan.Rule, m *redact.Masker) target.Dispatch {
		body := m.Again(l.Body)
		if r.Redact == plan.RedactNone {
			body = redact.AsKept(l.Body)
		}
		return target.Dispatch{ID: l.ID, Rule: l.Rule, Session: l.Session, Seq: l.Seq, Attempt: l.Attempts + 1, Unordered: true, Body: body}
	})
}
