package files

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestPrivateGroup(t *testing.T) {
	const (
		passwd = "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\n"
		group  = "root:x:0:\nann:x:1000:\nusers:x:100:\nwheel:x:10:ann\n"
	)
	for _, row := range []struct {
		name          string
		passwd, group string
		uid, gid      uint32
		want          bool
	}{
		{"own", passwd, group, 1000, 1000, true},
		{"own, listed in it", passwd, "ann:x:1000:ann\n", 1000, 1000, true},
		{"named as the user, another number", "ann:x:1000:5000::/:\n", "ann:x:5000:\n", 1000, 5000, true},
		{"numbered as the user, another name", passwd, "staff:x:1000:\n", 1000, 1000, true},
		{"root's", passwd, group, 0, 0, true},
		{"shared by default", passwd, group, 1001, 100, false},
		{"a second group of the user", passwd, group, 1000, 10, false},
		{"another's", passwd, group, 1001, 1000, false},
		{"another member", passwd, "ann:x:1000:bob\n", 1000, 1000, false},
		{"another member besides", passwd, "ann:x:1000:ann,bob\n", 1000, 1000, false},
		{"another user's primary group too", passwd + "eve:x:1002:1000::/:\n", group, 1000, 1000, false},
		{"two names, one user", passwd + "ann2:x:1000:1000::/:\n", "ann:x:1000:\n", 1000, 1000, true},
		{"neither name nor number", "ann:x:1000:50::/:\n", "staff:x:50:\n", 1000, 50, false},
		{"two groups of one number", passwd, group + "also:x:1000:bob\n", 1000, 1000, false},
		{"unknown user", passwd, group, 2000, 2000, false},
		{"unknown group", passwd, "root:x:0:\n", 1000, 1000, false},
		{"nothing known", "", "", 1000, 1000, false},
		{"other lines", "# c\n\nann\n" + passwd, "+::::\n\n" + group, 1000, 1000, true},
		{"number that wraps", "ann:x:4294968296:1000::/:\n", group, 1000, 1000, false},
	} {
		got := privateGroup([]byte(row.passwd), []byte(row.group), row.uid, row.gid)
		if got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// Only the owner's private group may write, and everybody never.
func TestGroupMayWrite(t *testing.T) {
	const me = 1000
	own := func(gid uint32) bool { return gid == me }
	for _, row := range []struct {
		mode       fs.FileMode
		owner, gid uint32
		says       string
	}{
		{0o664, me, me, ""},
		{0o775 | fs.ModeDir, me, me, ""},
		{0o664, me, 100, "may be written by its group"},
		{0o775 | fs.ModeDir, me, 100, "may be written by its group"},
		{0o666, me, me, "may be written by everybody"},
		{0o662, me, me, "may be written by everybody"},
		{0o664, 1001, me, "belongs to user 1001"},
		{0o664, 0, me, ""},
	} {
		err := safe("/f", row.mode, row.owner, row.gid, me, own)
		if row.says == "" && err != nil || row.says != "" && (!errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%v of %d:%d: %v, want %q", row.mode, row.owner, row.gid, err, row.says)
		}
	}
}

// A message that stands behind the path does not name it again.
func TestAbout(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{errors.New("/d/f may be written by everybody"), "may be written by everybody"},
		{errors.New("/d/f: the link leads in a circle"), "the link leads in a circle"},
		{errors.New("reading /d/f: input/output error"), "reading /d/f: input/output error"},
		{errors.New("/d/file is long"), "/d/file is long"},
		{&fs.PathError{Op: "open", Path: "/d/f", Err: fs.ErrPermission}, "cannot be read: permission denied"},
		{&fs.PathError{Op: "open", Path: "/d/g", Err: fs.ErrPermission}, "open /d/g: permission denied"},
	} {
		if got := About("/d/f", row.err); got != row.want {
			t.Errorf("%v: %q, want %q", row.err, got, row.want)
		}
	}
}
