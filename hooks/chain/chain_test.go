package chain_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"ways/hooks/chain"
)

const zeros = "0000000000000000000000000000000000000000000000000000000000000000"

func TestAppend(t *testing.T) {
	line, head, err := chain.Append([]byte("x"), []byte(`{"a":1}`), chain.Head{})
	if err != nil {
		t.Fatal(err)
	}
	covered := `{"a":1,"chain_n":1,"chain_prev":"` + zeros + `"`
	sum := sha256.Sum256([]byte(covered))
	if want := "x" + covered + `,"chain_hash":"` + hex.EncodeToString(sum[:]) + `"}`; string(line) != want {
		t.Errorf("line  %s\nwant  %s", line, want)
	}
	if head != (chain.Head{N: 1, Hash: sum}) {
		t.Errorf("head = %v", head)
	}
	second, next, err := chain.Append(nil, []byte("{\"b\":{} } \n"), head)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"b":{},"chain_n":2,"chain_prev":"` + hex.EncodeToString(sum[:]) + `","chain_hash":"` + hex.EncodeToString(next.Hash[:]) + `"}`; string(second) != want {
		t.Errorf("line  %s\nwant  %s", second, want)
	}
	link, ok := chain.Parse(second)
	if !ok || !link.Follows(head) || link.Head() != next {
		t.Errorf("Parse = %+v, %v", link, ok)
	}
	if link.Follows(chain.Head{N: 1}) || link.Follows(chain.Head{N: 2, Hash: sum}) {
		t.Error("a line follows a head that is not in front of it")
	}
	if len(line)-len(`x{"a":1}`) > chain.Overhead {
		t.Errorf("a link adds %d bytes, more than Overhead", len(line)-len(`x{"a":1}`))
	}
}

func TestAppendRefuses(t *testing.T) {
	for _, record := range []string{"", "{}", " {}", "[1]", `{"a":1`, "{\"a\":\n1}", "}", `"}"`} {
		if got, head, err := chain.Append(nil, []byte(record), chain.Head{}); !errors.Is(err, chain.ErrNotObject) || len(got) != 0 || head.N != 0 {
			t.Errorf("Append(%q) = %q, %v, %v", record, got, head, err)
		}
	}
}

// Nothing else than what Append writes is read as a link.
func TestParseIsExact(t *testing.T) {
	line, _, err := chain.Append(nil, []byte(`{"a":1}`), chain.Head{N: 41})
	if err != nil {
		t.Fatal(err)
	}
	good := string(line)
	if l, ok := chain.Parse(line); !ok || l.N != 42 || !l.Whole() {
		t.Fatalf("Parse = %+v, %v", l, ok)
	}
	for _, bad := range []string{
		"", "{}", good + " ", good + "\n", " " + good, good[1:], good[:len(good)-1],
		strings.Replace(good, `"chain_n":42`, `"chain_n":042`, 1),
		strings.Replace(good, `"chain_n":42`, `"chain_n": 42`, 1),
		strings.Replace(good, `"chain_n":42`, `"chain_n":-42`, 1),
		strings.Replace(good, `"chain_n":42`, `"chain_n":`, 1),
		strings.Replace(good, `"chain_n":42`, `"chain_n":18446744073709551616`, 1),
		strings.Replace(good, `"chain_n"`, `"chain_N"`, 1),
		strings.Replace(good, `"chain_prev"`, `"chain_prew"`, 1),
		strings.Replace(good, `,"chain_hash"`, ` ,"chain_hash"`, 1),
		strings.Replace(good, zeros, strings.Repeat("G", 64), 1),
		strings.Replace(good, zeros, zeros[:63], 1),
	} {
		if l, ok := chain.Parse([]byte(bad)); ok && l.Whole() {
			t.Errorf("Parse(%q) = %+v", bad, l)
		}
	}
}

func FuzzParse(f *testing.F) {
	line, _, _ := chain.Append(nil, []byte(`{"a":1}`), chain.Head{})
	f.Add(line)
	f.Add([]byte(`{"chain_n":1,"chain_prev":"` + zeros + `","chain_hash":"` + zeros + `"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, ok := chain.Parse(b)
		if !ok {
			return
		}
		// What is read as a link is written so again from what was read.
		cut := strings.LastIndex(string(b), `,"chain_n":`)
		again, _, err := chain.Append(nil, append(append([]byte{}, b[:cut]...), '}'), chain.Head{N: l.N - 1, Hash: l.Prev})
		if err == nil && l.Whole() && string(again) != string(b) {
			t.Errorf("%q is read as a link, and written as %q", b, again)
		}
	})
}
