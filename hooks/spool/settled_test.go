package spool

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSettled(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(1000+s), 0) }
	for _, row := range []struct {
		name  string
		times map[string]int
		want  bool
	}{
		{"nothing", nil, false},
		{"no cursors", map[string]int{lockName: 1}, false},
		{"saved last", map[string]int{lockName: 1, cursorsName: 2}, true},
		{"appended last", map[string]int{lockName: 3, cursorsName: 2}, false},
		{"within a tick", map[string]int{lockName: 2, cursorsName: 2}, false},
		{"inbox before", map[string]int{lockName: 1, inboxName: 1, cursorsName: 2}, true},
		{"inbox last", map[string]int{lockName: 1, inboxName: 3, cursorsName: 2}, false},
	} {
		dir := t.TempDir()
		for name, s := range row.times {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, at(s), at(s)); err != nil {
				t.Fatal(err)
			}
		}
		if got := Settled(dir); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}
