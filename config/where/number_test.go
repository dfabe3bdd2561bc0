package where

import (
	"math/big"
	"testing"
)

func TestCompareNumbers(t *testing.T) {
	for _, row := range []struct {
		a, b string
		want int
	}{
		{"0", "0", 0},
		{"0", "-0", 0},
		{"0.000", "0e99", 0},
		{"1", "1.0", 0},
		{"1", "1.000e0", 0},
		{"100", "1e2", 0},
		{"100", "0.1e3", 0},
		{"1e-2", "0.01", 0},
		{"1E+2", "100", 0},
		{"9007199254740993", "9007199254740992", 1},
		{"9007199254740992", "9007199254740993", -1},
		{"0.1", "0.10000000000000000001", -1},
		{"12", "123", -1},
		{"123", "12.3", 1},
		{"-1", "1", -1},
		{"-2", "-1", -1},
		{"-1", "0", -1},
		{"0", "-1", 1},
		{"0.5", "0", 1},
		{"-0.5", "-0.05", -1},
		{"1e400", "1e399", 1},
		{"1e999999999", "9e999999998", 1},
		{"-1e999999999", "1", -1},
		{"1e-999999999", "0", 1},
		{"1e99999999999999999999999", "1", 1},
		{"0e99999999999999999999999", "0", 0},
		{"123456789012345678901234567890", "123456789012345678901234567891", -1},
		{"10.50", "10.5", 0},
		{"0.0012", "12e-4", 0},
	} {
		if got := compareNumbers([]byte(row.a), []byte(row.b)); got != row.want {
			t.Errorf("%s against %s: %d, want %d", row.a, row.b, got, row.want)
		}
		if got := compareNumbers([]byte(row.b), []byte(row.a)); got != -row.want {
			t.Errorf("%s against %s: %d, want %d", row.b, row.a, got, -row.want)
		}
	}
}

func TestIsNumber(t *testing.T) {
	for s, want := range map[string]bool{
		"0": true, "-0": true, "1.5": true, "1e9": true, "1E-9": true, "1.5e+3": true, "10": true,
		"": false, "-": false, "+1": false, "01": false, ".5": false, "1.": false, "1e": false, "1e+": false,
		"0x10": false, "1_000": false, "1 ": false, " 1": false, "NaN": false, "-01": false, "1.5.5": false,
	} {
		if got := isNumber(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func FuzzCompareNumbers(f *testing.F) {
	for _, seed := range [][2]string{{"1", "1.0"}, {"-0.5", "5e-1"}, {"1e10", "10000000000"}, {"0.00", "-0"}, {"99.9", "1e2"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := rational(a), rational(b)
		if x == nil || y == nil {
			return
		}
		if got, want := compareNumbers([]byte(a), []byte(b)), x.Cmp(y); got != want {
			t.Fatalf("%s against %s: %d, as fractions %d", a, b, got, want)
		}
	})
}

// rational reads a JSON number exactly; nil for what is none, or too long to
// hold as a fraction.
func rational(s string) *big.Rat {
	if !isNumber(s) || len(s) > 60 {
		return nil
	}
	digits := 0
	for i, seen := 0, false; i < len(s); i++ {
		if s[i] == 'e' || s[i] == 'E' {
			seen = true
		} else if seen && s[i] >= '0' && s[i] <= '9' {
			digits++
		}
	}
	if digits > 3 {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil
	}
	return r
}

// isNumber reports whether s is a number as JSON spells it.
func isNumber(s string) bool {
	i := 0
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	from := i
	if !digits() || (s[from] == '0' && i > from+1) {
		return false
	}
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(s)
}
