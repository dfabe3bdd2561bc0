// Package where decides whether a record matches a rule's condition (design
// §5). A condition is compiled once and evaluated on the record's raw JSON
// bytes: no value is decoded that no path asks for, and no map is built.
//
// A condition is a JSON object of paths. Each path holds a bare value or an
// object of operators:
//
//	{"data.name": "mcp__*", "data.input.size": {"above": 10, "below": 20}}
//
// An entry (a path with what it holds) is true when
//
//   - the path leads to at least one value, and
//   - at least one of these values satisfies every operator of the entry other
//     than `not`, and
//   - none of these values is what `not` names.
//
// So a missing path matches nothing, `not` included; on a path with wildcards
// the positive operators ask for one value that satisfies them all, and `not`
// asks that there be none. With `match: all` every entry must be true, with
// `match: any` one of them. A condition without entries is true of everything.
//
// The operators, by the JSON type of the value they are asked about; a value of
// another type is never an error and never a match:
//
//	bare     a string without glob characters, a number, a boolean, null: as equals;
//	         a string with `*`, `?` or `[..]`: as like
//	equals   the same type and the same value; numbers by value (1.0 is 1, and
//	         9007199254740993 is not 9007199254740992); strings byte for byte
//	not      not what the bare value says; a list: none of them
//	in       one of a list of bare values
//	contains a string that holds the given string; an array with the given scalar
//	         among its elements
//	like     a string that the glob covers whole
//	matches  a string in which the RE2 expression finds a match
//	above    a number greater than the given one; a number in a string is no number
//	below    a number less than the given one
//
// Where an object repeats a name, the last one counts, as it does for the
// parsers of the consumers. Bytes that are no UTF-8 and lone surrogates count as
// U+FFFD. A record that is not valid JSON matches nothing.
package where
