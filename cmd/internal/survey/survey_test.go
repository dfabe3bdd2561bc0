package survey_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ways/actors/deadletter"
	"ways/cmd/internal/survey"
	"ways/hooks/dirs"
	"ways/hooks/launch"
	"ways/hooks/spool"
	"ways/metrics/counters"
)

func place(t *testing.T) dirs.Dirs {
	t.Helper()
	d, err := dirs.From(func(name string) string {
		return map[string]string{"HOME": t.TempDir()}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t *testing.T, path, text string, at time.Time) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// past makes the directory of a session that ended well.
func past(t *testing.T, d dirs.Dirs, session string) {
	t.Helper()
	dir := d.Session(session)
	write(t, filepath.Join(dir, "append.lock"), "state", time.Unix(1000, 0))
	write(t, filepath.Join(dir, "cursors"), "C1 0\n", time.Unix(1001, 0))
}

// copies makes many like it, cheaply.
func copies(t *testing.T, d dirs.Dirs, session string, many int) {
	t.Helper()
	for i := range many {
		dir := d.Session(fmt.Sprintf("%s-%d", session, i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"append.lock", "cursors"} {
			if err := os.Link(filepath.Join(d.Session(session), name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Ten thousand past sessions cost stats, and no file of theirs is opened; the few
// with something left are found among them.
func TestPastSessionsAreNotOpened(t *testing.T) {
	const many = 10_000
	d := place(t)
	past(t, d, "past")
	copies(t, d, "past", many-1)
	// One whose hook died before it could start a dispatcher.
	stray := d.Session("stray")
	write(t, filepath.Join(stray, "append.lock"), "state", time.Unix(1000, 0))
	write(t, filepath.Join(stray, "00000000000000000001.seg"), "0123456789", time.Unix(1000, 0))
	// One with records that came after its dispatcher had left.
	past(t, d, "later")
	write(t, filepath.Join(d.Session("later"), "append.lock"), "state", time.Unix(2000, 0))
	write(t, filepath.Join(d.Session("later"), "00000000000000000007.seg"), "01234", time.Unix(2000, 0))
	// One that was killed with records waiting.
	past(t, d, "killed")
	l := counters.NewStore(d.State).Open("killed", "killed", time.Unix(1500, 0))
	l.Project = "/p"
	l.CountRead(9, "tool_call", "hook")
	r := l.Rule("a/b")
	r.Delivered, r.Waiting, r.WaitingSince = 3, 4, time.Unix(1400, 0)
	if err := l.Save(time.Unix(1500, 0)); err != nil {
		t.Fatal(err)
	}
	// One that runs.
	past(t, d, "running")
	write(t, filepath.Join(d.State, "pending", "running"), "running", time.Unix(1000, 0))
	write(t, filepath.Join(d.State, "pending", "dispatcher.lock"), "", time.Unix(1000, 0))
	write(t, filepath.Join(d.Session("running"), "dispatcher.json"), fmt.Sprintf(`{"pid":%d,"started":"2026-11-30T10:00:00Z","version":"v1"}`, os.Getpid()), time.Unix(1000, 0))
	wake, err := launch.Listen(d.Session("running"))
	if err != nil {
		t.Fatal(err)
	}
	defer wake.Close()
	if err := deadletter.NewStore(d.State).Put(deadletter.Letter{ID: "1", Rule: "a/b", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}

	s, err := survey.Take(d)
	if err != nil {
		t.Fatal(err)
	}
	if s.Opened != 4 || s.Past != many || len(s.Sessions) != 4 || len(s.Sum.Files) != 1 {
		t.Fatalf("%d opened, %d past, %d counted; sessions %+v", s.Opened, s.Past, len(s.Sum.Files), s.Sessions)
	}
	if k := s.Sessions[0]; k.ID != "killed" || k.Waiting != 4 || k.Since.Unix() != 1400 || k.Running || k.Records != 9 || k.Project != "/p" {
		t.Errorf("killed: %+v", k)
	}
	if l := s.Sessions[1]; l.ID != "later" || l.SpoolBytes != 5 {
		t.Errorf("later: %+v", l)
	}
	if r := s.Sessions[2]; r.ID != "running" || !r.Running || r.PID != os.Getpid() || r.Memory < 1<<20 || r.Version != "v1" {
		t.Errorf("running: %+v", r)
	}
	if s.SpoolBytes != 15 || s.DeadLetters["a/b"] != 1 {
		t.Errorf("%d bytes, letters %v", s.SpoolBytes, s.DeadLetters)
	}
	snap := s.Snapshot(time.Unix(2000, 0), "v2")
	if snap.Dispatchers != 1 || snap.SpoolBytes != 15 || snap.Sum.Rules["a/b"].Delivered != 3 || snap.DeadLetters["a/b"] != 1 {
		t.Errorf("snapshot: %+v", snap)
	}
	before := time.Now()
	if _, err := survey.Take(d); err != nil {
		t.Fatal(err)
	}
	t.Logf("with %d past sessions a look takes %v", many, time.Since(before))
}

// What a dispatcher leaves behind a session that ended is settled.
func TestAnInstallationThatIsNone(t *testing.T) {
	d := place(t)
	s, err := survey.Take(d)
	if err != nil || s.Past != 0 || len(s.Sessions) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if spool.Settled(d.Session("none")) {
		t.Error("what is not there is settled")
	}
}
