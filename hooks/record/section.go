package record

// Section names one kind of record. The vocabulary is a wire contract (seed
// §3): names may be added, never renamed or removed.
type Section uint8

// The sections, in the order the documentation lists them.
const (
	UserPrompt Section = iota
	QueuedMessage
	AssistantResponse
	ToolCall
	ToolResult
	Subagent
	Compaction
	SessionStart
	SessionEnd
	WayEvent
	// SectionGap tells of records that were lost.
	SectionGap

	sectionCount

	// Unknown is no section: no Set has it.
	Unknown Section = 0xff
)

// Sections lists every section, in documentation order.
func Sections() []Section {
	all := make([]Section, sectionCount)
	for i := range all {
		all[i] = Section(i)
	}
	return all
}

// String returns the section's name on the wire.
func (s Section) String() string {
	switch s {
	case UserPrompt:
		return "user_prompt"
	case QueuedMessage:
		return "queued_message"
	case AssistantResponse:
		return "assistant_response"
	case ToolCall:
		return "tool_call"
	case ToolResult:
		return "tool_result"
	case Subagent:
		return "subagent"
	case Compaction:
		return "compaction"
	case SessionStart:
		return "session_start"
	case SessionEnd:
		return "session_end"
	case WayEvent:
		return "way_event"
	case SectionGap:
		return "gap"
	}
	return "unknown"
}

// ParseSection returns the section with that name on the wire.
func ParseSection(name string) (Section, bool) {
	for s := range sectionCount {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// Set is a set of sections, one bit each. Its bits are part of the index file.
type Set uint16

// SetOf returns the set of the given sections.
func SetOf(sections ...Section) Set {
	var set Set
	for _, s := range sections {
		set |= 1 << s
	}
	return set
}

// Has reports whether s is in the set.
func (set Set) Has(s Section) bool { return s < sectionCount && set&(1<<s) != 0 }

// Intersects reports whether the sets share a section.
func (set Set) Intersects(other Set) bool { return set&other != 0 }

// List returns the set's sections in documentation order.
func (set Set) List() []Section {
	var list []Section
	for s := range sectionCount {
		if set.Has(s) {
			list = append(list, s)
		}
	}
	return list
}
