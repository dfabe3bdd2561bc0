package repair

import "testing"

func TestUTF8(t *testing.T) {
	for _, row := range []struct {
		in, want string
		n        int
	}{
		{"", "", 0},
		{"plain \u00fc \U0001F600 \x00", "plain \u00fc \U0001F600 \x00", 0},
		{"\ufffd", "\ufffd", 0}, // is what it is
		{"a\xffb", "a\ufffdb", 1},
		{"\xc3", "\ufffd", 1},                                 // cut off
		{"\xed\xa0\x80", "\ufffd\ufffd\ufffd", 3},             // a surrogate
		{"\xc0\xaf", "\ufffd\ufffd", 2},                       // overlong
		{"\xf0\x9f\x98\ufffd", "\ufffd\ufffd\ufffd\ufffd", 3}, // three bytes, and a sound character
	} {
		in := []byte(row.in)
		got, n := UTF8(in)
		if string(got) != row.want || n != row.n || string(in) != row.in {
			t.Errorf("%q is %q, %d; want %q, %d", row.in, got, n, row.want, row.n)
		}
	}
	sound := []byte("sound")
	if got, _ := UTF8(sound); &got[0] != &sound[0] {
		t.Error("sound text is copied")
	}
}
