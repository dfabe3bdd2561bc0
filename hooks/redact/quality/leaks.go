package quality

import (
	"strings"
)

// minLeak is the length of a piece of a secret that counts as a leak, in
// bytes; a shorter secret leaks whole or not at all.
const minLeak = 16

// Leaks returns what of the parts is still to be seen in a record, at any
// level of escapes, or "".
func Leaks(rec []byte, parts []string) string {
	views := []string{string(rec)}
	for range 4 {
		last := views[len(views)-1]
		next := strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, "\t", `\/`, "/", `\u0026`, "&", `\u003c`, "<", `\u003e`, ">").Replace(last)
		if next == last {
			break
		}
		views = append(views, next)
	}
	for _, part := range parts {
		size := min(len(part), minLeak)
		for i := 0; i+size <= len(part); i += max(1, size/2) {
			for _, v := range views {
				if strings.Contains(v, part[i:i+size]) {
					return part[i : i+size]
				}
			}
		}
	}
	return ""
}
