package plan

import (
	"net/url"
	"path/filepath"
)

// String names a target for people, without secrets: a path, a URL without user
// and query, a program's name.
func (t Target) String() string {
	switch {
	case t.File != nil:
		return "file " + t.File.Path
	case t.HTTP != nil:
		u, err := url.Parse(t.HTTP.URL)
		if err != nil {
			return "http"
		}
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		return "http " + u.String()
	case t.Command != nil && len(t.Command.Argv) > 0:
		return "command " + filepath.Base(t.Command.Argv[0])
	}
	return "none"
}
