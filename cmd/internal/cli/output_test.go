package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// refusing is a writer that takes so many writes.
type refusing struct {
	room int
	err  error
}

func (r *refusing) Write(b []byte) (int, error) {
	if r.room--; r.room < 0 {
		return 0, r.err
	}
	return len(b), nil
}

func TestUnwrittenOutput(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	for _, row := range []struct {
		name string
		out  *refusing
		code int
		want int
		says string
	}{
		{"all is written", &refusing{9, full}, OK, OK, ""},
		{"nothing is written", &refusing{0, full}, OK, Failed, "ways: what it printed is not complete: write /dev/stdout: no space left on device\n"},
		{"the last line is not", &refusing{2, full}, OK, Failed, "not complete"},
		{"it has failed for another reason", &refusing{0, full}, Usage, Usage, ""},
		{"nobody reads any more", &refusing{1, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}}, OK, OK, ""},
		{"two failures", &refusing{0, errors.New("first")}, OK, Failed, "first"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var errs bytes.Buffer
			code := Main(Env{Stdout: row.out, Stderr: &errs}, func(env Env) int {
				for i := range 3 {
					fmt.Fprintln(env.Stdout, i)
				}
				return row.code
			})
			if code != row.want || !strings.Contains(errs.String(), row.says) || row.says == "" && errs.Len() > 0 {
				t.Errorf("exit %d, %q", code, errs.String())
			}
		})
	}
}

// TestOutputIsTheFile: what looks at the terminal behind stdout still sees it.
func TestOutputIsTheFile(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	Main(Env{Stdout: w, Stderr: w}, func(env Env) int {
		if f, ok := fileOf(env.Stdout); !ok || f != w {
			t.Errorf("got %v, %v", f, ok)
		}
		if Closed(env.Stdout) {
			t.Error("closed")
		}
		r.Close()
		if !Closed(env.Stdout) {
			t.Error("not closed")
		}
		return OK
	})
}
