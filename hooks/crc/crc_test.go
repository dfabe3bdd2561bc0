package crc

import (
	"hash/crc32"
	"testing"
)

// TestSums: they are those of hash/crc32, at every length around the change from
// one way to the other, in one piece and in two.
func TestSums(t *testing.T) {
	b := make([]byte, long+3)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	for _, n := range []int{0, 1, 2, 9, 255, 4096, longIEEE - 1, longIEEE, long - 1, long, long + 1, len(b)} {
		want, ieee := crc32.Checksum(b[:n], castagnoli), crc32.ChecksumIEEE(b[:n])
		if got := Castagnoli(0, b[:n]); got != want {
			t.Errorf("CRC-32C of %d bytes: %08x, want %08x", n, got, want)
		}
		if got := Castagnoli(Castagnoli(0, b[:n/3]), b[n/3:n]); got != want {
			t.Errorf("CRC-32C of %d bytes in two pieces: %08x, want %08x", n, got, want)
		}
		if got := IEEE(b[:n]); got != ieee {
			t.Errorf("CRC-32 of %d bytes: %08x, want %08x", n, got, ieee)
		}
		if got := Sum64(b[:n]); got != uint64(want)<<32|uint64(ieee) {
			t.Errorf("the sum of %d bytes: %016x, want %08x%08x", n, got, want, ieee)
		}
	}
	// The check values of the two algorithms.
	if got := Castagnoli(0, []byte("123456789")); got != 0xe3069283 {
		t.Errorf("CRC-32C of the check text: %08x", got)
	}
	if got := IEEE([]byte("123456789")); got != 0xcbf43926 {
		t.Errorf("CRC-32 of the check text: %08x", got)
	}
}
