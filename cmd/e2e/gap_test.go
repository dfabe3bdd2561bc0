package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/hooks/tally"
)

// gap is what a gap record says.
type gap struct {
	Reason string `json:"reason"`
	Rule   string `json:"rule"`
	Count  int    `json:"count"`
}

// gaps reads the gap records out of a log.
func gaps(t *testing.T, log string) (list []gap) {
	t.Helper()
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var r struct {
			Section string
			Data    gap
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%v: %.200q", err, line)
		}
		if r.Section == "gap" {
			list = append(list, r.Data)
		}
	}
	return list
}

// disk is one that a test fills: a tiny file system of its own where this user
// may mount one, else a limit on the size of files, which the next commands get.
type disk struct {
	dir   string
	limit bool
}

// fill takes all the room there is.
func (d disk) fill(t *testing.T) {
	t.Helper()
	if d.limit {
		return
	}
	f, err := os.Create(filepath.Join(d.dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 64 << 10; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			size /= 2
		}
	}
}

func (d disk) free(t *testing.T) {
	t.Helper()
	if !d.limit {
		if err := os.Remove(filepath.Join(d.dir, "filler")); err != nil {
			t.Fatal(err)
		}
	}
}

// fire runs a hook on the full disk.
func (d disk) fire(t *testing.T, s site, stdin string) {
	t.Helper()
	if !d.limit {
		s.fire(t, stdin)
		return
	}
	// In blocks of 512 bytes: more than the state needs, less than the payload.
	cmd := s.command(t, stdin)
	cmd.Args = append([]string{"/bin/sh", "-c", `ulimit -f 12; exec "$0" "$@"`, s.ways}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	quiet(t, cmd)
}

// TestFullSpool: the hook exits with 0, work goes on when there is room again,
// and a gap record says, once, how many records were not written.
func TestFullSpool(t *testing.T) {
	for _, limit := range []bool{false, true} {
		t.Run(fmt.Sprint("by a limit: ", limit), func(t *testing.T) {
			s := bareSite(t, "WAYS_DISPATCHER_IDLE=1s")
			d := disk{dir: s.dirs.State, limit: limit}
			if !limit && !tinyDisk(t, d.dir, 1<<20) {
				d.limit = true
			}
			s.sensor(t, "all", "[tool_call, gap]", "file: {path: "+s.log+", format: jsonl}", "delivery: at_least_once")
			s.fire(t, call("s", "before", 2000))
			s.waitLines(t, 1)
			s.stop(t, "s")
			d.fill(t)
			for i := range 5 {
				d.fire(t, s, call("s", fmt.Sprint("lost", i), 20_000))
			}
			d.free(t)
			// On a disk that is full to the last byte there is no room for a first count.
			if got := s.counts(t)[tally.Unwritten]; got != 5 && d.limit {
				t.Errorf("%d counted by the hooks, want 5", got)
			}
			s.fire(t, call("s", "after", 2000))
			list := s.waitLines(t, 3)
			numbered(t, list, "s", 3)
			want := []gap{{Reason: "unwritten", Count: 5}}
			if got := gaps(t, s.log); !slices.Equal(got, want) || list[1].Data.ID != "after" {
				t.Errorf("gaps %v, want %v; the second record is %s", got, want, list[1].Data.ID)
			}
			// Not told again, by this dispatcher or by the next.
			s.stop(t, "s")
			s.fire(t, call("s", "again", 10))
			s.waitLines(t, 4)
			s.stop(t, "s")
			if got := gaps(t, s.log); !slices.Equal(got, want) {
				t.Errorf("gaps %v, want %v", got, want)
			}
		})
	}
}

// TestFullSpoolAndDispatcher: one that runs all along neither counts its own
// notice of a gap as lost, nor forgets it.
func TestFullSpoolAndDispatcher(t *testing.T) {
	s := bareSite(t, "WAYS_DISPATCHER_IDLE=500ms")
	d := disk{dir: s.dirs.State}
	if !tinyDisk(t, d.dir, 1<<20) {
		t.Log("no file system of its own: TestFullSpool has the rest")
		return
	}
	s.sensor(t, "all", "[tool_call, gap]", "file: {path: "+s.log+", format: jsonl}", "delivery: at_least_once")
	s.fire(t, call("s", "before", 2000))
	s.waitLines(t, 1)
	d.fill(t)
	for i := range 3 {
		s.fire(t, call("s", fmt.Sprint("lost", i), 20_000))
		after(t, 600*time.Millisecond) // it tries to tell, and to leave
	}
	d.free(t)
	s.fire(t, call("s", "after", 2000))
	s.waitCalls(t, map[string]bool{"after": true})
	s.waitGone(t, "s")
	// A small record may fit where a large one did not.
	got, sum := gaps(t, s.log), 0
	for _, g := range got {
		sum += g.Count
	}
	if sum != 3 {
		t.Errorf("gaps %v, want 3 records in all", got)
	}
	numbered(t, lines(t, s.log), "s", 2+len(got))
}

// TestFullTarget: an at-least-once log on a full disk gets every record once
// there is room, whole and in order.
func TestFullTarget(t *testing.T) {
	s := bareSite(t, "WAYS_DISPATCHER_IDLE=20s")
	d := disk{dir: filepath.Dir(s.log)}
	if !tinyDisk(t, d.dir, 256<<10) {
		t.Log("no file system of its own: the file target's tests have a full disk by a limit")
		return
	}
	s.sensor(t, "all", "[tool_call]", "file: {path: "+s.log+", format: jsonl}", "delivery: at_least_once")
	s.fire(t, call("s", "t0", 2000))
	s.waitLines(t, 1)
	d.fill(t)
	for i := range 4 {
		s.fire(t, call("s", fmt.Sprint("t", i+1), 20_000))
	}
	eventually(t, exitLimit, func() bool { return strings.Contains(s.story(), "disk_full") }, s.story)
	if n := len(lines(t, s.log)); n != 1 {
		t.Errorf("%d lines on a full disk", n)
	}
	d.free(t)
	numbered(t, s.waitLines(t, 5), "s", 5)
	if got := letters(t, s); len(got) != 0 {
		t.Errorf("dead letters: %v", got)
	}
}

// TestDeletedSpoolFile: what was in it is told as a gap, and work goes on.
func TestDeletedSpoolFile(t *testing.T) {
	s, c, up := leftBehind(t, "s", 5)
	s.sensor(t, "gaps", "[gap]", "file: {path: "+s.log+", format: jsonl}", "delivery: at_least_once")
	segs, err := filepath.Glob(filepath.Join(s.dirs.Session("s"), "*.seg"))
	if err != nil || len(segs) != 1 {
		t.Fatalf("%v, %v", segs, err)
	}
	if err := os.Remove(segs[0]); err != nil {
		t.Fatal(err)
	}
	up()
	if out, code := s.verb(t, "sensors", "drain"); code != 0 {
		t.Errorf("drain: %d, %s", code, out)
	}
	if got, want := gaps(t, s.log), []gap{{Reason: "missing", Count: 5}}; !slices.Equal(got, want) {
		t.Errorf("gaps %v, want %v", got, want)
	}
	s.fire(t, call("s", "next", 10))
	c.waitAccepted(t, s, "next")
	if got := c.all(); got[len(got)-1].seq != 7 { // 6 is the gap's
		t.Errorf("the next record has number %d", got[len(got)-1].seq)
	}
}

// TestDamagedState harms each file of a session that has something to deliver:
// it is deleted, emptied, cut, or a byte is flipped. A drain ends, and every
// record arrives, under its own id.
func TestDamagedState(t *testing.T) {
	const n = 5
	s, c, up := leftBehind(t, "s", n)
	up()
	// A copy of the state is put back before each harm.
	kept := filepath.Join(s.home, "kept")
	if out, err := exec.Command("cp", "-Rp", s.dirs.State, kept).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	session := s.dirs.Session("s")
	counts, err := filepath.Glob(filepath.Join(s.dirs.State, "counters", "*"))
	if err != nil {
		t.Fatal(err)
	}
	files := []string{filepath.Join(session, "cursors"), filepath.Join(session, "append.lock"), s.pendingMark("s"), filepath.Join(session, "dispatcher.json")}
	for _, f := range counts {
		if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			files = append(files, f)
		}
	}
	rounds := 0
	for _, path := range files {
		name, err := filepath.Rel(s.dirs.State, path)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(filepath.Join(kept, name))
		if err != nil {
			t.Fatal(err)
		}
		harms := map[string]func() error{
			"deleted": func() error { return os.Remove(path) },
			"emptied": func() error { return os.Truncate(path, 0) },
			"cut":     func() error { return os.Truncate(path, int64(rand.IntN(len(whole)))) },
		}
		for range 8 {
			at, bit := rand.IntN(len(whole)), byte(1)<<rand.IntN(8)
			harms[fmt.Sprintf("bit %#x of byte %d flipped", bit, at)] = func() error {
				bad := slices.Clone(whole)
				bad[at] ^= bit
				return os.WriteFile(path, bad, 0o600)
			}
		}
		for what, harm := range harms {
			rounds++
			if err := os.RemoveAll(s.dirs.State); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("cp", "-Rp", kept, s.dirs.State).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			before := len(c.all())
			if err := harm(); err != nil {
				t.Fatal(err)
			}
			if out, code := s.verb(t, "sensors", "drain"); code != 0 {
				t.Errorf("%s %s: drain ended with %d: %s", name, what, code, out)
			}
			var got []string
			for _, p := range c.all()[before:] {
				got = append(got, p.id)
			}
			want := []string{"s:hook/log:1", "s:hook/log:2", "s:hook/log:3", "s:hook/log:4", "s:hook/log:5"}
			if !slices.Equal(got, want) {
				t.Errorf("%s %s: sent %v; %s", name, what, got, s.story())
			}
			// And the numbers go on.
			s.fire(t, call("s", "next", 10))
			eventually(t, exitLimit, func() bool { a := c.all(); return a[len(a)-1].call == "next" },
				func() string { return name + " " + what + s.story() })
			if a := c.all(); a[len(a)-1].seq != n+1 {
				t.Errorf("%s %s: the next record has number %d", name, what, a[len(a)-1].seq)
			}
			s.stop(t, "s")
		}
	}
	t.Logf("%d harms", rounds)
}
