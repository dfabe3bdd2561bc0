package redact_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"ways/hooks/redact"
)

// A record that is shared is sealed as one that is not, whoever comes first, also
// by many at once, and for each under its own envelope.
func TestSharedAsAlone(t *testing.T) {
	plain := masker(t, redact.Options{})
	own := masker(t, redact.Options{Rules: []redact.Rule{{Name: "badge", Regex: `badge-\d+`, Keywords: []string{"badge-"}}}})
	for _, rec := range []string{
		`{"v":1,"data":{"text":"nothing to see"}}`,
		`{"v":1,"data":{"text":"badge-12345 and ghp_0Aa1Bb2Cc3Dd4Ee5Ff6Gg7Hh8Ii9Jj0Kk1Ll"}}`,
		` {"v":1,"data":{"password":"hunter2hunter2","again":"badge-1"}} `,
		`{"v":1,"data":"` + strings.Repeat("words and ", 500) + `badge-9"}`,
		`{}`, `[1]`, ``, `{"v":`,
	} {
		shared := redact.NewShared([]byte(rec))
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				masker := plain
				if i%4 == 3 {
					masker = own
				}
				add := redact.Envelope{Rule: fmt.Sprint("sensor/rule", i), RuleSeq: uint64(i), Test: i == 5}
				want, got := masker.Seal([]byte(rec), add), masker.SealShared(shared, add)
				if string(got.Bytes()) != string(want.Bytes()) || !maps.Equal(got.Counts(), want.Counts()) {
					t.Errorf("%.60q: %.300q %v, want %.300q %v", rec, got.Bytes(), got.Counts(), want.Bytes(), want.Counts())
				}
				if got, want := redact.PlainShared(shared, add), redact.Plain([]byte(rec), add); string(got.Bytes()) != string(want.Bytes()) || got.Counts() != nil {
					t.Errorf("%.60q, not masked: %.300q, want %.300q", rec, got.Bytes(), want.Bytes())
				}
			})
		}
		group.Wait()
		if string(shared.Bytes()) != rec {
			t.Errorf("%.60q was changed: %.300q", rec, shared.Bytes())
		}
	}
}
