package cli

import (
	"io"

	"ways/actors/target/visible"
	"ways/config/problem"
)

// Red is bold and red, and the end of both, to a terminal (ECMA-48, SGR).
const (
	red   = "\x1b[1;31m"
	plain = "\x1b[0m"
)

// Line writes a problem on one line for a person: harmless on a terminal, and
// in colour when it is loud and the user wants colours (no-color.org).
func (e Env) Line(w io.Writer, p problem.Problem) string {
	return e.paint(Terminal(w), p)
}

func (e Env) paint(terminal bool, p problem.Problem) string {
	line := visible.Line(p.String())
	if p.Loud && terminal && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb" {
		return red + line + plain
	}
	return line
}
