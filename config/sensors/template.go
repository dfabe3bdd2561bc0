package sensors

import (
	"fmt"
	"strconv"
	"strings"
)

// checkTemplate checks the {field} placeholders of a text template or of an
// argument, as the targets read them; an empty message is agreement. They read
// them again: this is to find a mistake before a record is lost to it.
func checkTemplate(text string) string {
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "{{"), strings.HasPrefix(text[i:], "}}"):
			i += 2
		case text[i] == '{':
			inside, _, closed := strings.Cut(text[i+1:], "}")
			if !closed {
				return fmt.Sprintf("character %d: a { without its }; write {{ for a plain one", i+1)
			}
			for alternative := range strings.SplitSeq(inside, "|") {
				if message := checkPlaceholder(alternative); message != "" {
					return fmt.Sprintf("{%s}: %s", inside, message)
				}
			}
			i += len(inside) + 2
		default:
			i++
		}
	}
	return ""
}

func checkPlaceholder(path string) string {
	for name := range strings.SplitSeq(path, ".") {
		name, indexes, _ := strings.Cut(name, "[")
		if name == "" || strings.ContainsAny(name, " \t\r\n{\"'`,:]") {
			return fmt.Sprintf("%q is no field name; write {{ for a plain brace", name)
		}
		for indexes != "" {
			digits, rest, closed := strings.Cut(indexes, "]")
			n, err := strconv.Atoi(digits)
			if !closed || err != nil || n < 0 || rest != "" && rest[0] != '[' {
				return fmt.Sprintf("[%s is no index", indexes)
			}
			indexes = strings.TrimPrefix(rest, "[")
		}
	}
	return ""
}
