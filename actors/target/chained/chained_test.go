package chained

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ways/actors/target"
	"ways/hooks/chain"
	"ways/hooks/redact"
)

// consumer is a target that takes what it is told to.
type consumer struct {
	answer func(d target.Dispatch) error
	got    [][]byte
	closed bool
}

func (c *consumer) Deliver(_ context.Context, d target.Dispatch) error {
	c.got = append(c.got, bytes.Clone(d.Body.Bytes()))
	if c.answer == nil {
		return nil
	}
	return c.answer(d)
}
func (c *consumer) Describe() string { return "consumer" }
func (c *consumer) Close() error     { c.closed = true; return nil }

func dispatch(session string, n int, data string) target.Dispatch {
	return target.Dispatch{
		ID: fmt.Sprintf("%s:s/r:%d", session, n), Rule: "s/r", Session: session, Seq: uint64(n),
		Body: redact.Plain([]byte(fmt.Sprintf(`{"seq":%d,"data":%q}`, n, data)), redact.Envelope{Rule: "s/r", RuleSeq: uint64(n)}),
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func linkOf(t *testing.T, body []byte) chain.Link {
	t.Helper()
	l, ok := chain.Parse(body)
	if !ok || !l.Whole() {
		t.Fatalf("no link: %s", body)
	}
	return l
}

var errDown = errors.New("down")

// A record keeps its link over retries and restarts, whatever others send
// between.
func TestTheSameBytesAreSentAgain(t *testing.T) {
	opts := Options{StateDir: t.TempDir(), Rule: "s/r", Sync: true}
	down := &consumer{answer: func(target.Dispatch) error { return errDown }}
	a := New(down, opts)
	for range 2 {
		if err := a.Deliver(t.Context(), dispatch("a", 1, "x")); !errors.Is(err, errDown) {
			t.Fatalf("error = %v", err)
		}
	}
	up := &consumer{}
	b := New(up, opts)
	for n := range 2 * maxLinks {
		must(t, b.Deliver(t.Context(), dispatch("b", n, "y")))
	}
	must(t, a.Close())
	again := &consumer{}
	must(t, New(again, opts).Deliver(t.Context(), dispatch("a", 1, "x")))
	if !bytes.Equal(down.got[0], down.got[1]) || !bytes.Equal(down.got[0], again.got[0]) {
		t.Errorf("sent\n%s\n%s\n%s", down.got[0], down.got[1], again.got[0])
	}
	head := linkOf(t, again.got[0]).Head()
	if head.N != 1 {
		t.Errorf("first number %d", head.N)
	}
	for _, body := range up.got {
		l := linkOf(t, body)
		if !l.Follows(head) {
			t.Fatalf("%s does not follow %d", body, head.N)
		}
		head = l.Head()
	}
	if kept, err := Head(t.Context(), opts.StateDir, "s/r"); err != nil || kept != head {
		t.Errorf("Head = %v, %v; want %v", kept, err, head)
	}
	if !down.closed {
		t.Error("the target behind was not closed")
	}
}

// Bytes that are no longer the same get a link of their own.
func TestOtherBytesGetAnotherLink(t *testing.T) {
	c := &consumer{answer: func(target.Dispatch) error { return errDown }}
	to := New(c, Options{StateDir: t.TempDir(), Rule: "s/r"})
	_ = to.Deliver(t.Context(), dispatch("a", 1, "x"))
	_ = to.Deliver(t.Context(), dispatch("a", 1, "masked"))
	_ = to.Deliver(t.Context(), dispatch("a", 1, "masked"))
	first, second, third := linkOf(t, c.got[0]), linkOf(t, c.got[1]), linkOf(t, c.got[2])
	if first.N != 1 || !second.Follows(first.Head()) || third != second {
		t.Errorf("links %d, %d, %d", first.N, second.N, third.N)
	}
}

func TestManyProcessesMakeOneChain(t *testing.T) {
	opts := Options{StateDir: t.TempDir(), Rule: "s/r"}
	var wait sync.WaitGroup
	got := make([]*consumer, 20)
	for w := range got {
		got[w] = &consumer{}
		wait.Go(func() {
			to := New(got[w], opts)
			for n := range 20 {
				if err := to.Deliver(t.Context(), dispatch(fmt.Sprint(w), n, "x")); err != nil {
					t.Error(err)
				}
			}
			if err := to.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	byNumber := map[uint64]chain.Link{}
	for _, c := range got {
		for _, body := range c.got {
			l := linkOf(t, body)
			if _, twice := byNumber[l.N]; twice {
				t.Errorf("number %d twice", l.N)
			}
			byNumber[l.N] = l
		}
	}
	head := chain.Head{}
	for n := uint64(1); n <= 400; n++ {
		if l := byNumber[n]; !l.Follows(head) {
			t.Fatalf("record %d does not follow", n)
		}
		head = byNumber[n].Head()
	}
}

func TestCheckpoints(t *testing.T) {
	var noted []uint64
	fail := false
	opts := Options{StateDir: t.TempDir(), Rule: "s/r", Every: 3, AtClose: true, Write: func(name string, h chain.Head) error {
		if name != "s~r" {
			t.Errorf("chain %s", name)
		}
		if fail {
			return errDown
		}
		noted = append(noted, h.N)
		return nil
	}}
	to := New(&consumer{}, opts)
	for n := range 7 {
		must(t, to.Deliver(t.Context(), dispatch("a", n, "x")))
	}
	must(t, to.Close())
	must(t, New(&consumer{}, opts).Close()) // has nothing to add
	if fmt.Sprint(noted) != "[3 6 7]" {
		t.Errorf("checkpoints %v, want [3 6 7]", noted)
	}
	fail = true
	to = New(&consumer{}, opts)
	for n := range 7 {
		must(t, to.Deliver(t.Context(), dispatch("b", n, "x"))) // delivered all the same
	}
	if err := to.Close(); err == nil || !strings.Contains(err.Error(), "s/r") {
		t.Errorf("Close = %v", err)
	}
	opts.StateDir = t.TempDir()
	must(t, New(&consumer{}, opts).Close())
	if _, err := Head(t.Context(), opts.StateDir, "s/r"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("closing a chain that never began made it: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	opts := Options{StateDir: t.TempDir(), Rule: "s/r"}
	c := &consumer{}
	to := New(c, opts)
	d := dispatch("a", 1, "x")
	d.Body = redact.Payload{}
	if err := to.Deliver(t.Context(), d); target.KindOf(err) != target.Refused || len(c.got) != 0 {
		t.Errorf("no object: %v", err)
	}
	held := store{path: File(opts.StateDir, "s/r")}
	must(t, held.lock(t.Context(), true))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(target.ErrExpired)
	if err := to.Deliver(ctx, dispatch("a", 1, "x")); target.KindOf(err) != target.TimedOut {
		t.Errorf("locked: %v", err)
	}
	held.unlock()
	must(t, to.Deliver(t.Context(), dispatch("a", 1, "x")))
}

// A store is never read as something else than was written: each flip falls back
// to the slot before, or is an error; a new chain is never begun in silence.
func TestDamagedStore(t *testing.T) {
	opts := Options{StateDir: t.TempDir(), Rule: "s/r"}
	to := New(&consumer{}, opts)
	must(t, to.Deliver(t.Context(), dispatch("a", 1, "x")))
	path := File(opts.StateDir, "s/r")
	one, err := os.ReadFile(path)
	must(t, err)
	for _, n := range []int{0, 1, 100, slotSize, slotSize + 1, len(one) - 9} {
		must(t, os.WriteFile(path, one[:n], 0o600))
		if h, err := Head(t.Context(), opts.StateDir, "s/r"); err != nil || h.N != 0 {
			t.Errorf("a first write of %d bytes: %v, %v", n, h, err)
		}
	}
	bad := bytes.Clone(one)
	bad[slotSize+20] ^= 1
	must(t, os.WriteFile(path, bad, 0o600))
	err = New(&consumer{}, opts).Deliver(t.Context(), dispatch("a", 2, "x"))
	if err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
		t.Errorf("error = %v", err)
	}
	must(t, os.WriteFile(path, one, 0o600))
	must(t, New(&consumer{}, opts).Deliver(t.Context(), dispatch("a", 2, "x")))
	two, err := os.ReadFile(path)
	must(t, err)
	two[20] ^= 1
	must(t, os.WriteFile(path, two, 0o600))
	if h, err := Head(t.Context(), opts.StateDir, "s/r"); err != nil || h.N != 1 {
		t.Errorf("the newer slot is damaged: %v, %v", h, err)
	}
}

func FuzzStore(f *testing.F) {
	var s store
	s.generation, s.head.N = 3, 7
	s.add(link{n: 7, open: true})
	b := make([]byte, slotSize)
	s.encode(b)
	f.Add(b)
	f.Add(b[:100])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < slotSize {
			return
		}
		var s store
		if !s.decode(b[:slotSize]) {
			return
		}
		again := make([]byte, slotSize)
		s.encode(again)
		var t2 store
		if !t2.decode(again) || t2.head != s.head || len(t2.links) != len(s.links) {
			t.Errorf("%+v is read again as %+v", s, t2)
		}
	})
}
