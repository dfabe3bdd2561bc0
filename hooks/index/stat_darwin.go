package index

import "syscall"

func mtime(st *syscall.Stat_t) int64 { return st.Mtimespec.Nano() }
func ctime(st *syscall.Stat_t) int64 { return st.Ctimespec.Nano() }
