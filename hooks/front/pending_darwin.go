package front

// fionread is FIONREAD, sys/filio.h.
const fionread = 0x4004667f
