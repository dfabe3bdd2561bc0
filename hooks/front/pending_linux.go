package front

// fionread is FIONREAD, ioctl_tty(2).
const fionread = 0x541b
