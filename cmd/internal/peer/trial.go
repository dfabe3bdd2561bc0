package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"ways/hooks/dirs"
	"ways/hooks/index"
	"ways/hooks/launch"
	"ways/hooks/spool"
)

// lockWait is how long a record waits for the spool's lock, as a hook's does.
const lockWait = 500 * time.Millisecond

// lab is what all trials share.
type lab struct {
	dir, bin, collector, configs string
	stream                       stream
	// lines is a file with all records, for the http consumer's process.
	lines string
	// lock, when set, is a file whose lock is held while something is measured.
	lock string
}

func (l *lab) project() string { return filepath.Join(l.dir, "project") }

// take takes the lock and returns what gives it back: LOCK_EX for what must not be
// disturbed, LOCK_SH for what disturbs who must not be, LOCK_UN for neither.
func (l *lab) take(how int) (func(), error) {
	if l.lock == "" || how == syscall.LOCK_UN {
		return func() {}, nil
	}
	f, err := os.OpenFile(l.lock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", l.lock, err)
		}
		return func() { f.Close() }, nil
	}
}

// trial is one side at work in a directory of its own.
type trial struct {
	lab      *lab
	side     side
	dir      string
	consumer consumer
	process  *process
	// feed hands over the records from one number to another, both included.
	feed      func(first, last int) error
	argv, env []string
}

// newTrial prepares a side; nothing of it runs yet but the consumer. every is how
// often a consumer's file is looked at.
func (l *lab) newTrial(s side, every time.Duration) (t *trial, err error) {
	t = &trial{lab: l, side: s}
	if t.dir, err = os.MkdirTemp(l.dir, "trial-"); err != nil {
		return nil, err
	}
	var to string
	if s.http {
		remote, err := startSink(l.lines)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(t.dir))
		}
		t.consumer, to = remote, remote.url
	} else {
		// A directory that nothing else writes in.
		to = filepath.Join(t.dir, "out", "out.jsonl")
		err := os.Mkdir(filepath.Dir(to), 0o700)
		if err == nil {
			t.consumer, err = watchFile(to, l.stream, !s.ways(), every)
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(t.dir))
		}
	}
	if s.ways() {
		err = t.prepareWays(to)
	} else {
		err = t.prepareCollector(to)
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

func (t *trial) prepareWays(to string) error {
	home := filepath.Join(t.dir, "home")
	d, err := dirs.From(func(name string) string {
		if name == "HOME" {
			return home
		}
		return ""
	})
	if err != nil {
		return err
	}
	for _, dir := range []string{d.Sensors(), t.lab.project()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(d.Sensors(), "peer.yaml"), []byte(t.side.sensor(to)), 0o600); err != nil {
		return err
	}
	waysctl := filepath.Join(t.lab.bin, "waysctl")
	t.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	compile := exec.Command(waysctl, "sensors", "compile", "--project", t.lab.project())
	compile.Env = t.env
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the sensor file: %w\n%s", err, out)
	}
	header, err := index.Read(d.Index(t.lab.project()))
	if err != nil {
		return err
	}
	dir := d.Session(session)
	t.argv = []string{waysctl, "sensors", "dispatch", "--session", session}
	t.feed = func(first, last int) error {
		for first <= last {
			until := min(last, first+batch-1)
			drafts := t.lab.stream.between(first, until)
			res, err := spool.Append(dir, spool.Request{
				Generation: header.Generation, Now: time.Now(), Wait: lockWait, Direct: true,
				Build: func(bool) []spool.Draft { return drafts },
			})
			if err != nil {
				return err
			}
			if res.First != uint64(first) || res.Last != uint64(until) {
				return fmt.Errorf("records %d to %d took the numbers %d to %d", first, until, res.First, res.Last)
			}
			first = until + 1
		}
		launch.Wake(dir, launch.Appended)
		return nil
	}
	return nil
}

func (t *trial) prepareCollector(to string) error {
	t.argv = append([]string{t.lab.collector}, t.side.arguments(t.lab.configs)...)
	t.env = []string{
		"HOME=" + t.dir, "PATH=" + os.Getenv("PATH"),
		"PEER_DIR=" + t.dir, "PEER_FSYNC=" + strconv.FormatBool(t.side.fsync), "PEER_ENDPOINT=" + to, "PEER_OUT=" + to,
	}
	if t.side.push {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		t.env = append(t.env, "PEER_LISTEN="+address)
		t.feed = func(first, last int) error { return t.push("http://"+address+"/v1/logs", first, last) }
		return nil
	}
	f, err := os.OpenFile(filepath.Join(t.dir, "records.jsonl"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	t.feed = func(first, last int) error {
		_, err := f.Write(t.lab.stream.text(first, last))
		return err
	}
	return nil
}

// freeAddress is a loopback address that nothing listens at.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// push posts records to the Collector, one a request. It tries again until the
// Collector takes them: it may be about to start.
func (t *trial) push(url string, first, last int) error {
	for seq := first; seq <= last; seq++ {
		body, err := export(t.lab.stream.lines[seq-1])
		if err != nil {
			return err
		}
		for begun := time.Now(); ; {
			err = post(url, body)
			if err == nil || time.Since(begun) > arriveTime {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func post(url string, body []byte) error {
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, answer)
	}
	return err
}

// start starts the side's process.
func (t *trial) start() error {
	p, err := startProcess(t.argv, t.env, t.dir)
	if err != nil {
		return err
	}
	t.process = p
	return nil
}

// stop ends the process in good order.
func (t *trial) stop() (usage, error) {
	p := t.process
	t.process = nil
	return p.stop()
}

// kill ends the process by kill -9.
func (t *trial) kill() error {
	p := t.process
	t.process = nil
	return p.kill()
}

// verdict compares what came with records 1 to n.
func (t *trial) verdict(n int) (verdict, report, error) {
	rep, torn, err := t.consumer.result()
	v := judge(rep.Came, n)
	v.Torn = torn
	return v, rep, err
}

// close ends what still runs and removes the directory.
func (t *trial) close() error {
	var err error
	if t.process != nil {
		err = t.kill()
	}
	if t.consumer != nil {
		err = errors.Join(err, t.consumer.close())
	}
	return errors.Join(err, os.RemoveAll(t.dir))
}
