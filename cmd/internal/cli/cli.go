// Package cli is what the verbs of the operator binary share: what they see of
// the world, their exit codes, and the way from a word to a verb.
package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ways/actors/target/visible"
)

// Exit codes of all verbs but those that say otherwise.
const (
	OK     = 0
	Failed = 1 // it did not work, or found something wrong
	Usage  = 2 // wrong words or flags
)

// Env is what a verb sees of the world.
type Env struct {
	Getenv         func(string) string
	Environ        func() []string
	Executable     func() (string, error) // the running binary, as os.Executable
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string
}

// Fail prints an error, harmless on a terminal, and returns Failed.
func (e Env) Fail(verb string, err error) int {
	fmt.Fprintf(e.Stderr, "ways %s: %s\n", verb, visible.Append(nil, err.Error(), "  "))
	return Failed
}

// Verb is one word of the command line.
type Verb struct {
	Name string
	// Short is one line for the list; a verb without one is not listed.
	Short string
	Run   func(env Env, args []string) int
}

// Dispatch runs the verb that args begin with. about is printed above the list
// of verbs, for no argument, for help and --help.
func Dispatch(env Env, path, about string, verbs []Verb, args []string) int {
	if len(args) == 0 {
		printVerbs(env.Stderr, path, about, verbs)
		return Usage
	}
	switch args[0] {
	case "help", "--help", "-h":
		if args[0] == "help" && len(args) > 1 { // help VERB is VERB --help
			return Dispatch(env, path, about, verbs, append(slices.Clone(args[1:]), "--help"))
		}
		printVerbs(env.Stdout, path, about, verbs)
		return OK
	}
	for _, v := range verbs {
		if v.Name == args[0] {
			return v.Run(env, args[1:])
		}
	}
	fmt.Fprintf(env.Stderr, "%s: there is no verb %q; %s --help lists them\n", path, args[0], path)
	return Usage
}

func printVerbs(w io.Writer, path, about string, verbs []Verb) {
	fmt.Fprintf(w, "%s\n\nUsage: %s VERB [flags]\n\nVerbs:\n", about, path)
	for _, v := range verbs {
		if v.Short != "" {
			fmt.Fprintf(w, "  %-10s %s\n", v.Name, v.Short)
		}
	}
	fmt.Fprintf(w, "\n%s VERB --help says more.\n", path)
}

// Flags makes a verb's flag set.
func Flags(name string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.SetOutput(io.Discard)
	return fs
}

// Parse parses a verb's flags. usage is what help prints above their list. done says that the verb has nothing left to do,
// because help was asked for or the flags are wrong; code is then its exit code.
func Parse(env Env, fs *pflag.FlagSet, usage string, args []string) (code int, done bool) {
	err := fs.Parse(args)
	switch {
	case err == nil:
		return OK, false
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(env.Stdout, strings.TrimRight(usage, "\n")+"\n")
		if f := flagLines(fs); f != "" {
			fmt.Fprint(env.Stdout, "\nFlags:\n"+f)
		}
		return OK, true
	}
	fmt.Fprintf(env.Stderr, "ways %s: %s; ways %s --help says what there is\n", fs.Name(), visible.Line(err.Error()), fs.Name())
	return Usage, true
}

// flagLines lists the flags, without the =true|false that pflag adds to a switch.
func flagLines(fs *pflag.FlagSet) string {
	var names, texts []string
	width := 0
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, text := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Value.Type() != "bool" {
			name += " " + value
		}
		names, texts = append(names, name), append(texts, text)
		width = max(width, len(name))
	})
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, name, texts[i])
	}
	return b.String()
}

// WrongArgs reports a wrong number of arguments.
func WrongArgs(env Env, fs *pflag.FlagSet, want string) int {
	fmt.Fprintf(env.Stderr, "ways %s: expected %s; ways %s --help says more\n", fs.Name(), want, fs.Name())
	return Usage
}
