package doctest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/itchyny/gojq"
)

// jq is as much of the program of that name as the pages use: the switches -c,
// -e, -n, -r and -s, a filter, files.
func jq(args []string, stdin io.Reader, stdout io.Writer) error {
	on := map[rune]bool{}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		for _, c := range args[0][1:] {
			if !strings.ContainsRune("cenrs", c) {
				return fmt.Errorf("jq: the tests know no switch -%c", c)
			}
			on[c] = true
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return fmt.Errorf("jq: no filter")
	}
	query, err := gojq.Parse(args[0])
	if err != nil {
		return err
	}
	var inputs []any
	read := func(r io.Reader) error {
		for d := json.NewDecoder(r); ; {
			var v any
			err := d.Decode(&v)
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			inputs = append(inputs, v)
		}
	}
	for _, path := range args[1:] {
		f, err := os.Open(path)
		if err == nil {
			err = read(f)
			f.Close()
		}
		if err != nil {
			return err
		}
	}
	if len(args) == 1 && !on['n'] {
		if err := read(stdin); err != nil {
			return err
		}
	}
	switch {
	case on['n']:
		inputs = []any{nil}
	case on['s']:
		inputs = []any{inputs}
	}
	var last any
	for _, in := range inputs {
		results := query.Run(in)
		for v, ok := results.Next(); ok; v, ok = results.Next() {
			if err, ok := v.(error); ok {
				return err
			}
			last = v
			text, err := gojq.Marshal(v)
			if s, ok := v.(string); ok && on['r'] {
				text = []byte(s)
			} else if err == nil && !on['c'] {
				err = json.Unmarshal(text, &v)
				text, _ = json.MarshalIndent(v, "", "  ")
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s\n", text)
		}
	}
	if on['e'] && (last == nil || last == false) {
		return fmt.Errorf("jq: the last result is %v", last)
	}
	return nil
}
