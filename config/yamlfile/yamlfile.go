// Package yamlfile reads the part of YAML that configuration files here may
// use: one document of mappings, sequences and scalars. Anchors, aliases, merge
// keys and tags are refused, and so are words that other YAML readers take for
// booleans: what a file says must be plain to see, and the same to every reader.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Fault is something wrong at one place of a file.
type Fault struct {
	// Line and Col count from 1, Col in characters; 0 when unknown.
	Line, Col int
	// Message says what is wrong, Hint what to do.
	Message, Hint string
}

// Parse reads one document. The node is nil, without a fault, for a file that
// holds nothing. Data longer than the caller wants is the caller's to refuse.
func Parse(data []byte) (node *yaml.Node, fault *Fault) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if fault := checkBytes(data); fault != nil {
		return nil, fault
	}
	// The reader is other people's code on input that may be hostile: should it
	// panic, the file is refused and the process goes on.
	defer func() {
		if r := recover(); r != nil {
			node, fault = nil, &Fault{Message: fmt.Sprintf("cannot be read as YAML: %v", r)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxFault(data, err)
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntaxFault(data, err)
	default:
		return nil, &Fault{second.Line, second.Column, "a second document begins here", "one file holds one document: remove the --- line, or use two files"}
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" && root.Anchor == "" && root.Value == "" {
		return nil, nil
	}
	return root, nil
}

// checkBytes finds what would make the reader's own message obscure.
func checkBytes(data []byte) *Fault {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return &Fault{1, 1, "is UTF-16", "save it as UTF-8"}
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		line, col := place(data, i)
		return &Fault{line, col, "holds a NUL byte", "this is no text file; save it again"}
	}
	if !utf8.Valid(data) {
		i := 0
		for i < len(data) {
			r, size := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			i += size
		}
		line, col := place(data, i)
		return &Fault{line, col, fmt.Sprintf("holds the byte %#02x, which is not UTF-8", data[i]), "save it as UTF-8"}
	}
	return nil
}

// place turns a byte offset into line and column.
func place(data []byte, offset int) (line, col int) {
	before := data[:offset]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, 1 + utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):])
}

// syntaxFault makes a fault of the YAML reader's error, "yaml: line 3: ...". The
// reader leaves the line out when it is the first, and of some mistakes it knows
// only near which line they are.
func syntaxFault(data []byte, err error) *Fault {
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	fault := &Fault{Line: 1, Col: 1}
	if rest, ok := strings.CutPrefix(what, "line "); ok {
		if number, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				fault.Line, what = n, after
			}
		}
	}
	fault.Message = "is not YAML: " + what
	switch {
	case strings.Contains(what, "tab character"), strings.Contains(what, "cannot start any token"):
		if line, col, ok := tabNear(data, fault.Line); ok {
			return &Fault{line, col, "a tab in front of the line; YAML is indented with spaces", "replace it by spaces"}
		}
		fault.Hint = "put the text in quotes"
	case strings.Contains(what, "mapping values are not allowed"):
		fault.Hint = "put a text with a colon in it in quotes, and look at the indentation"
	case strings.Contains(what, "alphabetic or numeric character"):
		fault.Hint = "put a text that begins with * or & in quotes"
	case strings.Contains(what, "did not find expected"), strings.Contains(what, "unexpected end"):
		fault.Hint = "look near this line for wrong indentation, or a quote or bracket that is not closed"
	case strings.Contains(what, "control characters"):
		fault.Line, fault.Col = firstControl(data)
	case strings.HasPrefix(what, "unknown anchor"):
		if _, name, ok := strings.Cut(what, "'"); ok {
			name, _, _ = strings.Cut(name, "'")
			if i := bytes.Index(data, []byte("*"+name)); i >= 0 {
				fault.Line, fault.Col = place(data, i)
			}
		}
		fault.Hint = "put a text that begins with * in quotes"
	}
	return fault
}

// tabNear finds a tab in the indentation of the line or of one beside it.
func tabNear(data []byte, number int) (line, col int, ok bool) {
	for i, text := range bytes.Split(data, []byte("\n")) {
		indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]
		if at := bytes.IndexByte(indent, '\t'); at >= 0 && i+1 >= number-1 && i+1 <= number+1 {
			return i + 1, at + 1, true
		}
	}
	return 0, 0, false
}

// firstControl finds the first character that YAML does not allow in a file.
func firstControl(data []byte) (line, col int) {
	for i, r := range string(data) {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff {
			return place(data, i)
		}
	}
	return 1, 1
}

// At returns a fault at a node.
func At(n *yaml.Node, message, hint string) *Fault {
	return &Fault{n.Line, n.Column, message, hint}
}

// Plain refuses a node that is an alias, or has an anchor or a tag.
func Plain(n *yaml.Node) *Fault {
	switch {
	case n.Kind == yaml.AliasNode:
		return At(n, "the alias *"+n.Value+" is not available here", "write the value out")
	case n.Anchor != "":
		return At(n, "the anchor &"+n.Anchor+" is not available here", "remove it, and write the value out wherever it is used")
	case n.Style&yaml.TaggedStyle != 0:
		return At(n, "the tag "+n.Tag+" is not available here", "remove it; put text in quotes where it could be taken for something else")
	}
	return nil
}

// Pair is one entry of a mapping.
type Pair struct {
	Name  string
	Key   *yaml.Node
	Value *yaml.Node
	// Fault is what is wrong with the name itself: it is no plain text, or it
	// stands here a second time.
	Fault *Fault
}

// Pairs returns the entries of a mapping in order.
func Pairs(mapping *yaml.Node) []Pair {
	pairs := make([]Pair, 0, len(mapping.Content)/2)
	first := make(map[string]int, len(mapping.Content)/2)
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		p := Pair{Key: mapping.Content[i], Value: mapping.Content[i+1]}
		switch {
		case p.Key.Kind == yaml.ScalarNode && p.Key.Tag == "!!merge":
			p.Name = "<<"
			p.Fault = At(p.Key, "the merge key << is not available here", "write the entries out")
		case p.Key.Kind != yaml.ScalarNode && p.Key.Kind != yaml.AliasNode:
			p.Fault = At(p.Key, "a name must be plain text", "")
		default:
			p.Name = p.Key.Value
			p.Fault = Plain(p.Key)
		}
		if p.Fault == nil {
			if line, again := first[p.Name]; again {
				p.Fault = At(p.Key, fmt.Sprintf("%q stands here a second time; the first is on line %d", p.Name, line), "remove one of them")
			} else {
				first[p.Name] = p.Key.Line
			}
		}
		pairs = append(pairs, p)
	}
	return pairs
}

// Bare reports whether a scalar is written without quotes and not as a block.
func Bare(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode &&
		n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// Ambiguous reports whether a bare word is a boolean to YAML 1.1 readers and
// a text to this one.
func Ambiguous(n *yaml.Node) bool {
	if !Bare(n) || n.Tag != "!!str" {
		return false
	}
	switch n.Value {
	case "y", "Y", "yes", "Yes", "YES", "n", "N", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF":
		return true
	}
	return false
}

// Scalar returns a scalar's text, as written, whatever its type; a missing
// value, a list, a mapping, an alias, anchor or tag is a fault.
func Scalar(n *yaml.Node) (string, *Fault) {
	if fault := Plain(n); fault != nil {
		return "", fault
	}
	switch n.Kind {
	case yaml.SequenceNode:
		return "", At(n, "is a list where one value is wanted", "")
	case yaml.MappingNode:
		return "", At(n, "is a group where one value is wanted", "")
	case yaml.ScalarNode:
	default:
		return "", At(n, "is no value", "")
	}
	if n.Tag == "!!null" {
		if n.Value == "" {
			return "", At(n, "has no value", "write one, or remove the line")
		}
		return "", At(n, "is null", "write a value, or remove the line")
	}
	return n.Value, nil
}

// Text returns a scalar as text: a number as it is written, but a bare
// boolean, or a word that some readers take for one, is a fault.
func Text(n *yaml.Node) (string, *Fault) {
	text, fault := Scalar(n)
	if fault != nil {
		return "", fault
	}
	if n.Tag == "!!bool" || Ambiguous(n) {
		return "", At(n, fmt.Sprintf("%s without quotes is a truth value to some YAML readers", text), fmt.Sprintf("write %q in quotes for the text", text))
	}
	return text, nil
}
