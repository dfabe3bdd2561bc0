package sensors

import (
	"encoding/json"
	"strings"

	"ways/config/plan"
	"ways/config/sensors"
	"ways/hooks/redact"
)

// hush masks secrets in what a sensor file holds, before it is shown: a header
// with a token in it belongs in the environment, and is there all the same.
type hush struct{ masker *redact.Masker }

func newHush() (hush, error) {
	m, err := redact.New(redact.Options{})
	return hush{m}, err
}

// value masks a value that is assigned to a name.
func (h hush) value(name, value string) string {
	masked, found := h.masker.Text([]byte(name + ": " + value))
	if rest, ok := strings.CutPrefix(string(masked), name+": "); ok && len(found) > 0 {
		return rest
	}
	masked, _ = h.masker.Text([]byte(value))
	return string(masked)
}

// list masks a list, each text of it seen beside the one before: --token, abc.
func (h hush) list(v []string) []string {
	type record struct {
		List []string `json:"list"`
	}
	var masked record
	text, err := json.Marshal(record{v})
	if err == nil {
		err = json.Unmarshal(h.masker.Again(text).Bytes(), &masked)
	}
	if err != nil || len(masked.List) != len(v) {
		return make([]string, len(v)) // nothing rather than a secret
	}
	return masked.List
}

func (h hush) settings(list []sensors.Setting) []sensors.Setting {
	for i := range list {
		switch v := list[i].Value.(type) {
		case string:
			list[i].Value = h.value(list[i].Key, v)
		case []string:
			// An argument is seen beside the one before it.
			list[i].Value = h.list(v)
		case []plan.Pair:
			shown := make([]plan.Pair, len(v))
			for j, p := range v {
				shown[j] = plan.Pair{Name: p.Name, Value: h.value(p.Name, p.Value)}
			}
			list[i].Value = shown
		}
	}
	return list
}
