package transcript

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"ways/hooks/record"
	"ways/hooks/transcript"
)

// message is the undecided text blocks of one message, in order.
type message struct {
	id     string
	blocks []*item
	last   time.Time
}

// messages groups an agent's undecided texts.
func (st *state) messages(agentID string) []message {
	var list []message
	for _, it := range st.Items {
		if it.Agent != agentID || it.Kind != transcript.Text {
			continue
		}
		if n := len(list); n > 0 && list[n-1].id == it.Message && it.Message != "" {
			list[n-1].blocks = append(list[n-1].blocks, it)
			list[n-1].last = it.Time
			continue
		}
		list = append(list, message{it.Message, []*item{it}, it.Time})
	}
	return list
}

// match finds for each reply that a hook told the text that the transcript shows
// of it. What stands in front of that text in its turn is then sure: hooks have
// told all they had to tell. textOf reads an item's text again.
func (st *state) match(now time.Time, late time.Duration, textOf func(*item) (jsontext.Value, bool)) {
	for id, a := range st.Agents {
		if len(a.Replies) == 0 {
			continue
		}
		list := st.messages(id)
		end := len(list)
		for r := len(a.Replies) - 1; r >= 0; r-- {
			rep := a.Replies[r]
			at, blocks := find(list[:end], rep, now.Sub(rep.Since) >= late, textOf)
			if at < 0 {
				continue
			}
			for _, it := range st.Items {
				if it.Agent == id && (it.Prompt == rep.Prompt || rep.Prompt == "" || it.Prompt == "") && !it.Time.After(list[at].last) {
					it.close(now)
					it.Sure = true
				}
			}
			st.Items = slices.DeleteFunc(st.Items, func(it *item) bool { return slices.Contains(blocks, it) })
			a.Replies = slices.Delete(a.Replies, r, r+1)
			end = at
		}
		// One that no transcript shows is given up when the session has gone on.
		a.Replies = slices.DeleteFunc(a.Replies, func(r reply) bool {
			over := len(a.Replies) > 8 && now.Sub(r.Since) > 4*late
			if over {
				a.Missed++
			}
			return over
		})
	}
}

// find returns the place of the message that a reply is, and those of its blocks
// that the reply holds; -1 when there is none. Of several of one text it is the
// last that was written before the hook ran.
func find(list []message, rep reply, isLate bool, textOf func(*item) (jsontext.Value, bool)) (int, []*item) {
	best, after := -1, -1
	var blocks, blocksAfter []*item
	for i := len(list) - 1; i >= 0; i-- {
		m := list[i]
		last := m.blocks[len(m.blocks)-1]
		switch {
		case last.Interrupted, last.Prompt != rep.Prompt && rep.Prompt != "" && last.Prompt != "":
			continue
		case last.ToolStop && !isLate:
			continue // the message went on with a call, so a turn hardly ended with it
		}
		got := same(m, rep.Hash, textOf)
		if got == nil {
			continue
		}
		if !m.last.After(rep.Time) {
			best, blocks = i, got
			break
		}
		after, blocksAfter = i, got
	}
	if best < 0 {
		return after, blocksAfter
	}
	return best, blocks
}

// same returns the blocks of a message that make up a reply: the last one, or
// several up to the last.
func same(m message, want string, textOf func(*item) (jsontext.Value, bool)) []*item {
	n := len(m.blocks)
	if m.blocks[n-1].Hash == want {
		return m.blocks[n-1:]
	}
	if n == 1 {
		return nil
	}
	texts := make([]jsontext.Value, n)
	for i := n - 1; i >= 0; i-- {
		t, ok := textOf(m.blocks[i])
		if !ok {
			return nil
		}
		texts[i] = slices.Clone(t)
		if i < n-1 && hash(texts[i:]...) == want {
			return m.blocks[i:]
		}
	}
	return nil
}

// due returns the items whose time has come, in the order of their times, and
// when the next one is due; zero when none is.
func (st *state) due(now time.Time, settle time.Duration) (list []*item, next time.Time) {
	for _, it := range st.Items {
		if it.Closed.IsZero() {
			continue
		}
		at := it.Closed.Add(settle)
		if it.Sure || !now.Before(at) {
			list = append(list, it)
			continue
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	slices.SortStableFunc(list, func(a, b *item) int { return a.Time.Compare(b.Time) })
	return list, next
}

// owed reports whether a reply is still looked for, and until when.
func (st *state) owed(now time.Time, late time.Duration) (until time.Time, any bool) {
	for _, a := range st.Agents {
		for _, r := range a.Replies {
			if at := r.Since.Add(late); now.Before(at) {
				any = true
				if at.After(until) {
					until = at
				}
			}
		}
	}
	return until, any
}

// over closes what is left when the session is over, messages that were never
// delivered included.
func (st *state) over(now time.Time) {
	st.undelivered(now)
	for _, it := range st.Items {
		it.close(now)
	}
}

// undelivered makes items of the messages that wait in a client that is gone.
func (st *state) undelivered(now time.Time) {
	for _, f := range st.Files {
		for _, q := range f.Queue {
			if !q.Time.Before(st.First) && !take(&st.Emitted, key(record.QueuedMessage, q.ref())) {
				q.close(now)
				st.Items = append(st.Items, q)
			}
		}
		f.Queue = nil
	}
}
