package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"ways/hooks/payload"
	"ways/hooks/record"
	"ways/hooks/spool"
)

// session is the id that every record carries.
const session = "5f0c1e52-8d7a-4a58-9a51-2f8c60d3b1aa"

// Payloads outside these sizes, in bytes, are not used: what the client sends at
// most tool calls is within them, and a few that are far longer would be all that
// is measured.
const (
	leastPayload = 500
	mostPayload  = 4096
)

// batch is how many records are appended to a spool in one write when it is
// filled beforehand.
const batch = 100

// sections are the ones that records are made of.
func sections() record.Set {
	return record.SetOf(record.UserPrompt, record.AssistantResponse, record.ToolCall, record.ToolResult, record.Subagent)
}

// stream is a session's records as both sides are handed them: number n is at
// n-1.
type stream struct {
	drafts []record.Draft
	lines  [][]byte
	// starts is where the marker begins in each line.
	starts []int
}

// marker is what stands before a record's number.
func marker() []byte { return []byte(`"session":"` + session + `","seq":`) }

// newStream makes n records of the payloads below dir, which are taken in turn.
func newStream(dir, project string, n int) (stream, error) {
	payloads, err := readPayloads(dir)
	if err != nil {
		return stream{}, err
	}
	start := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var s stream
	for i := 0; len(s.drafts) < n; i++ {
		if i == len(payloads) && len(s.drafts) == 0 {
			return stream{}, fmt.Errorf("none of the %d payloads below %s makes a record", len(payloads), dir)
		}
		context := record.Context{Time: start.Add(time.Duration(i) * time.Millisecond), Project: project}
		s.drafts = append(s.drafts, record.FromEvent(payloads[i%len(payloads)], context, sections())...)
	}
	s.drafts = s.drafts[:n]
	for i, d := range s.drafts {
		s.add(d.Append(nil, uint64(i+1)))
	}
	return s, nil
}

func (s *stream) add(line []byte) {
	s.lines = append(s.lines, line)
	s.starts = append(s.starts, bytes.Index(line, marker()))
}

// readPayloads returns the events of the recorded payloads below dir, in the
// order of their paths, as one session's.
func readPayloads(dir string) ([]payload.Event, error) {
	var events []payload.Event
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) < leastPayload || len(raw) > mostPayload {
			return err
		}
		ev, err := payload.Parse(bytes.TrimSpace(raw))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		ev.Session = session
		events = append(events, ev)
		return nil
	})
	if err == nil && len(events) == 0 {
		err = fmt.Errorf("no recorded payload of %d to %d bytes below %s", leastPayload, mostPayload, dir)
	}
	return events, err
}

// between returns the records from one number to another, both included, as the
// spool takes them.
func (s stream) between(first, last int) []spool.Draft {
	var drafts []spool.Draft
	for _, d := range s.drafts[first-1 : last] {
		drafts = append(drafts, d)
	}
	return drafts
}

// text is the records from one number to another, both included, as lines.
func (s stream) text(first, last int) []byte {
	var b []byte
	for _, line := range s.lines[first-1 : last] {
		b = append(append(b, line...), '\n')
	}
	return b
}

// sizes tells the records' sizes, in bytes.
func (s stream) sizes() (least, median, most, mean int) {
	var sizes []int
	total := 0
	for _, line := range s.lines {
		sizes = append(sizes, len(line))
		total += len(line)
	}
	slices.SortFunc(sizes, cmp.Compare[int])
	return sizes[0], sizes[len(sizes)/2], sizes[len(sizes)-1], total / len(sizes)
}

// loadStream reads lines that text wrote.
func loadStream(path string) (stream, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return stream{}, err
	}
	var s stream
	for line := range bytes.Lines(text) {
		s.add(bytes.TrimSuffix(line, []byte("\n")))
	}
	return s, nil
}

// find returns what raw holds of the stream, in raw's order: records as ways or
// the Collector's protobuf carry them, byte for byte, whatever is around them.
func (s stream) find(raw []byte, at time.Time) []arrival {
	mark := marker()
	var found []arrival
	for from := 0; ; {
		i := bytes.Index(raw[from:], mark)
		if i < 0 {
			return found
		}
		p := from + i
		from = p + len(mark)
		seq, _ := number(raw[from:])
		a := arrival{Seq: seq, At: at}
		if seq >= 1 && seq <= len(s.lines) {
			line, start := s.lines[seq-1], p-s.starts[seq-1]
			// ways puts more fields before the last brace.
			a.Intact = start >= 0 && bytes.HasPrefix(raw[start:], line[:len(line)-1])
		}
		found = append(found, a)
	}
}

// number reads the decimal number that b begins with; whole says that it ends
// within b.
func number(b []byte) (n int, whole bool) {
	end := 0
	for end < len(b) && b[end] >= '0' && b[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(string(b[:end]))
	if err != nil {
		return 0, false
	}
	return n, end < len(b)
}

// bodies returns the records in one line of the Collector's file exporter, and how
// many JSON values the line holds: more than one, where an end of line was lost.
func bodies(line []byte) (list []string, values int, err error) {
	type request struct {
		ResourceLogs []struct {
			ScopeLogs []struct {
				LogRecords []struct {
					Body struct {
						StringValue string `json:"stringValue"`
					} `json:"body"`
				} `json:"logRecords"`
			} `json:"scopeLogs"`
		} `json:"resourceLogs"`
	}
	for in := json.NewDecoder(bytes.NewReader(line)); ; values++ {
		var data request
		if err := in.Decode(&data); errors.Is(err, io.EOF) {
			return list, values, nil
		} else if err != nil {
			return list, values, err
		}
		for _, resource := range data.ResourceLogs {
			for _, scope := range resource.ScopeLogs {
				for _, rec := range scope.LogRecords {
					list = append(list, rec.Body.StringValue)
				}
			}
		}
	}
}

// export is a request that posts one record to an OTLP receiver, as JSON.
func export(line []byte) ([]byte, error) {
	body, err := json.Marshal(string(line))
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":%s}}]}]}]}`, body), nil
}
