package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func TestKeep(t *testing.T) {
	var log []byte
	for i := range 100 {
		log = fmt.Appendf(log, `{"ts":"2026-11-0%d","event":"sensor_drop","seq":"%d"}`+"\n", 1+i/50, i)
		if i < 3 {
			log = fmt.Appendf(log, `{"ts":"2026-11-01","event":"judge_call","cost_usd":"0.0%d"}`+"\n", i)
		}
	}
	log = append(log, `{"event":"judge_call"`...) // torn
	got := string(keep(log, 1000))
	if len(got) > 1000 {
		t.Errorf("%d bytes", len(got))
	}
	rows := strings.Split(got, "\n")
	for i := range 3 {
		if rows[i] != fmt.Sprintf(`{"ts":"2026-11-01","event":"judge_call","cost_usd":"0.0%d"}`, i) {
			t.Errorf("row %d is %s", i, rows[i])
		}
	}
	if !strings.HasSuffix(got, `"seq":"98"}`+"\n"+`{"ts":"2026-11-02","event":"sensor_drop","seq":"99"}`+"\n"+`{"event":"judge_call"`) {
		t.Errorf("the end is %q", got[len(got)-120:])
	}
	if short := []byte("a\nb"); !bytes.Equal(keep(short, 10), short) {
		t.Error("a short log was changed")
	}
}

func TestSumUp(t *testing.T) {
	call := func(ts, model, cost, tokens string) []byte {
		return fmt.Appendf(nil, `{"ts":%q,"event":"judge_call","outcome":"judged","model":%q,"cost_usd":%q,"input_tokens":%q,"session":"s"}`, ts, model, cost, tokens)
	}
	got := sumUp([][]byte{
		call("2026-10-31T10:00:00Z", "a", "0.1", "10"), call("2026-11-01T10:00:00Z", "a", "0.000001", "10"), call("2026-11-02T10:00:00Z", "a", "0.2", "5"),
		call("2026-11-02T10:00:00Z", "b", "", "1"), call("2026-11-03T10:00:00Z", "b", "1e99999999", "x"), []byte(`{"ts":"2026-11-09","event":"judge_call","model":"b","outcome":"judged","count":"40","cost_usd":"2"}`),
	})
	want := []string{
		`{"cost_usd":"0.1","count":"1","event":"judge_call","input_tokens":"10","model":"a","outcome":"judged","ts":"2026-10-31T10:00:00Z"}`,
		`{"cost_usd":"0.200001","count":"2","event":"judge_call","input_tokens":"15","model":"a","outcome":"judged","ts":"2026-11-02T10:00:00Z"}`,
		`{"cost_usd":"2","count":"42","event":"judge_call","input_tokens":"1","model":"b","outcome":"judged","ts":"2026-11-09"}`,
	}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if string(got[i]) != want[i] {
			t.Errorf("%s\nwant %s", got[i], want[i])
		}
	}
}

// Whatever the log holds: a compaction keeps its end, cuts at line starts, and
// counts every call.
func FuzzKeep(f *testing.F) {
	f.Add([]byte("{\"event\":\"judge_call\"}\n{\"event\":\"x\"}\nshort\n\n{\"ts\":\"2026-11\",\"event\":\"judge_call\",\"count\":\"3\"}\n"), uint16(20))
	f.Add([]byte("\n\n\n{\"event\":\"judge_call\"}"), uint16(1))
	f.Add([]byte(strings.Repeat("{\"event\":\"judge_call\",\"model\":\"m\"}\n", 9)), uint16(100))
	f.Fuzz(func(t *testing.T, data []byte, limit uint16) {
		got := keep(data, int64(limit))
		if int64(len(data)) <= int64(limit) {
			if !bytes.Equal(got, data) {
				t.Fatal("changed without need")
			}
			return
		}
		// Calls with a count that somebody else made up are left out of the sum.
		if before, after := countCalls(data), countCalls(got); before >= 0 && before != after {
			t.Fatalf("%d calls became %d: %q", before, after, got)
		}
		carried := 0
		for line := range bytes.Lines(got) {
			if bytes.Contains(line, []byte(`"judge_call"`)) {
				carried += len(line)
			}
		}
		if len(got) > int(limit)+carried {
			t.Fatalf("%d bytes of %d allowed, %d of them calls", len(got), limit, carried)
		}
	})
}

// countCalls is how many calls a log stands for; -1 when a number in it is none
// of ours.
func countCalls(data []byte) int {
	n := 0
	for _, line := range calls(data) {
		var e map[string]string
		if json.Unmarshal(line, &e) != nil {
			return -1
		}
		one := 1
		if e["count"] != "" {
			var err error
			if one, err = strconv.Atoi(e["count"]); err != nil || strconv.Itoa(one) != e["count"] || one < 0 || one > 1e6 {
				return -1
			}
		}
		n += one
	}
	return n
}
