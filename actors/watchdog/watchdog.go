// Package watchdog owns the deadline of every dispatch in flight (seed §5,
// design §7): one goroutine, one heap, one timer, however many rules there are.
//
// The watchdog only says that time is up, by cancelling a context with
// target.ErrExpired as its cause. What has to be ended for that (a process
// group, a request) is ended by the target that started it, which alone knows
// that the thing it kills is still the one it started.
package watchdog

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"time"

	"ways/actors/actor"
	"ways/actors/target"
)

// patience is how long Watch waits for the actor to take an entry before it
// gives that entry a timer of its own. The actor never blocks, so that one which
// does not answer in this time is not running.
const patience = 5 * time.Millisecond

// Watchdog is the actor. Make it with New.
type Watchdog struct {
	enter chan *entry
	leave chan *entry
	ask   chan chan []Flight
}

var _ actor.Actor = (*Watchdog)(nil)

// Flight is a dispatch that the watchdog is timing.
type Flight struct {
	// Label is what Watch was given.
	Label string
	// Deadline is when its context ends; it carries a monotonic reading.
	Deadline time.Time
}

type entry struct {
	Flight
	ctx    context.Context
	expire func()
	// run takes the channel that closes when the Serve which took this entry
	// ends; it has room for one, so that the actor never waits to fill it.
	run chan (<-chan struct{})
	// over is what came through run; the caller's side sets it.
	over <-chan struct{}
	// place is the entry's index in the heap, -1 outside; the actor's own.
	place int
}

// New returns a watchdog that is not running yet.
func New() *Watchdog {
	return &Watchdog{
		enter: make(chan *entry),
		leave: make(chan *entry),
		ask:   make(chan chan []Flight),
	}
}

func (w *Watchdog) String() string { return "watchdog" }

// Serve times entries until ctx ends. Entries still in flight when it returns,
// for whatever reason, a panic included, keep their deadlines: each gets a timer
// of its own.
func (w *Watchdog) Serve(ctx context.Context) error {
	over := make(chan struct{})
	var flights byDeadline
	defer func() {
		close(over)
		for _, e := range flights {
			e.timeAlone()
		}
	}()

	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e := <-w.enter:
			e.run <- over
			heap.Push(&flights, e)
		case e := <-w.leave:
			// It may have expired meanwhile, or belong to a run before this one.
			if e.over == over && e.place >= 0 {
				heap.Remove(&flights, e.place)
			}
		case reply := <-w.ask:
			list := make([]Flight, len(flights))
			for i, e := range flights {
				list[i] = e.Flight
			}
			reply <- list
		case <-timer.C:
		}
		for len(flights) > 0 && time.Until(flights[0].Deadline) <= 0 {
			heap.Pop(&flights).(*entry).expire()
		}
		if len(flights) == 0 {
			timer.Stop()
			continue
		}
		timer.Reset(time.Until(flights[0].Deadline))
	}
}

// Watch returns a context that ends with cause target.ErrExpired when timeout
// has passed (on the monotonic clock), and a function that takes the entry back;
// it ends the context too, may be called more than once, and must be called.
// label names the dispatch in InFlight.
//
// A dispatch is never left without a deadline: when the actor is not running, or
// ends meanwhile, the same deadline is kept by a timer of the entry's own.
func (w *Watchdog) Watch(ctx context.Context, label string, timeout time.Duration) (context.Context, func()) {
	deadline := time.Now().Add(timeout)
	watched, cancel := context.WithCancelCause(ctx)
	e := &entry{
		Flight: Flight{Label: label, Deadline: deadline},
		ctx:    watched,
		expire: func() { cancel(target.ErrExpired) },
		run:    make(chan (<-chan struct{}), 1),
		place:  -1,
	}

	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case w.enter <- e:
		e.over = <-e.run
	case <-wait.C:
		e.timeAlone()
	case <-ctx.Done():
	}
	release := func() {
		cancel(nil)
		if e.over == nil {
			return
		}
		select {
		case w.leave <- e:
		case <-e.over:
		}
	}
	return bounded{watched, deadline}, release
}

// InFlight returns what is being timed, soonest deadline first; nil when ctx
// ends before the actor answers. Entries on timers of their own are not listed.
func (w *Watchdog) InFlight(ctx context.Context) []Flight {
	reply := make(chan []Flight, 1)
	select {
	case w.ask <- reply:
	case <-ctx.Done():
		return nil
	}
	list := <-reply
	slices.SortFunc(list, func(a, b Flight) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), cmp.Compare(a.Label, b.Label))
	})
	return list
}

// timeAlone keeps the entry's deadline without the actor, until its context ends.
func (e *entry) timeAlone() {
	timer := time.AfterFunc(time.Until(e.Deadline), e.expire)
	context.AfterFunc(e.ctx, func() { timer.Stop() })
}

// bounded is a context that knows the deadline the watchdog keeps for it, so
// that a dialler can share the time out between several addresses.
type bounded struct {
	context.Context
	deadline time.Time
}

func (b bounded) Deadline() (time.Time, bool) {
	if outer, ok := b.Context.Deadline(); ok && outer.Before(b.deadline) {
		return outer, true
	}
	return b.deadline, true
}

// byDeadline is a heap of entries that know their places.
type byDeadline []*entry

func (h byDeadline) Len() int           { return len(h) }
func (h byDeadline) Less(i, j int) bool { return h[i].Deadline.Before(h[j].Deadline) }
func (h byDeadline) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *byDeadline) Push(x any) {
	e := x.(*entry)
	e.place = len(*h)
	*h = append(*h, e)
}

func (h *byDeadline) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.place = -1
	return e
}
