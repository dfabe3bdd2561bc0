package launch

import "strings"

// Environment is the environment a dispatcher is started with: the user's,
// which ${NAME} in sensor files is read from, without the client's own control
// variables, which belong to the session and can speak for it (design §5).
func Environment(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if name == "CLAUDECODE" || strings.HasPrefix(name, "CLAUDE_") {
			continue
		}
		kept = append(kept, kv)
	}
	return kept
}
