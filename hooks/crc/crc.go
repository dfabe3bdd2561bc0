// Package crc computes the CRC-32 sums of hash/crc32 in a process that lives for
// a millisecond. hash/crc32 prepares for speed before its first sum: for the
// Castagnoli polynomial that takes 0.2 ms, a fifth of a Go process's whole start
// (docs/benchmarks.md). A table of the plain algorithm takes 0.3 µs, and is made
// anew for each sum.
package crc

import "hash/crc32"

// From these lengths on hash/crc32's speed is worth its preparations, 0.2 ms and
// 20 µs: the plain algorithm takes 2.5 ns for a byte.
const (
	long     = 64 << 10
	longIEEE = 16 << 10
)

// Castagnoli is the CRC-32C of b behind what sum covers already; 0 for nothing.
func Castagnoli(sum uint32, b []byte) uint32 {
	if len(b) >= long {
		return crc32.Update(sum, crc32.MakeTable(crc32.Castagnoli), b)
	}
	t := table(crc32.Castagnoli)
	return crc32.Update(sum, &t, b)
}

// IEEE is the CRC-32 of b.
func IEEE(b []byte) uint32 {
	if len(b) >= longIEEE {
		return crc32.ChecksumIEEE(b)
	}
	t := table(crc32.IEEE)
	return crc32.Update(0, &t, b)
}

// Sum64 is a 64-bit sum of b: both sums, one after the other. It keeps apart what
// nobody constructs to be the same.
func Sum64(b []byte) uint64 { return uint64(Castagnoli(0, b))<<32 | uint64(IEEE(b)) }

// table is the plain algorithm's table. Sums are linear: an entry is the sum of the
// entries for each of its bits, so that eight of them give all.
func table(poly uint32) (t crc32.Table) {
	entry := uint32(1)
	for bit := 128; bit > 0; bit /= 2 {
		entry = entry>>1 ^ -(entry&1)&poly
		for i := 0; i < len(t); i += 2 * bit {
			t[bit+i] = t[i] ^ entry
		}
	}
	return t
}
