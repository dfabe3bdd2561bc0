// Command waysctl is the operator binary: every verb but the hook. People type
// `ways`, which hands over to it.
package main

import (
	"fmt"
	"os"

	"ways/cmd/internal/cli"
	"ways/cmd/internal/dead"
	"ways/cmd/internal/dispatch"
	"ways/cmd/internal/logs"
	"ways/cmd/internal/metrics"
	"ways/cmd/internal/reconcile"
	"ways/cmd/internal/replay"
	"ways/cmd/internal/sensors"
	"ways/cmd/internal/status"
)

// version is set by the linker: -X main.version=...
var version = "dev"

const about = `ways hands what happened in a coding-agent session to consumers outside it.`

func main() {
	env := cli.Env{
		Getenv: os.Getenv, Environ: os.Environ, Executable: os.Executable,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Version: version,
	}
	os.Exit(cli.Main(env, func(env cli.Env) int { return cli.Dispatch(env, "ways", about, verbs(), os.Args[1:]) }))
}

func verbs() []cli.Verb {
	return []cli.Verb{
		{Name: "reconcile", Short: "wire ways into the client's settings, or take it out", Run: wire},
		{Name: "sensors", Short: "list, show, check and copy sensors; run a dispatcher", Run: func(env cli.Env, args []string) int {
			return cli.Dispatch(env, "ways sensors", sensors.About, append(sensors.Verbs(), dispatch.Verb(), dispatch.DrainVerb(), dispatch.BlockVerb(), dead.Verb(), replay.Verb()), args)
		}},
		{Name: "status", Short: "what runs, what waits, what went wrong", Run: status.Run},
		{Name: "logs", Short: "all sessions' logs in the order of time", Run: logs.Run},
		{Name: "metrics", Short: "what was counted, for Prometheus: print it, or serve it", Run: metrics.Run},
		{Name: "hook", Run: hook},
		{Name: "version", Short: "print the version", Run: printVersion},
		{Name: "--version", Run: printVersion},
	}
}

func printVersion(env cli.Env, _ []string) int {
	fmt.Fprintf(env.Stdout, "ways %s\n", env.Version)
	return cli.OK
}

// hook is reached only by other words than the front binary takes itself.
func hook(env cli.Env, args []string) int {
	fmt.Fprintln(env.Stderr, "ways hook: the only hook is `ways hook sensors`; it is run by the client and takes no flags")
	return cli.Usage
}

func wire(env cli.Env, args []string) int {
	return reconcile.Run(args, reconcile.Env{
		Getenv: env.Getenv, Executable: env.Executable, Stdin: env.Stdin, Stdout: env.Stdout, Stderr: env.Stderr,
	})
}
