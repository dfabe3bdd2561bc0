package problem

import "ways/hooks/redact"

// Mask masks secrets in what problems say: a message quotes the value that is
// wrong with it, and that may be a token in the wrong place.
func Mask(lists ...[]Problem) {
	var masker *redact.Masker
	for _, list := range lists {
		for i := range list {
			if masker == nil {
				var err error
				if masker, err = redact.New(redact.Options{}); err != nil {
					return // never: the built-in rules are tested
				}
			}
			for _, text := range []*string{&list[i].Message, &list[i].Suggestion} {
				masked, found := masker.Text([]byte(*text))
				if len(found) > 0 {
					*text = string(masked)
				}
			}
		}
	}
}
