// Package doctest holds the documentation true. Its tests run the commands that
// the pages show against the built binaries and compare the output, validate
// every record and sensor file on a page, follow every link, and compare the
// command reference with the verbs' own help.
//
// In a fenced block of language console, a line that begins with "$ " is a
// command, lines behind it that begin with "> " continue it, and the rest up to
// the next command is its output. There, a line of three dots stands for any
// lines. Blocks of a page run in order, in one home directory of their own, from
// the repository's root. With -update, output that differs is written into the
// page.
package doctest
