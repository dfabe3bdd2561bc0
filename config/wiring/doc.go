// Package wiring puts the one sensor hook entry into a client's settings file,
// takes it out again, and says whether it is there (seed §2, design §12).
//
// The file belongs to its user and to other tools. So nothing is decoded and
// encoded again: Apply and Remove cut and insert at byte offsets, and every
// byte outside these cuts stays. What Apply did that the text alone does not
// show (a container that was there and empty) is kept in an Undo, so that
// Remove gives back the very bytes from before.
//
// Apply, Remove and Inspect are functions over bytes. Store is the careful file
// layer around the first two: symlinks, modes, locks, backups.
package wiring
