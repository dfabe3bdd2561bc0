package main

import (
	"bytes"
	"os"
	"strings"
	"time"

	"ways/cmd/internal/figures"
)

// arrival is one record at a consumer.
type arrival struct {
	Seq int       `json:"seq"`
	At  time.Time `json:"at"`
	// Intact: the record's bytes are those that were handed over.
	Intact bool `json:"intact"`
	// ID is the delivery id that came with it, if any.
	ID string `json:"id,omitempty"`
}

// verdict is what a consumer got of a stream.
type verdict struct {
	// Missing records never came, Doubled ones came again, Misplaced ones came
	// first behind a later one, Changed ones came with other bytes or were never
	// handed over.
	Missing, Doubled, Misplaced, Changed int
	// Known are the doubled ones that came under the delivery id that they had before.
	Known int
	// Torn is how many lines of a file are not one JSON value.
	Torn int
}

// judge compares what came, in the order in which it came, with records 1 to n.
func judge(came []arrival, n int) verdict {
	var v verdict
	seen := make([]bool, n+1)
	ids := make([]string, n+1)
	latest := 0
	for _, a := range came {
		if a.Seq < 1 || a.Seq > n {
			v.Changed++
			continue
		}
		if !a.Intact {
			v.Changed++
		}
		switch {
		case seen[a.Seq]:
			v.Doubled++
			if a.ID != "" && a.ID == ids[a.Seq] {
				v.Known++
			}
		case a.Seq < latest:
			v.Misplaced++
		}
		seen[a.Seq], ids[a.Seq] = true, a.ID
		latest = max(latest, a.Seq)
	}
	for _, there := range seen[1:] {
		if !there {
			v.Missing++
		}
	}
	return v
}

func (v verdict) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{v.Missing, "missing"}, {v.Doubled, "doubled"}, {v.Known, "of them under their id"}, {v.Misplaced, "out of order"}, {v.Changed, "changed"}, {v.Torn, "torn lines"}} {
		if part.n > 0 {
			parts = append(parts, figures.Thousands(float64(part.n))+" "+part.what)
		}
	}
	if len(parts) == 0 {
		return "each once, in order"
	}
	return strings.Join(parts, ", ")
}

// sum adds up what happened over several runs.
func (v verdict) sum(other verdict) verdict {
	return verdict{
		v.Missing + other.Missing, v.Doubled + other.Doubled, v.Misplaced + other.Misplaced,
		v.Changed + other.Changed, v.Known + other.Known, v.Torn + other.Torn,
	}
}

// readFile returns what a consumer's file holds of the stream, and how many of
// its lines are torn. otlp says that the Collector wrote it.
func (s stream) readFile(path string, otlp bool) ([]arrival, int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, err
	}
	var came []arrival
	torn := 0
	for line := range bytes.Lines(text) {
		if !otlp {
			if !bytes.HasSuffix(line, []byte("}\n")) {
				torn++
				continue
			}
			came = append(came, s.find(line, time.Time{})...)
			continue
		}
		list, values, err := bodies(line)
		if err != nil || values != 1 {
			torn++
		}
		for _, body := range list {
			came = append(came, s.find([]byte(body), time.Time{})...)
		}
	}
	return came, torn, nil
}

// firsts returns when each record came first, by number.
func firsts(came []arrival) map[int]time.Time {
	first := make(map[int]time.Time, len(came))
	for _, a := range came {
		if _, there := first[a.Seq]; !there {
			first[a.Seq] = a.At
		}
	}
	return first
}

// span returns when the first and the last of the records came that came.
func span(first map[int]time.Time) (begin, end time.Time) {
	for _, at := range first {
		if begin.IsZero() || at.Before(begin) {
			begin = at
		}
		if at.After(end) {
			end = at
		}
	}
	return begin, end
}
