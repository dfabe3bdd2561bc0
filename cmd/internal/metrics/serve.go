package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"ways/actors/target/visible"
	"ways/cmd/internal/cli"
	"ways/metrics/exposition"
)

const serveUsage = `Usage: ways metrics serve [--listen ADDRESS] [--allow-remote]

Answers Prometheus' scrapes on /metrics, in the text format, as OpenMetrics or as
protobuf, whichever is asked for. Every scrape reads the counters anew. It runs
until it is stopped.

It listens for programs of this machine. Everybody who reaches another address can
read the names of your rules and how much they deliver; --allow-remote says that
this is meant.`

// DefaultListen is where it listens.
const DefaultListen = "127.0.0.1:9464"

// Times of the server. A scrape reads some files; Prometheus gives up after ten
// seconds by itself.
const (
	readTime  = 5 * time.Second
	writeTime = 30 * time.Second
	idleTime  = 2 * time.Minute
	stopTime  = 5 * time.Second
	maxHeader = 16 << 10
)

// errRemote is returned for an address that others can reach.
var errRemote = errors.New("can be reached from other machines; add --allow-remote if that is meant")

func serve(env cli.Env, args []string) int {
	fs := cli.Flags("metrics serve")
	listen := fs.String("listen", DefaultListen, "the `ADDRESS` to listen on, host:port; "+DefaultListen+" unless given")
	remote := fs.Bool("allow-remote", false, "allow an address that other machines can reach")
	if code, done := cli.Parse(env, fs, serveUsage, args); done {
		return code
	}
	if fs.NArg() > 0 {
		return cli.WrongArgs(env, fs, "no arguments")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	address, err := resolve(ctx, *listen, *remote)
	if err != nil {
		return env.Fail("metrics serve", err)
	}
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return env.Fail("metrics serve", err)
	}
	fmt.Fprintf(env.Stdout, "serving http://%s/metrics\n", socket.Addr())
	if err := run(ctx, env, socket); err != nil {
		return env.Fail("metrics serve", err)
	}
	return cli.OK
}

// resolve returns the address to listen on. A name is looked up once, so that
// what was checked is what is listened on.
func resolve(ctx context.Context, listen string, remote bool) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("--listen %q is no host:port: %w", listen, err)
	}
	if remote {
		return listen, nil
	}
	if host == "" {
		return "", fmt.Errorf("--listen %q %w", listen, errRemote)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", fmt.Errorf("--listen %q: %w", listen, err)
	}
	for _, ip := range found {
		if !ip.Unmap().IsLoopback() {
			return "", fmt.Errorf("--listen %q %w", listen, errRemote)
		}
	}
	return net.JoinHostPort(found[0].String(), port), nil
}

// run serves until ctx ends; scrapes under way are answered.
func run(ctx context.Context, env cli.Env, socket net.Listener) error {
	failed := func(err error) { fmt.Fprintf(env.Stderr, "ways metrics serve: %s\n", visible.Line(err.Error())) }
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", exposition.Handler(func() (exposition.Snapshot, error) { return snapshot(env) }, failed))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "ways: the metrics are at /metrics\n")
	})
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: readTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ErrorLog: log.New(io.Discard, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(socket) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := srv.Shutdown(stopping); err != nil {
		return errors.Join(err, srv.Close())
	}
	return nil
}
