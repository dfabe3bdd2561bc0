package events

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// JudgeCall is the event whose lines are carried forward when the log is
// compacted, so that what was spent is never forgotten.
const JudgeCall = "judge_call"

// keep returns what a compaction leaves of a log: the newest whole lines, and in
// front of them the judge_call lines of what is cut off, together limit bytes at
// most. When those lines alone would take more than a third, they are summed up
// (sumUp). Lines that are no whole JSON object are not carried, and damage at the
// end stays where it is.
func keep(data []byte, limit int64) []byte {
	if int64(len(data)) <= limit {
		return data
	}
	cut := cutAt(data, int64(len(data))-limit)
	carried := calls(data[:cut])
	// What is carried makes room for itself; the lines that this cuts are looked
	// at too.
	for range 3 {
		if size := int64(total(carried)); size > limit/3 {
			carried = sumUp(carried)
		}
		next := cutAt(data, int64(len(data))-limit+int64(total(carried)))
		if next <= cut {
			break
		}
		carried = append(carried, calls(data[cut:next])...)
		cut = next
	}
	out := make([]byte, 0, total(carried)+len(data)-cut)
	for _, line := range carried {
		out = append(append(out, line...), '\n')
	}
	return append(out, data[cut:]...)
}

// cutAt is the first line start at or behind at.
func cutAt(data []byte, at int64) int {
	at = min(max(at, 0), int64(len(data)))
	if at == 0 || data[at-1] == '\n' {
		return int(at)
	}
	i := bytes.IndexByte(data[at:], '\n')
	if i < 0 {
		return len(data)
	}
	return int(at) + i + 1
}

func total(lines [][]byte) int {
	n := 0
	for _, l := range lines {
		n += len(l) + 1
	}
	return n
}

// calls are the judge_call lines among lines.
func calls(data []byte) [][]byte {
	var out [][]byte
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\n")
		if !bytes.Contains(line, []byte(`"`+JudgeCall+`"`)) {
			continue
		}
		var e map[string]string
		if json.Unmarshal(line, &e) == nil && e["event"] == JudgeCall {
			out = append(out, line)
		}
	}
	return out
}

// sumUp makes one line of all judge_call lines of one month, outcome, engine,
// provider, model and way of knowing the cost: count says how many calls it
// stands for, and numbers are summed. What names a single call is left out.
func sumUp(lines [][]byte) [][]byte {
	sums := map[string]map[string]string{}
	var order []string
	for _, line := range lines {
		var e map[string]string
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		month := e["ts"][:min(len(e["ts"]), len("2006-01"))]
		key := strings.Join([]string{month, e["outcome"], e["engine"], e["provider"], e["model"], e["cost_source"]}, "\x00")
		s := sums[key]
		if s == nil {
			s = map[string]string{"event": JudgeCall}
			sums[key] = s
			order = append(order, key)
		}
		if e["count"] == "" {
			e["count"] = "1"
		}
		for _, name := range []string{"outcome", "engine", "provider", "model", "cost_source"} {
			if e[name] != "" {
				s[name] = e[name]
			}
		}
		s["ts"] = max(s["ts"], e["ts"])
		for _, name := range []string{
			"count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd",
		} {
			if e[name] != "" {
				s[name] = plus(s[name], e[name])
			}
		}
	}
	var out [][]byte
	for _, key := range order {
		if line, err := json.Marshal(sums[key]); err == nil {
			out = append(out, line)
		}
	}
	slices.SortStableFunc(out, bytes.Compare)
	return out
}

// maxNumber bounds the text of a number that is summed.
const maxNumber = 64

// plus adds two decimal numbers, exactly; what is no number counts as 0.
func plus(a, b string) string {
	sum := new(big.Rat)
	for _, text := range []string{a, b} {
		if n, ok := new(big.Rat).SetString(text); ok && len(text) <= maxNumber && !strings.ContainsAny(text, "eEpPxX_/") {
			sum.Add(sum, n)
		}
	}
	text := sum.FloatString(12)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
