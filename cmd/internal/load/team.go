package main

import (
	"fmt"
	"strings"
	"time"

	"ways/cmd/internal/figures"
)

// Team is a company's developers, and what one event costs; all else follows.
type Team struct {
	Developers int
	// EventsADay is what one developer's sessions yield on a working day.
	EventsADay int
	// WorkingHours a day, in which all of it happens, and Peak, how much more than
	// the average the busiest minute has.
	WorkingHours time.Duration
	Peak         float64
	// Sessions is how many dispatchers one developer has at once: each holds a
	// connection to the consumer.
	Sessions float64
	// Record is a record's mean size, in bytes, and Around what http adds to it.
	Record, Around float64
	// Hook and Dispatch are the processor time that one event costs.
	Hook, Dispatch time.Duration
	// FrameBytes is what the spool adds to a record, on the disk.
	FrameBytes float64
	// Resident is a dispatcher's memory, in bytes: its own share.
	Resident float64
	// Outage is how long the consumer is away, in the row that says what waits then.
	Outage time.Duration
}

// Thousand is the team of docs/benchmarks.md.
func Thousand() Team {
	return Team{
		Developers: 1000, EventsADay: 50_000, WorkingHours: 8 * time.Hour, Peak: 4, Sessions: 3,
		Record: 2_000, Around: 450, Hook: 1800 * time.Microsecond, Dispatch: 600 * time.Microsecond,
		FrameBytes: 50, Resident: 9e6, Outage: time.Hour,
	}
}

// Average and Busiest are the team's events in a second of working time.
func (t Team) Average() float64 {
	return float64(t.Developers) * float64(t.EventsADay) / t.WorkingHours.Seconds()
}

// Busiest is the busiest minute's rate.
func (t Team) Busiest() float64 { return t.Peak * t.Average() }

// BytesADay is what reaches the consumer on a day, as records.
func (t Team) BytesADay() float64 {
	return float64(t.Developers) * float64(t.EventsADay) * t.Record
}

// OnTheWire is a rate of events in bytes a second, with what http adds.
func (t Team) OnTheWire(rate float64) float64 { return rate * (t.Record + t.Around) }

// Connections is how many are open at once.
func (t Team) Connections() float64 { return float64(t.Developers) * t.Sessions }

// Share is the part of one core that a developer's events take, over the working
// time.
func (t Team) Share() float64 {
	return float64(t.EventsADay) * (t.Hook + t.Dispatch).Seconds() / t.WorkingHours.Seconds()
}

// Waiting is what lies on one developer's disk when the consumer was away for
// Outage of average time.
func (t Team) Waiting() float64 {
	return float64(t.EventsADay) * (t.Outage.Seconds() / t.WorkingHours.Seconds()) * (t.Record + t.FrameBytes)
}

// Table renders all of it as Markdown.
func (t Team) Table() string {
	var b strings.Builder
	row := func(what, format string, values ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", what, fmt.Sprintf(format, values...))
	}
	fmt.Fprintf(&b, "| %s developers, %s events a day each | |\n| --- | ---: |\n", figures.Thousands(float64(t.Developers)), figures.Thousands(float64(t.EventsADay)))
	row("assumed: working time, in which all of it happens", "%.0f h", t.WorkingHours.Hours())
	row("assumed: the busiest minute, to the average", "%.0f times", t.Peak)
	row("assumed: sessions at once, a developer", "%.0f", t.Sessions)
	row("assumed: a record", "%s bytes", figures.Thousands(t.Record))
	row("assumed: headers of its request and of the answer", "%s bytes", figures.Thousands(t.Around))
	row("measured: processor time of one event, hook and dispatcher", "%.1f ms and %.2f ms", t.Hook.Seconds()*1e3, t.Dispatch.Seconds()*1e3)
	row("events, all day", "%s", figures.Thousands(float64(t.Developers)*float64(t.EventsADay)))
	row("events in a second: average, busiest minute", "%s, %s", figures.Thousands(t.Average()), figures.Thousands(t.Busiest()))
	row("records that reach the consumer, a day", "%.0f GB", t.BytesADay()/1e9)
	row("network, in and out: average, busiest minute", "%.1f MB/s, %.1f MB/s", t.OnTheWire(t.Average())/1e6, t.OnTheWire(t.Busiest())/1e6)
	row("connections that are kept open", "%s", figures.Thousands(t.Connections()))
	row("requests in a second on one connection: average, busiest minute", "%.1f, %.1f", t.Average()/t.Connections(), t.Busiest()/t.Connections())
	row("a developer: part of one core, over the working time", "%.2f %%", 100*t.Share())
	row("a developer: part of one core, in the busiest minute", "%.2f %%", 100*t.Peak*t.Share())
	row("a developer: memory of the dispatchers", "%.0f MB", t.Sessions*t.Resident/1e6)
	row("a developer: written to the spool, a day", "%.0f MB", float64(t.EventsADay)*(t.Record+t.FrameBytes)/1e6)
	row(fmt.Sprintf("a developer: on disk after %.0f h without the consumer", t.Outage.Hours()), "%.0f MB", t.Waiting()/1e6)
	row(fmt.Sprintf("the consumer: behind by, after %.0f h away, all developers", t.Outage.Hours()), "%.1f GB", float64(t.Developers)*t.Waiting()/1e9)
	return b.String()
}
