// Package expand fills what a sensor file leaves to the dispatcher: ${NAME} from
// its environment and ~/ for the home directory (design §5), so that no token
// sits in a file.
package expand

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ErrMissing is wrapped by the error for a variable that is not set or empty.
var ErrMissing = errors.New("environment variable is not set")

// ErrSyntax is wrapped by the error for a malformed ${NAME}, and for a path that
// is not absolute once it is filled in.
var ErrSyntax = errors.New("cannot be read")

// Vars replaces each ${NAME} in s by getenv(NAME), and $${ by a plain ${. A name
// is letters, digits and underscores and does not begin with a digit; any other $
// stands for itself. What a variable holds is not expanded again. Errors name
// the variable and never hold a value.
func Vars(s string, getenv func(string) string) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(s, "${")
		if !found {
			out.WriteString(s)
			return out.String(), nil
		}
		if plain, escaped := strings.CutSuffix(before, "$"); escaped {
			out.WriteString(plain)
			out.WriteString("${")
			s = after
			continue
		}
		out.WriteString(before)
		name, rest, closed := strings.Cut(after, "}")
		if !closed {
			return "", fmt.Errorf("a ${ without its }: %w", ErrSyntax)
		}
		if !isName(name) {
			return "", fmt.Errorf("${%s} is no variable name: %w", name, ErrSyntax)
		}
		value := getenv(name)
		if value == "" {
			return "", fmt.Errorf("${%s}: %w; set it where the client is started", name, ErrMissing)
		}
		out.WriteString(value)
		s = rest
	}
}

// Path is Vars for a path, with a leading ~/ (or ~ alone) standing for home. The
// result is absolute and clean; anything else is an error.
func Path(s, home string, getenv func(string) string) (string, error) {
	under, tilde := strings.CutPrefix(s, "~/")
	if s == "~" {
		under, tilde = "", true
	}
	if tilde && home == "" {
		return "", fmt.Errorf("~/ without a home directory: HOME: %w", ErrMissing)
	}
	filled, err := Vars(under, getenv)
	if err != nil {
		return "", err
	}
	if tilde {
		filled = home + "/" + filled
	}
	if strings.ContainsRune(filled, 0) {
		return "", fmt.Errorf("a path with a NUL byte: %w", ErrSyntax)
	}
	if !filepath.IsAbs(filled) {
		return "", fmt.Errorf("%q is not absolute; begin it with / or ~/: %w", s, ErrSyntax)
	}
	return filepath.Clean(filled), nil
}

func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
