package intake

import (
	"fmt"
	"strings"
	"testing"

	"ways/hooks/spool"
)

// Rules that come to a frame soon after each other get the same record, and what is
// kept for those that come later is bounded.
func TestRecent(t *testing.T) {
	frame := func(n, size int) spool.Frame {
		return spool.Frame{Seq: uint64(n), At: spool.Position{Segment: 1, Offset: int64(n)}, JSON: []byte(fmt.Sprint(n, strings.Repeat("x", size)))}
	}
	var c recent
	f := frame(1, 10)
	one := c.share(f, false)
	f.JSON[0] = 'y' // the reader reuses its buffer
	if got := string(one.Bytes()); got != "1"+strings.Repeat("x", 10) {
		t.Errorf("the record became %q", got)
	}
	if c.share(frame(1, 10), true) != one {
		t.Error("the same frame is another record")
	}
	owned := frame(2, 10)
	if two := c.share(owned, true); two == one || &two.Bytes()[0] != &owned.JSON[0] {
		t.Error("a frame that is the caller's own was copied, or taken for another")
	}
	const size = keepShared / 100
	for n := 3; n < 300; n++ {
		c.share(frame(n, size), true)
		if c.bytes > keepShared || len(c.known) != len(c.order) {
			t.Fatalf("%d bytes in %d records of %d are kept", c.bytes, len(c.known), len(c.order))
		}
	}
	if len(c.order) != 99 || c.share(frame(1, 10), true) == one {
		t.Errorf("%d records are kept", len(c.order))
	}
	last := c.share(frame(999, 2*keepShared), true)
	if len(c.order) != 1 || c.share(frame(999, 0), true) != last {
		t.Errorf("of a record that is over the bound by itself %d are kept", len(c.order))
	}
}
