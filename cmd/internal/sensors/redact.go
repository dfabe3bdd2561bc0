package sensors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/config/files"
	"ways/config/problem"
	"ways/config/settings"
	"ways/hooks/dirs"
	"ways/hooks/redact"
	"ways/supervisor"
)

const redactUsage = `Usage: ways sensors redact [--json] < TEXT

Shows what masking would do to a text: line, column, kind and rule of each secret,
and the text with the secrets masked. A secret itself is never printed. The rules are
the built-in ones and those of your config.yaml. What a terminal would act on is
shown escaped; --json has the masked text byte for byte.`

// maxRedact is the longest text that the verb takes, 64 MiB.
const maxRedact = 64 << 20

// errLong is returned for a text that is longer.
var errLong = errors.New("the text is longer than 64 MiB; split it")

// findingView is one secret in the JSON. Its shape is stable.
type findingView struct {
	// Line and Column count from 1, the column in characters.
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Kind   string `json:"kind"`
	Rule   string `json:"rule"`
	// Length is the secret's, in bytes.
	Length int `json:"length"`
}

func redactText(env cli.Env, args []string) int {
	fs := cli.Flags("sensors redact")
	asJSON := fs.Bool("json", false, "print JSON")
	if code, done := cli.Parse(env, fs, redactUsage, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "no arguments, and a text on stdin")
	}
	d, err := dirs.From(env.Getenv)
	if err != nil {
		return env.Fail("sensors redact", err)
	}
	conf, problems, _ := settings.Load(files.NewReader(), d.Settings(), d.Home)
	for _, p := range problem.Errors(problems) {
		fmt.Fprintln(env.Stderr, visible.Line(p.String()))
	}
	masker, err := supervisor.NewMasker(conf.Masking)
	if err != nil {
		return env.Fail("sensors redact", err)
	}
	text, err := io.ReadAll(io.LimitReader(env.Stdin, maxRedact+1))
	if err != nil {
		return env.Fail("sensors redact", fmt.Errorf("read stdin: %w", err))
	}
	if len(text) > maxRedact {
		return env.Fail("sensors redact", errLong)
	}
	masked, found := masker.Text(text)
	list := place(text, found)
	if *asJSON {
		return printJSON(env, map[string]any{"findings": list, "masked": string(masked)})
	}
	if len(list) == 0 {
		fmt.Fprintln(env.Stdout, "nothing would be masked")
		return cli.OK
	}
	for _, f := range list {
		by := ""
		if f.Rule != f.Kind {
			by = " (" + f.Rule + ")"
		}
		fmt.Fprintf(env.Stdout, "%d:%d: %s%s, %d bytes\n", f.Line, f.Column, f.Kind, by, f.Length)
	}
	out := visible.Append([]byte("\n"), string(bytes.TrimSuffix(masked, []byte("\n"))), "")
	fmt.Fprintf(env.Stdout, "%s\n", out)
	return cli.OK
}

// place turns findings, which are in order, into lines and columns.
func place(text []byte, found []redact.Finding) []findingView {
	list := []findingView{}
	line, begin, at := 1, 0, 0
	for _, f := range found {
		line += bytes.Count(text[at:f.Start], []byte("\n"))
		if i := bytes.LastIndexByte(text[at:f.Start], '\n'); i >= 0 {
			begin = at + i + 1
		}
		at = f.Start
		list = append(list, findingView{
			Line: line, Column: 1 + utf8.RuneCount(text[begin:f.Start]), Kind: f.Kind, Rule: f.Rule, Length: f.End - f.Start,
		})
	}
	return list
}
