// Package e2e holds the end-to-end tests: the built binaries on recorded
// sessions, and, with the build tag e2e, the real client against a scripted
// model (go tool task e2e).
package e2e
