package index_test

import (
	"path/filepath"
	"testing"
	"time"

	"ways/hooks/index"
	"ways/hooks/record"
)

// TestSince: a section's time goes on through changes of other files, and begins
// anew when no rule had asked for it in between.
func TestSince(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	one := index.Header{Async: record.SetOf(record.ToolCall)}
	one.Inherit(nil, at(10))
	two := index.Header{Async: record.SetOf(record.AssistantResponse), Blocking: record.SetOf(record.ToolCall)}
	two.Inherit(&one, at(20))
	three := index.Header{Async: record.SetOf(record.AssistantResponse)}
	three.Inherit(&two, at(30))
	four := two
	four.Since = [index.SetBits]int64{}
	four.Inherit(&three, at(40))

	for i, row := range []struct {
		h       index.Header
		section record.Section
		at      int64
		want    bool
	}{
		{one, record.ToolCall, 9, false},
		{one, record.ToolCall, 10, true},
		{one, record.AssistantResponse, 50, false},
		{two, record.ToolCall, 10, true},
		{two, record.AssistantResponse, 19, false},
		{two, record.AssistantResponse, 20, true},
		{three, record.ToolCall, 50, false},
		{four, record.ToolCall, 39, false},
		{four, record.ToolCall, 40, true},
		{four, record.AssistantResponse, 20, true},
	} {
		if got := row.h.Selects(row.section, at(row.at)); got != row.want {
			t.Errorf("row %d: %v, want %v", i, got, row.want)
		}
	}

	path := filepath.Join(t.TempDir(), "cache", "x.idx")
	if _, err := index.Write(path, four, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if got, err := index.Read(path); err != nil || got.Since != four.Since {
		t.Errorf("read back %v, %v; want %v", got.Since, err, four.Since)
	}
}
