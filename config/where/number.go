package where

// compareNumbers compares two JSON numbers by value, from their text: a float
// would make 9007199254740993 and 9007199254740992 the same, and a big integer
// would be made to hold 1e999999999. Both arguments must be valid JSON numbers.
func compareNumbers(a, b []byte) int {
	x, y := decimalOf(a), decimalOf(b)
	if x.sign != y.sign {
		return compareInts(x.sign, y.sign)
	}
	if x.sign == 0 {
		return 0
	}
	if x.point != y.point {
		return x.sign * compareInts(x.point, y.point)
	}
	for i := 0; i < x.count || i < y.count; i++ {
		if p, q := x.digit(i), y.digit(i); p != q {
			return x.sign * compareInts(p, q)
		}
	}
	return 0
}

// decimal is sign * 0.d1d2d3... * 10^point with d1 not 0; sign 0 is zero.
type decimal struct {
	sign  int
	point int
	text  []byte // from the first digit that is not 0; may hold one '.'
	dot   int    // index of '.' in text, or len(text)
	count int    // digits in text
}

func (d decimal) digit(i int) int {
	if i >= d.count {
		return 0
	}
	if i >= d.dot {
		i++
	}
	return int(d.text[i] - '0')
}

// farPoint bounds an exponent, so that sums with it cannot overflow. Beyond it
// numbers of one sign compare by their digits alone.
const farPoint = 1 << 40

func decimalOf(s []byte) decimal {
	d := decimal{sign: 1}
	if s[0] == '-' {
		d.sign = -1
		s = s[1:]
	}
	mantissa, exponent := s, 0
	for i, c := range s {
		if c == 'e' || c == 'E' {
			mantissa, exponent = s[:i], exponentOf(s[i+1:])
			break
		}
	}
	whole := len(mantissa) // digits in front of the point
	for i, c := range mantissa {
		if c == '.' {
			whole = i
			break
		}
	}
	first := 0
	for first < len(mantissa) && (mantissa[first] == '0' || mantissa[first] == '.') {
		first++
	}
	if first == len(mantissa) {
		return decimal{}
	}
	d.text = mantissa[first:]
	if first < whole {
		d.point = whole - first
		d.dot = whole - first
		d.count = len(d.text)
		if whole < len(mantissa) {
			d.count--
		}
	} else {
		d.point = whole + 1 - first
		d.dot = len(d.text)
		d.count = len(d.text)
	}
	d.point += exponent
	d.point = max(-farPoint, min(farPoint, d.point))
	return d
}

func exponentOf(s []byte) int {
	negative := false
	if s[0] == '+' || s[0] == '-' {
		negative = s[0] == '-'
		s = s[1:]
	}
	n := 0
	for _, c := range s {
		n = min(n*10+int(c-'0'), farPoint)
	}
	if negative {
		return -n
	}
	return n
}

func compareInts(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
