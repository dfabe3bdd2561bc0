package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/record"
)

// fact is what a record in the spool says, as far as it matters here.
type fact struct {
	section           record.Section
	source, agent     string
	agentType         string
	prompt, ref       string
	time              time.Time
	test              bool
	id, origin, phase string
	hash              string
	hasText           bool
}

// readFact reads a record. The envelope stands in front of the data, and in the
// data what is of interest stands in front of what can be large.
func readFact(rec []byte) (fact, bool) {
	f := fact{section: record.Unknown}
	dec := jsontext.NewDecoder(bytes.NewBuffer(rec), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return f, false
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return f, false
		}
		key := name.String()
		if key == "data" {
			return f, f.data(dec)
		}
		if k := dec.PeekKind(); k == '{' || k == '[' {
			if dec.SkipValue() != nil {
				return f, false
			}
			continue
		}
		val, err := dec.ReadToken()
		if err != nil {
			return f, false
		}
		if val.Kind() != '"' {
			f.test = f.test || key == "test" && val.Kind() == 't'
			continue
		}
		switch key {
		case "section":
			if s, ok := record.ParseSection(val.String()); ok {
				f.section = s
			}
		case "source":
			f.source = val.String()
		case "agent_id":
			if f.agent = val.String(); f.agent == "main" {
				f.agent = ""
			}
		case "agent_type":
			f.agentType = val.String()
		case "prompt_id":
			f.prompt = val.String()
		case "ref":
			f.ref = val.String()
		case "ts":
			f.time, _ = time.Parse(time.RFC3339Nano, val.String()) // ours; zero is old
		}
	}
	return f, false
}

// data reads what of the data is of interest.
func (f *fact) data(dec *jsontext.Decoder) bool {
	want := 0
	switch f.section {
	case record.ToolCall, record.ToolResult, record.AssistantResponse, record.QueuedMessage:
		want = 1
	case record.UserPrompt, record.Subagent:
		want = 2
	default:
		return true
	}
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return false
	}
	for want > 0 && dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return false
		}
		key := name.String()
		val, err := dec.ReadValue()
		if err != nil {
			return false
		}
		if val.Kind() != '"' {
			want--
			continue
		}
		switch key {
		case "id":
			f.id = unquote(val)
			want--
		case "phase":
			f.phase = unquote(val)
			want--
		case "origin":
			f.origin = unquote(val)
			want--
		case "text", "prompt":
			f.hash, f.hasText = hash(val), true
			want--
		}
	}
	return true
}

func unquote(val jsontext.Value) string {
	b, _ := jsontext.AppendUnquote(nil, val) // what is no UTF-8 becomes U+FFFD on both sides
	return string(b)
}

// hash is what two spellings of one text have in common: its characters without
// white space. The client joins the blocks of a message with some, and trims it.
func hash(texts ...jsontext.Value) string {
	h := sha256.New()
	var buf []byte
	for _, t := range texts {
		buf, _ = jsontext.AppendUnquote(buf[:0], t)
		rest := buf
		for len(rest) > 0 {
			// What stands between spaces is written as one.
			n := 0
			for n < len(rest) {
				r, size := utf8.DecodeRune(rest[n:])
				if unicode.IsSpace(r) {
					break
				}
				n += size
			}
			h.Write(rest[:n])
			for n < len(rest) {
				r, size := utf8.DecodeRune(rest[n:])
				if !unicode.IsSpace(r) {
					break
				}
				n += size
			}
			rest = rest[n:]
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
