package transcript

import "errors"

// MaxLine is the longest line that is read. A longer one is passed over and
// reported: no record could hold what is in it.
const MaxLine = 64 << 20

// keepBuffer is how large a buffer stays between two reads.
const keepBuffer = 256 << 10

// errEndless is the reason for a line longer than MaxLine.
var errEndless = errors.New("longer than a line can be")

// errTorn is the reason for a last line without an end, once nobody writes any
// more.
var errTorn = errors.New("cut off in the middle")
