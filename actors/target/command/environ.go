package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ways/actors/target"
	"ways/actors/target/expand"
	"ways/config/plan"
)

// inherited returns the variables that a consumer gets from the dispatcher's own
// environment (design §5); everything else is cleared.
func inherited() []string {
	return []string{
		"PATH", "HOME", "LANG", "TMPDIR",
		"LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
		"LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
		"XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME",
		"XDG_RUNTIME_DIR", "XDG_STATE_HOME",
	}
}

// environ is an environment under construction: later values win, the order of
// first appearance stays.
type environ []plan.Pair

func (e *environ) set(name, value string) {
	for i := range *e {
		if (*e)[i].Name == name {
			(*e)[i].Value = value
			return
		}
	}
	*e = append(*e, plan.Pair{Name: name, Value: value})
}

func (e environ) value(name string) string {
	for _, p := range e {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

func (e environ) list() []string {
	list := make([]string, len(e))
	for i, p := range e {
		list[i] = p.Name + "=" + p.Value
	}
	return list
}

func (t *Target) environment(d target.Dispatch) (environ, error) {
	var env environ
	for _, name := range inherited() {
		if value := t.opts.Getenv(name); value != "" {
			env.set(name, value)
		}
	}
	if env.value("PATH") == "" {
		env.set("PATH", defaultPath)
	}
	for _, p := range t.cfg.Env {
		value, err := expand.Vars(p.Value, t.opts.Getenv)
		if errors.Is(err, expand.ErrMissing) {
			return nil, t.fail(target.Refused, "missing_variable", fmt.Errorf("env %s: %w", p.Name, err))
		}
		if err != nil {
			return nil, t.fail(target.Refused, "bad_env", fmt.Errorf("env %s: %w", p.Name, err))
		}
		if p.Name == "" || strings.ContainsAny(p.Name, "=\x00") || strings.ContainsRune(value, 0) {
			return nil, t.fail(target.Refused, "bad_env", fmt.Errorf("env %q cannot be set: a name holds no = and neither it nor a value a NUL", p.Name))
		}
		env.set(p.Name, value)
	}
	// Last, so that no rule can take the markers away.
	env.set(Marker, "1")
	for _, p := range []plan.Pair{
		{Name: markerRule, Value: d.Rule},
		{Name: markerSession, Value: d.Session},
		{Name: markerSeq, Value: strconv.FormatUint(d.Seq, 10)},
		{Name: markerID, Value: d.ID},
		{Name: markerOwner, Value: owner()},
	} {
		env.set(p.Name, strings.ReplaceAll(p.Value, "\x00", "\uFFFD"))
	}
	return env, nil
}
