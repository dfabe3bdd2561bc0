//go:build !linux

package e2e

import "testing"

// inspect has no /proc to look into here; hooks/launch tests the same on every
// system, from inside the started process.
func inspect(*testing.T, site, int) {}
