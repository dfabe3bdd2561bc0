package logs

import (
	"bytes"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/rs/zerolog"

	"ways/actors/target/visible"
)

// Line is one line of a log.
type Line struct {
	// Raw is the JSON object, without the newline.
	Raw     []byte
	Time    time.Time
	Level   zerolog.Level
	Message string
	Session string
	Rule    string
	// Fields are the others, in their order; values are JSON, or a string's text.
	Fields []Field
}

// Field is one further field.
type Field struct{ Name, Value string }

// maxQuoted bounds how much of a line that is no JSON is shown.
const maxQuoted = 1000

// Parse reads a line. One that is no JSON object becomes one that says so, with
// the time of the line before it, so that whoever reads JSON can go on.
func Parse(raw []byte, path string, before time.Time) Line {
	raw = bytes.TrimRight(raw, "\r\n")
	if l, ok := parse(raw); ok {
		if l.Time.IsZero() {
			l.Time = before
		}
		return l
	}
	quoted := string(raw[:min(len(raw), maxQuoted)])
	out := before.UTC().AppendFormat([]byte(`{"level":"error","time":"`), time.RFC3339Nano)
	out = append(out, `","message":"a line of the log is no JSON","file":`...)
	out = appendQuoted(out, path)
	out = append(out, `,"line":`...)
	out = append(appendQuoted(out, quoted), '}')
	l, _ := parse(out)
	l.Time = before
	return l
}

func appendQuoted(dst []byte, s string) []byte {
	// Only invalid UTF-8 is an error, and is replaced then.
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}

func parse(raw []byte) (Line, bool) {
	l := Line{Raw: raw, Level: zerolog.NoLevel}
	if bytes.IndexByte(raw, '\n') >= 0 {
		return l, false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return l, false
	}
	for dec.PeekKind() == '"' {
		tok, err := dec.ReadToken()
		if err != nil {
			return l, false
		}
		name := tok.String()
		value, err := dec.ReadValue()
		if err != nil {
			return l, false
		}
		text := string(value)
		if value.Kind() == '"' {
			plain, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				text = strings.Trim(text, `"`)
			} else {
				text = string(plain)
			}
		}
		switch name {
		case "time":
			l.Time, _ = time.Parse(time.RFC3339Nano, text)
		case "level":
			if level, err := zerolog.ParseLevel(text); err == nil {
				l.Level = level
			}
		case "message":
			l.Message = text
		case "session":
			l.Session = text
		case "rule":
			l.Rule = text
		default:
			l.Fields = append(l.Fields, Field{name, text})
		}
	}
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '}' {
		return l, false
	}
	return l, len(bytes.TrimSpace(raw[dec.InputOffset():])) == 0
}

// shownSession is how much of a session's id is shown where space is short.
const shownSession = 8

// Text is the line for people, harmless on a terminal.
func (l Line) Text() string {
	var b strings.Builder
	b.WriteString(l.Time.Local().Format("2006-01-02 15:04:05.000"))
	level := "-"
	if l.Level != zerolog.NoLevel {
		level = l.Level.String()
	}
	b.WriteString(" " + strings.ToUpper(level) + strings.Repeat(" ", max(6-len(level), 1)))
	if l.Session != "" {
		session := []rune(l.Session)
		b.WriteString(visible.Line(string(session[:min(len(session), shownSession)])) + " ")
	}
	if l.Rule != "" {
		b.WriteString(visible.Line(l.Rule) + " ")
	}
	b.WriteString(visible.Line(l.Message))
	for _, f := range l.Fields {
		value := f.Value
		if value == "" || strings.ContainsAny(value, " \t\n\"=") {
			value = `"` + strings.ReplaceAll(value, `"`, `\"`) + `"`
		}
		b.WriteString(" " + visible.Line(f.Name) + "=" + visible.Line(value))
	}
	return b.String()
}
