package main

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ways/hooks/record"
)

// The page has the calculation as it is, so that neither is changed alone.
func TestThePageHasTheCalculation(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), Thousand().Table()) {
		t.Errorf("docs/benchmarks.md does not have the table of `go run ./cmd/internal/load --only team`:\n%s", Thousand().Table())
	}
}

func TestTeam(t *testing.T) {
	team := Team{
		Developers: 10, EventsADay: 28_800, WorkingHours: 8 * time.Hour, Peak: 3, Sessions: 2, Record: 1000, Around: 100,
		Hook: 2 * time.Millisecond, Dispatch: time.Millisecond, FrameBytes: 50, Resident: 1e6, Outage: 2 * time.Hour,
	}
	for _, row := range []struct {
		what      string
		got, want float64
	}{
		{"average", team.Average(), 10},
		{"busiest", team.Busiest(), 30},
		{"bytes a day", team.BytesADay(), 288e6},
		{"on the wire", team.OnTheWire(team.Busiest()), 33_000},
		{"connections", team.Connections(), 20},
		{"share", team.Share(), 0.003},
		{"waiting", team.Waiting(), 7200 * 1050},
	} {
		if math.Abs(row.got-row.want) > 1e-9*row.want {
			t.Errorf("%s: %v, want %v", row.what, row.got, row.want)
		}
	}
}

// What is measured are records as hooks write them, of about the size that the
// table says, and each another one.
func TestRecords(t *testing.T) {
	for _, size := range sizes {
		made := newMaker("s", "/home/you/proj", size.bytes)
		seen := map[string]bool{}
		for seq := range uint64(50) {
			d := made.next()
			text := d.Append(nil, seq)
			var r struct {
				Section string
				Seq     uint64
				Data    struct {
					ID     string
					Output struct{ Stdout string }
				}
			}
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatalf("%s: %v: %.300q", size.name, err, text)
			}
			if _, ok := record.ParseSection(r.Section); !ok || r.Seq != seq || seen[r.Data.ID] || len(r.Data.Output.Stdout) < size.bytes/2-200 {
				t.Errorf("%s: %+v", size.name, r)
			}
			seen[r.Data.ID] = true
			if len(text) < size.bytes*7/10 || len(text) > size.bytes*11/10+20 {
				t.Errorf("%s: a record has %d bytes", size.name, len(text))
			}
		}
	}
}

func TestCount(t *testing.T) {
	got, err := count(strings.NewReader(`12  openat(AT_FDCWD, ""..., O_RDONLY) = 3
12  write(3, ""..., 20 <unfinished ...>
13  futex(0xc000, FUTEX_WAKE, 1) = 1
12  <... write resumed>)              = 20
13  pwrite64(4, ""..., 4096, 0)       = 4096
13  fsync(4)                          = 0
13  write(1, ""..., 5)                = -1 EAGAIN (Resource temporarily unavailable)
13  --- SIGURG {si_signo=SIGURG} ---
13  +++ exited with 0 +++
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"openat": 1, "write": 2, "futex": 1, "pwrite64": 1, "fsync": 1}
	if !maps.Equal(got.calls, want) || got.written != 4116 || got.all() != 6 || got.of("write", "pwrite64") != 3 {
		t.Errorf("%+v, want %v", got, want)
	}
}

func TestPercentile(t *testing.T) {
	list := []time.Duration{3e6, -1e6, 1e6, 2e6}
	for p, want := range map[float64]float64{0.25: 0, 0.5: 1, 0.75: 2, 0.99: 3} {
		if got := percentile(list, p); got != want {
			t.Errorf("p%v: %v, want %v", 100*p, got, want)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want string
	}{
		{"no binaries", []string{"--bin", t.TempDir()}, "go tool task build"},
		{"an unknown part", []string{"--only", "targets,sleep"}, `"sleep"`},
		{"no records", []string{"--share", "0"}, "above 0"},
		{"an unknown flag", []string{"--onyl", "idle"}, "unknown flag"},
	} {
		if err := run(t.Context(), row.args, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want an error that says %q", row.name, err, row.want)
		}
	}
}

// A file that has too few lines, or too many, is told of.
func TestArrived(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := arrived(path, 0); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("a\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{1: false, 2: true, 3: false} {
		if err := arrived(path, n); (err == nil) != want {
			t.Errorf("%d: %v", n, err)
		}
	}
}
