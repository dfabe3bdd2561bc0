package lines

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// all reads everything, as "at+size text" a line, and the error at the end.
func all(r *Reader) (list []string, err error) {
	for {
		ln, err := r.Next()
		text := string(ln.Text)
		if ln.Text == nil {
			text = "(too long)"
		}
		if err == nil || errors.Is(err, ErrUnterminated) {
			list = append(list, fmt.Sprintf("%d+%d %s", ln.At, ln.Size, text))
		}
		if err != nil {
			return list, err
		}
	}
}

func TestReader(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for _, row := range []struct {
		name, in string
		want     []string
		err      error
	}{
		{"nothing", "", nil, io.EOF},
		{"whole lines", "a\n\nbc\n", []string{"7+2 a", "9+1 ", "10+3 bc"}, io.EOF},
		{"an end inside a line", "a\nbc", []string{"7+2 a", "9+2 bc"}, ErrUnterminated},
		{"a line that is passed over", long + "\nb\n", []string{fmt.Sprintf("7+%d (too long)", len(long)+1), fmt.Sprintf("%d+2 b", 7+len(long)+1)}, io.EOF},
		{"an end inside one", "b\n" + long, []string{"7+2 b", fmt.Sprintf("9+%d (too long)", len(long))}, ErrUnterminated},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(row.in), iotest.DataErrReader(strings.NewReader(row.in)), iotest.HalfReader(strings.NewReader(row.in))} {
				l := &Reader{Longest: 100, Keep: 100}
				l.Reset(r, 7)
				if got, err := all(l); !slices.Equal(got, row.want) || !errors.Is(err, row.err) {
					t.Errorf("got %.300q, %v; want %.300q, %v", got, err, row.want, row.err)
				}
			}
		})
	}
}

// TestReset keeps a buffer that is not too large, and begins anew.
func TestReset(t *testing.T) {
	l := &Reader{Longest: 1 << 20, Keep: 100 << 10}
	for _, n := range []int{10, 300 << 10, 10} {
		text := strings.Repeat("x", n)
		l.Reset(strings.NewReader("rest of "+text), 0)
		if _, err := l.Next(); !errors.Is(err, ErrUnterminated) {
			t.Fatal(err)
		}
		l.Reset(strings.NewReader(text+"\n"), 0)
		if ln, err := l.Next(); err != nil || string(ln.Text) != text || ln.At != 0 {
			t.Errorf("%d bytes at %d, %v", len(ln.Text), ln.At, err)
		}
		if l.Reset(nil, 0); len(l.buf) > l.Keep {
			t.Errorf("%d bytes are kept", len(l.buf))
		}
	}
}

// TestErrors: an input's own error comes with what stands in front of it, and one
// that gives nothing is left.
func TestErrors(t *testing.T) {
	l := &Reader{Longest: 100}
	l.Reset(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrClosedPipe)), 0)
	if got, err := all(l); !slices.Equal(got, []string{"0+2 a"}) || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%q, %v", got, err)
	}
	l.Reset(silent{}, 0)
	if _, err := l.Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }
