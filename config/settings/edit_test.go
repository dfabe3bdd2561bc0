package settings

import (
	"errors"
	"testing"
)

func TestTrustEdit(t *testing.T) {
	for _, row := range []struct{ name, text, trusted string }{
		{"empty", "", "ways:\n  project_sensors:\n    - \"/p\"\n"},
		{"comment", "# mine\n", "# mine\nways:\n  project_sensors:\n    - \"/p\"\n"},
		{"others, no newline", "theme: dark", "theme: dark\nways:\n  project_sensors:\n    - \"/p\"\n"},
		{"list", "ways:\n  project_sensors:\n    # here\n    - /a # why\n    - /b\nx: 1\n", "ways:\n  project_sensors:\n    # here\n    - \"/p\"\n    - /a # why\n    - /b\nx: 1\n"},
		{"list not indented", "ways:\n  project_sensors:\n  - /a\n", "ways:\n  project_sensors:\n  - \"/p\"\n  - /a\n"},
		{"flow", "ways: {project_sensors: [/a, /é]} # c\n", "ways: {project_sensors: [\"/p\", /a, /é]} # c\n"},
		{"flow empty", "ways: {project_sensors: []}\n", "ways: {project_sensors: [\"/p\"]}\n"},
		{"flow in block", "é: 1\nways:\n  project_sensors: [/a]\n", "é: 1\nways:\n  project_sensors: [\"/p\", /a]\n"},
		{"group without list", "ways:\n    language: en\n", "ways:\n    project_sensors:\n      - \"/p\"\n    language: en\n"},
		{"flow group without list", "ways: {language: en}\n", "ways: {project_sensors: [\"/p\"], language: en}\n"},
		{"empty flow group", "ways: {}\n", "ways: {project_sensors: [\"/p\"]}\n"},
		{"no value", "ways:\nx: 1\n", ""},
		{"list without value", "ways:\n  project_sensors:\nx: 1\n", "ways:\n  project_sensors:\n    - \"/p\"\nx: 1\n"},
		{"list with null", "ways:\n  project_sensors: null\n", ""},
		{"text", "ways: yes\n", ""},
		{"flow file", "{x: 1}\n", ""},
		{"sequence", "- x\n", ""},
	} {
		got, err := Trust([]byte(row.text), "/p")
		if row.trusted == "" {
			if !errors.Is(err, ErrNotEditable) {
				t.Errorf("%s: %q, %v", row.name, got, err)
			}
			continue
		}
		if err != nil || string(got) != row.trusted {
			t.Errorf("%s: %q, %v, want %q", row.name, got, err, row.trusted)
			continue
		}
		if s, problems := Parse("c", "/h", got); s.ProjectSensors == nil {
			t.Errorf("%s: not trusted: %v", row.name, problems)
		}
		back, err := Distrust(got, "/p", "/h")
		if s, _ := Parse("c", "/h", back); err != nil || len(s.ProjectSensors) > 0 && s.ProjectSensors[0] == "/p" {
			t.Errorf("%s: back: %q, %v", row.name, back, err)
		}
	}
}

func TestDistrustEdit(t *testing.T) {
	home := t.TempDir()
	for _, row := range []struct{ name, text, want string }{
		{"block", "ways:\n  project_sensors:\n    - /a\n    - /p # c\n    - ~/x\n", "ways:\n  project_sensors:\n    - /a\n    - ~/x\n"},
		{"twice", "ways:\n  project_sensors:\n    - /p\n    - /a\n    - /p/.\n", "ways:\n  project_sensors:\n    - /a\n"},
		{"flow first", "ways: {project_sensors: [/p, /a]}\n", "ways: {project_sensors: [/a]}\n"},
		{"flow last", "ways: {project_sensors: [/a, \"/p\"]}\n", "ways: {project_sensors: [/a]}\n"},
		{"flow only", "x: 1\nways: {project_sensors: [/p]}\ny: 2\n", "x: 1\ny: 2\n"},
		{"flow in a block", "ways:\n  project_sensors: [/p]\n", ""},
		{"block only", "x: 1\nways:\n  project_sensors:\n    - /p\ny: 2\n", "x: 1\ny: 2\n"},
		{"comments stay", "# mine\nways:\n  # trusted\n  project_sensors:\n    - /p\n# end\n", "# mine\n  # trusted\n# end\n"},
		{"a comment at the key", "ways:\n  project_sensors: # trusted\n    - /p\n", "ways:\n  project_sensors: # trusted\n"},
		{"what Trust wrote", "spool: {sync: always}\nways:\n  project_sensors:\n    - \"/p\"\n", "spool: {sync: always}\n"},
		{"another list stays", "other:\n  project_sensors:\nways:\n  project_sensors:\n    - /p\n", "other:\n  project_sensors:\n"},
		{"not listed", "ways: {project_sensors: [/a]}\n", "ways: {project_sensors: [/a]}\n"},
		{"no list", "x: 1\n", "x: 1\n"},
	} {
		got, err := Distrust([]byte(row.text), "/p", home)
		if err != nil || string(got) != row.want {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
	if _, err := Distrust([]byte("ways: {project_sensors: [\n"), "/p", home); err == nil {
		t.Error("a broken file")
	}
}
