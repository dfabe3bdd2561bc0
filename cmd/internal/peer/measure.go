package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// arriveTime bounds the wait for records.
	arriveTime = 80 * time.Second
	// still is how long nothing may come before records are given up.
	still = 5 * time.Second
	// extra is how long doubled records are waited for.
	extra = 1500 * time.Millisecond
	// watchSeldom is how often a file is looked at where looking should cost little.
	watchSeldom = 2 * time.Millisecond
	// settle is how long a process is left alone before idleTime is measured.
	settle   = 3 * time.Second
	idleTime = 10 * time.Second
)

// started is what starting a side costs.
type started struct {
	// first is from the start to the arrival of a record that was there before.
	first time.Duration
	// life is what a life took that did nothing else.
	life usage
}

// startUp starts a side for one record.
func (l *lab) startUp(ctx context.Context, s side) (started, error) {
	t, err := l.newTrial(s, atOnce)
	if err != nil {
		return started{}, err
	}
	r, err := t.startUp(ctx)
	return r, errors.Join(err, t.close())
}

func (t *trial) startUp(ctx context.Context) (started, error) {
	if err := t.feed(1, 1); err != nil {
		return started{}, err
	}
	if err := t.start(); err != nil {
		return started{}, err
	}
	begin := t.process.started
	if err := t.arrive(ctx, 1); err != nil {
		return started{}, err
	}
	life, err := t.stop()
	if err != nil {
		return started{}, err
	}
	v, rep, err := t.verdict(1)
	if err == nil && v != (verdict{}) {
		err = fmt.Errorf("one record was to come: %s", v)
	}
	if err != nil {
		return started{}, err
	}
	return started{rep.Came[0].At.Sub(begin), life}, nil
}

// begin starts the side and gets the first record through it, so that it runs when
// the others come.
func (t *trial) begin(ctx context.Context) error {
	first := func() error { return t.feed(1, 1) }
	steps := []func() error{first, t.start} // a dispatcher does not start for nothing
	if t.side.push {
		steps = []func() error{t.start, first}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return t.arrive(ctx, 1)
}

// arrive waits until n records came.
func (t *trial) arrive(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, arriveTime)
	defer cancel()
	if have, err := t.consumer.wait(ctx, n); err != nil {
		return fmt.Errorf("%d of %d records came: %w: %s", have, n, err, t.process.said())
	}
	return nil
}

// idled is what a side takes that has nothing to do.
type idled struct {
	// memory is what is resident, own what of it is no file's: several processes of
	// one program share the rest.
	memory, own int64
	// cpu is a part of one processor.
	cpu float64
}

// idle leaves a side alone that has handed over one record.
func (l *lab) idle(ctx context.Context, s side) (idled, error) {
	t, err := l.newTrial(s, time.Second)
	if err != nil {
		return idled{}, err
	}
	r, err := t.idle(ctx)
	return r, errors.Join(err, t.close())
}

func (t *trial) idle(ctx context.Context) (idled, error) {
	if err := t.begin(ctx); err != nil {
		return idled{}, err
	}
	if err := pause(ctx, settle); err != nil {
		return idled{}, err
	}
	before, err := t.process.cpu()
	if err != nil {
		return idled{}, err
	}
	if err := pause(ctx, idleTime); err != nil {
		return idled{}, err
	}
	after, err := t.process.cpu()
	if err != nil {
		return idled{}, err
	}
	memory, err := t.process.memory("VmRSS")
	if err != nil {
		return idled{}, err
	}
	own, err := t.process.memory("RssAnon")
	if err != nil {
		return idled{}, err
	}
	_, err = t.stop()
	return idled{memory, own, float64(after-before) / float64(idleTime)}, err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// worked is how a side works off a backlog.
type worked struct {
	// whole is from the process's start to the last record's arrival, between from
	// the first one's.
	whole, between time.Duration
	life           usage
	requests       int
	verdict        verdict
}

// backlog lets a side work off n records that are there before it starts.
func (l *lab) backlog(ctx context.Context, s side, n int) (worked, error) {
	t, err := l.newTrial(s, watchSeldom)
	if err != nil {
		return worked{}, err
	}
	r, err := t.backlog(ctx, n)
	return r, errors.Join(err, t.close())
}

func (t *trial) backlog(ctx context.Context, n int) (worked, error) {
	if err := errors.Join(t.feed(1, n), t.start()); err != nil {
		return worked{}, err
	}
	begin := t.process.started
	if err := t.arrive(ctx, n); err != nil {
		return worked{}, err
	}
	life, err := t.stop()
	if err != nil {
		return worked{}, err
	}
	v, rep, err := t.verdict(n)
	if err != nil {
		return worked{}, err
	}
	first, last := span(firsts(rep.Came))
	return worked{last.Sub(begin), last.Sub(first), life, rep.Requests, v}, nil
}

// lagged is how long records took that came one by one.
type lagged struct {
	// lags are from before a record was handed over to its arrival, in milliseconds.
	lags []float64
	// cpu is a part of one processor.
	cpu     float64
	verdict verdict
}

// lag hands n records over, one after another, every so often.
func (l *lab) lag(ctx context.Context, s side, n int, every time.Duration) (lagged, error) {
	t, err := l.newTrial(s, atOnce)
	if err != nil {
		return lagged{}, err
	}
	r, err := t.lag(ctx, n, every)
	return r, errors.Join(err, t.close())
}

func (t *trial) lag(ctx context.Context, n int, every time.Duration) (lagged, error) {
	if err := t.begin(ctx); err != nil {
		return lagged{}, err
	}
	before, err := t.process.cpu()
	if err != nil {
		return lagged{}, err
	}
	begin := time.Now()
	sent := make(map[int]time.Time, n)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for seq := 2; seq <= n+1; seq++ {
		select {
		case <-ctx.Done():
			return lagged{}, ctx.Err()
		case <-tick.C:
		}
		sent[seq] = time.Now()
		if err := t.feed(seq, seq); err != nil {
			return lagged{}, err
		}
	}
	if err := t.arrive(ctx, n+1); err != nil {
		return lagged{}, err
	}
	took := time.Since(begin)
	after, err := t.process.cpu()
	if err != nil {
		return lagged{}, err
	}
	if _, err := t.stop(); err != nil {
		return lagged{}, err
	}
	v, rep, err := t.verdict(n + 1)
	if err != nil {
		return lagged{}, err
	}
	r := lagged{cpu: float64(after-before) / float64(took), verdict: v}
	first := firsts(rep.Came)
	for seq, at := range sent {
		r.lags = append(r.lags, float64(first[seq].Sub(at))/float64(time.Millisecond))
	}
	return r, nil
}

// killed hands n records over, one after another, and kills the side by kill -9
// once, after the record at; it starts it again at once. It returns what the consumer
// got in the end.
func (l *lab) killed(ctx context.Context, s side, n int, every time.Duration, at int) (verdict, error) {
	t, err := l.newTrial(s, watchSeldom)
	if err != nil {
		return verdict{}, err
	}
	v, err := t.killed(ctx, n, every, at)
	return v, errors.Join(err, t.close())
}

func (t *trial) killed(ctx context.Context, n int, every time.Duration, at int) (verdict, error) {
	if err := t.begin(ctx); err != nil {
		return verdict{}, err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for seq := 2; seq <= n; seq++ {
		select {
		case <-ctx.Done():
			return verdict{}, ctx.Err()
		case <-tick.C:
		}
		if err := t.feed(seq, seq); err != nil {
			return verdict{}, err
		}
		if seq == at {
			if err := errors.Join(t.kill(), t.start()); err != nil {
				return verdict{}, err
			}
		}
	}
	if err := t.calm(ctx, n); err != nil {
		return verdict{}, err
	}
	if _, err := t.stop(); err != nil {
		return verdict{}, err
	}
	v, _, err := t.verdict(n)
	return v, err
}

// calm waits until n records came and doubled ones had their time, or nothing
// comes any more.
func (t *trial) calm(ctx context.Context, n int) error {
	for last := -1; ; {
		ctxStill, cancel := context.WithTimeout(ctx, still)
		_, err := t.consumer.wait(ctxStill, n)
		cancel()
		if err == nil {
			return pause(ctx, extra)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		have, err := t.consumer.wait(ctx, 0)
		if err != nil || have == last {
			return err
		}
		last = have
	}
}
