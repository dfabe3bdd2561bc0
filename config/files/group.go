package files

import (
	"bytes"
	"os"
	"strconv"
)

// Where the system keeps its users and groups.
const (
	passwdFile = "/etc/passwd"
	groupFile  = "/etc/group"
)

// ownGroup reports whether a group is the private one of this reader's user, as
// the files of the system say. What they do not know (a directory service's
// users) is not private.
func (r Reader) ownGroup(gid uint32) bool {
	passwd, err := os.ReadFile(passwdFile)
	if err != nil {
		return false
	}
	group, err := os.ReadFile(groupFile)
	return err == nil && privateGroup(passwd, group, r.User, gid)
}

// privateGroup reports whether a group is one that the system made for one user
// alone, so that what it may write is the user's own: it is the user's primary
// group, is named or numbered as the user is, and has no other member. With a umask
// of 002, the default of several distributions, all that such a user makes is
// writable by that group (passwd(5), group(5)).
func privateGroup(passwd, group []byte, uid, gid uint32) bool {
	user, users, primary := "", 0, 0
	for line := range bytes.Lines(passwd) {
		f := bytes.Split(bytes.TrimSpace(line), []byte(":"))
		if len(f) < 4 {
			continue
		}
		if is(f[3], gid) {
			primary++
			if is(f[2], uid) {
				user = string(f[0])
			}
		}
		if is(f[2], uid) {
			users++
		}
	}
	// A second name for the user is the user; another user of the group is not.
	if user == "" || primary > users {
		return false
	}
	found := 0
	for line := range bytes.Lines(group) {
		f := bytes.Split(bytes.TrimSpace(line), []byte(":"))
		if len(f) < 4 || !is(f[2], gid) {
			continue
		}
		found++
		if string(f[0]) != user && uid != gid {
			return false
		}
		for member := range bytes.SplitSeq(f[3], []byte(",")) {
			if len(member) > 0 && string(member) != user {
				return false
			}
		}
	}
	return found == 1
}

func is(field []byte, id uint32) bool {
	n, err := strconv.ParseUint(string(field), 10, 32)
	return err == nil && uint32(n) == id
}
