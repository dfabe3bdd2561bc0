package sensors

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ways/config/files"
	"ways/config/plan"
	"ways/config/problem"
	"ways/config/schema"
	"ways/hooks/record"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// place is a user's and a project's sensor directories.
type place struct {
	t    *testing.T
	dirs Dirs
}

func newPlace(t *testing.T) place {
	root := t.TempDir()
	return place{t, Dirs{User: filepath.Join(root, "user"), Project: filepath.Join(root, "project"), Trusted: true}}
}

func (p place) user(file, text string) { write(p.t, filepath.Join(p.dirs.User, file), text) }

func (p place) project(file, text string) { write(p.t, filepath.Join(p.dirs.Project, file), text) }

func (p place) load() *Set { return Load(files.NewReader(), p.dirs) }

// find returns a rule that must be there.
func find(t *testing.T, set *Set, sensor, rule string) Rule {
	t.Helper()
	s, ok := set.Find(sensor)
	if !ok {
		t.Fatalf("no sensor %s", sensor)
	}
	r, ok := s.Find(rule)
	if !ok {
		t.Fatalf("no rule %s/%s", sensor, rule)
	}
	return r
}

func TestLayers(t *testing.T) {
	p := newPlace(t)
	p.user("tool-audit.yaml", head+"enabled: true\nrules:\n  - name: log\n    timeout: 9s\n    where: {data.name: Bash}\n  - name: mine\n    sections: [user_prompt]\n    dispatch: {http: {url: \"https://a.example/\", headers: {Authorization: \"${TOKEN}\"}}}\n")
	p.project("tool-audit.yaml", head+"rules:\n  - name: log\n    queue: 7\n    where: {}\n  - name: mine\n    dispatch: {http: {url: \"https://b.example/\"}}\n  - name: theirs\n    enabled: false\n    sections: [session_end]\n    dispatch: {file: {path: /t}}\n")
	set := p.load()
	if errs := problem.Errors(set.Problems); len(errs) != 0 {
		t.Fatal(errs)
	}
	s, _ := set.Find("tool-audit")
	userFile, projectFile := filepath.Join(p.dirs.User, "tool-audit.yaml"), filepath.Join(p.dirs.Project, "tool-audit.yaml")
	if want := []Source{{plan.Shipped, ""}, {plan.User, userFile}, {plan.Project, projectFile}}; !slices.Equal(s.Sources, want) {
		t.Errorf("sources: %+v", s.Sources)
	}
	if !s.Enabled || s.Origins["enabled"] != (Origin{plan.User, userFile, 3, 10}) {
		t.Errorf("enabled %v by %+v", s.Enabled, s.Origins["enabled"])
	}
	if s.Description != "Every tool call and result, one JSON object a line." || s.Origins["description"].Layer != plan.Shipped {
		t.Errorf("description %q by %+v", s.Description, s.Origins["description"])
	}

	log := find(t, set, "tool-audit", "log")
	if !log.Active || log.Timeout != 9*time.Second || log.Queue != 7 || log.Sections != record.SetOf(record.ToolCall, record.ToolResult) ||
		log.Where != nil || log.Target.File == nil || log.Target.File.Path != "~/ways-audit/tools.jsonl" ||
		log.Layer != plan.Project || log.File != projectFile {
		t.Errorf("log: %+v", log.Rule)
	}
	for key, want := range map[string]Origin{
		"sections":           {Layer: plan.Shipped, Line: 10, Col: 15},
		"dispatch.file.path": {Layer: plan.Shipped, Line: 13, Col: 15},
		"timeout":            {plan.User, userFile, 6, 14},
		"queue":              {plan.Project, projectFile, 5, 12},
		"where":              {plan.Project, projectFile, 6, 12},
		"mode":               {Layer: Default},
	} {
		if got := log.Origins[key]; got != want {
			t.Errorf("%s: by %+v, want %+v", key, got, want)
		}
	}

	// The user's header never goes to the address that the project named.
	mine := find(t, set, "tool-audit", "mine")
	if mine.Target.HTTP.URL != "https://b.example/" || mine.Target.HTTP.Headers != nil {
		t.Errorf("mine: %+v", mine.Target.HTTP)
	}
	if theirs := find(t, set, "tool-audit", "theirs"); theirs.Active || theirs.Refused {
		t.Errorf("theirs: %+v", theirs)
	}
	var ids []string
	for _, r := range set.Active() {
		ids = append(ids, r.ID)
	}
	if got := strings.Join(ids, " "); got != "tool-audit/log tool-audit/mine" {
		t.Errorf("active: %s", got)
	}
}

func TestSettings(t *testing.T) {
	p := newPlace(t)
	p.user("a.yaml", head+"rules:\n  - name: b\n    sections: [tool_result, tool_call]\n    where: {data.x: 9007199254740993}\n    dispatch:\n      http: {url: \"https://a/\", headers: {B: c, A: d}}\n    chain: false\n")
	table := schema.NewTable(schema.Sensor())
	r := find(t, p.load(), "a", "b")
	var lines []string
	for _, s := range r.Settings(table) {
		lines = append(lines, s.Key+"="+s.Text()+" "+string(s.Origin.Layer))
	}
	want := []string{
		"name=b user", "enabled=true default", "sections=[tool_call, tool_result] user",
		`where={"data.x":9007199254740993} user`, "match=all default",
		"dispatch.http.url=https://a/ user", "dispatch.http.headers={B: c, A: d} user",
		"mode=async default", "timeout=5s default", "queue=1000 default", "delivery=best_effort default",
		"chain=false user", "redact=secrets default",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("settings:\n%s\nwant:\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

// A file that cannot be read takes its sensor out in every layer, and no other.
func TestBrokenFiles(t *testing.T) {
	p := newPlace(t)
	good := head + "rules:\n" + goodRule
	p.user("good.yaml", good)
	p.user("other.yaml", good)
	p.project("other.yaml", head+"enabeld: false\nrules: []\n")
	p.user("everything.yaml", head+"enabled: true\nrules: [\n")
	p.user("huge.yaml", good+"#"+strings.Repeat("x", files.MaxBytes))
	p.user("Bad Name.yaml", good)
	p.user("short.yml", good)
	p.user("notes.txt", "not a sensor")
	p.user(".hidden.yaml", "{")
	p.user("backup.yaml~", "{")
	if err := os.Mkdir(filepath.Join(p.dirs.User, "dir.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(p.dirs.User, "fifo.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(p.dirs.User, "dangling.yaml")); err != nil {
		t.Fatal(err)
	}
	p.user("open.yaml", good)
	if err := os.Chmod(filepath.Join(p.dirs.User, "open.yaml"), 0o666); err != nil {
		t.Fatal(err)
	}
	set := p.load()
	var active []string
	for _, r := range set.Active() {
		active = append(active, r.ID)
	}
	if got := strings.Join(active, " "); got != "good/log" {
		t.Errorf("active: %s", got)
	}
	said := map[string]string{}
	for _, pr := range set.Problems {
		said[filepath.Base(filepath.Dir(pr.File))+"/"+filepath.Base(pr.File)] += string(pr.Severity) + ": " + pr.Message
	}
	for file, want := range map[string]string{
		"project/other.yaml":   `error: "enabeld" is no key of a sensor file`,
		"user/everything.yaml": "error: is not YAML",
		"user/huge.yaml":       "is longer than 1048576 bytes",
		"user/Bad Name.yaml":   `error: "Bad Name" is no name for a sensor`,
		"user/short.yml":       "warning: is not read: a sensor file's name ends in .yaml",
		"user/dir.yaml":        "is a directory, not a regular file",
		"user/fifo.yaml":       "is a FIFO, not a regular file",
		"user/dangling.yaml":   "no such file",
		"user/open.yaml":       "may be written by everybody (mode 0666)",
	} {
		if !strings.Contains(said[file], want) {
			t.Errorf("%s: %q, want %q", file, said[file], want)
		}
		delete(said, file)
	}
	if len(said) != 0 {
		t.Errorf("more was said: %v", said)
	}
	for _, name := range []string{"other", "everything", "huge", "fifo"} {
		if s, ok := set.Find(name); !ok || !s.Refused {
			t.Errorf("%s: %v, refused %v", name, ok, s.Refused)
		}
	}
}

// The set says every file it depends on, whether it could be read or not.
func TestInputs(t *testing.T) {
	p := newPlace(t)
	p.user("a.yaml", head+"rules:\n"+goodRule)
	p.user("b.yaml", "{")
	p.user("c.txt", "")
	set := p.load()
	var got []string
	for _, in := range set.Inputs {
		known := "present"
		if in.Info == nil {
			known = "absent"
		}
		got = append(got, string(in.Kind)+" "+filepath.Base(in.Path)+" "+known)
	}
	want := []string{"dir user present", "file a.yaml present", "file b.yaml present", "dir project absent"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestUntrusted(t *testing.T) {
	p := newPlace(t)
	p.dirs.Trusted = false
	p.project("evil.yaml", head+"rules:\n"+goodRule)
	p.project("tool-audit.yaml", head+"enabled: true\nrules:\n  - name: log\n    redact: none\n")
	p.project("broken.yaml", "{")
	p.project("readme.md", "")
	set := p.load()
	if len(set.Active()) != 0 || len(set.Problems) != 0 {
		t.Errorf("active %v, problems %v", set.Active(), set.Problems)
	}
	if _, ok := set.Find("evil"); ok {
		t.Error("a file of an untrusted project was read")
	}
	var names []string
	for _, f := range set.Untrusted {
		names = append(names, filepath.Base(f))
	}
	if !slices.Equal(names, []string{"broken.yaml", "evil.yaml", "tool-audit.yaml"}) {
		t.Errorf("untrusted: %v", names)
	}
}

func TestOverrideUnderAWrongName(t *testing.T) {
	p := newPlace(t)
	p.user("tool-audit.yaml", head+"enabled: true\nrules:\n  - name: lgo\n    timeout: 9s\n")
	set := p.load()
	errs := problem.Errors(set.Problems)
	if len(errs) != 2 || !strings.Contains(errs[0].Suggestion+errs[1].Suggestion, `did you mean to change the rule "log"?`) {
		t.Errorf("problems: %v", errs)
	}
	if !find(t, set, "tool-audit", "log").Active {
		t.Error("the shipped rule does not run")
	}
}

func TestShipped(t *testing.T) {
	if got := Shipped(); !slices.Equal(got, []string{"everything", "session-journal", "tool-audit"}) {
		t.Fatalf("shipped: %v", got)
	}
	set := Load(files.NewReader(), Dirs{})
	if len(set.Problems) != 0 || len(set.Active()) != 0 || len(set.Sensors) != 3 {
		t.Errorf("problems %v, active %v, %d sensors", set.Problems, set.Active(), len(set.Sensors))
	}
	for _, s := range set.Sensors {
		if s.Enabled || s.Refused || s.Description == "" || len(s.Rules) == 0 {
			t.Errorf("%+v", s)
		}
		// Copied and enabled, each works as it is.
		text, err := ShippedText(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.Replace(text, []byte("name: "+s.Name+"\n"), []byte("name: copy\n"), 1)
		text = bytes.Replace(text, []byte("enabled: false\n"), []byte("enabled: true\n"), 1)
		if problems := Check("copy", text); len(problems) != 0 {
			t.Errorf("%s, copied: %v", s.Name, problems)
		}
	}
	everything := find(t, set, "everything", "log")
	if everything.Sections != record.SetOf(record.Sections()...) {
		t.Errorf("everything leaves out some of %v", record.Sections())
	}
	for _, bad := range []string{"", "none", "../shipped/everything", "everything.yaml"} {
		if _, err := ShippedText(bad); err == nil {
			t.Errorf("%q was found", bad)
		}
	}
}

func TestOffMachine(t *testing.T) {
	for _, row := range []struct {
		url, to string
		local   bool
	}{
		{"https://a.example/x?key=secret", "https://a.example/x", false},
		{"https://127.0.0.1/x", "https://127.0.0.1/x", true},
		{"http://[::1]:9/x", "http://[::1]:9/x", true},
		{"http://localhost:1/", "http://localhost:1/", true},
		{"http://app.localhost/", "http://app.localhost/", true},
		{"http://127.0.0.1.example/", "http://127.0.0.1.example/", false},
		{"https://${HOST}/x?k=${KEY}", "https://${HOST}/x", false},
		{"https://${USER}@a/x", "https://a/x", false},
		{"${URL}", "${URL}", false},
	} {
		r := Rule{Rule: plan.Rule{Target: plan.Target{HTTP: &plan.HTTP{URL: row.url}}}}
		if to, local, off := r.OffMachine(); to != row.to || local != row.local || !off {
			t.Errorf("%s: %q, %v, %v", row.url, to, local, off)
		}
	}
	r := Rule{Rule: plan.Rule{Target: plan.Target{File: &plan.File{Path: "/x"}}}}
	if _, _, off := r.OffMachine(); off || r.Destination() != "/x" {
		t.Error("a file does not leave the machine")
	}
}

// More files than are read: the rest is named, the first ones work.
func TestTooManyFiles(t *testing.T) {
	p := newPlace(t)
	for i := range maxSensors + 1 {
		name := "s" + string(rune('a'+i/26%26)) + string(rune('a'+i%26))
		p.user(name+".yaml", head+"rules:\n"+goodRule)
	}
	set := p.load()
	errs := problem.Errors(set.Problems)
	if len(set.Active()) != maxSensors || len(errs) != 1 || !strings.Contains(errs[0].Message, "more than 256 sensor files") {
		t.Errorf("%d rules, problems %v", len(set.Active()), errs)
	}
}
