package redact

// mode says how a rule is run when one of its keywords is met.
type mode uint8

const (
	// modePrefix: the match begins with the keyword; regex is anchored and
	// run there.
	modePrefix mode = iota
	// modeAssign: the keyword is part of a name; regex is anchored and run on
	// the value that is assigned to it.
	modeAssign
	// modeWindow: the match contains the keyword; regex is run from before
	// bytes ahead of it to after bytes behind it.
	modeWindow
	// modeNear: as modeWindow, but the match need not contain the keyword.
	modeNear
)

// rule is one pattern rule.
type rule struct {
	id       string
	mode     mode
	keywords []string
	regex    string
	before   int     // window ahead of the keyword, bytes
	after    int     // window from the keyword's (modeAssign: the value's) start, or behind it, bytes
	minLen   int     // the least length of a match, bytes
	group    int     // the group that is the secret; 0: the first that matched, else the whole match
	entropy  float64 // the secret's Shannon entropy must be above it, bits per byte
	word     bool    // the keyword must begin a word
	exact    bool    // the keyword must be spelled as written
	allow    []string
}
