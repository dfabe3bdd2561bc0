package redact_test

import (
	"strings"
	"testing"

	"ways/hooks/chain"
	"ways/hooks/redact"
)

func TestLink(t *testing.T) {
	p := masker(t, redact.Options{}).Seal([]byte(`{"a":"password = hunter2"}`), redact.Envelope{Rule: "a/b", RuleSeq: 1})
	linked, head, err := p.Link(chain.Head{N: 6})
	if err != nil {
		t.Fatal(err)
	}
	body := string(linked.Bytes())
	if !strings.HasPrefix(body, strings.TrimSuffix(string(p.Bytes()), "}")+`,"chain_n":7,`) || linked.Counts()["password"] != 1 {
		t.Errorf("linked: %s %v", body, linked.Counts())
	}
	if l, ok := chain.Parse(linked.Bytes()); !ok || !l.Whole() || l.Head() != head {
		t.Errorf("link: %+v, %v", l, ok)
	}
	if _, _, err := (redact.Payload{}).Link(chain.Head{}); err == nil {
		t.Error("nothing was linked")
	}
}
