package main

import (
	"testing"

	"ways/hooks/redact"
)

// BenchmarkSeal is the masking of the records that the tables are made with.
func BenchmarkSeal(b *testing.B) {
	masker, err := redact.New(redact.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			made := newMaker("load", "/home/you/proj", size.bytes)
			var records [][]byte
			total := 0
			for seq := range uint64(64) {
				records = append(records, made.next().Append(nil, seq+1))
				total += len(records[seq])
			}
			b.SetBytes(int64(total / len(records)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				masker.Seal(records[n%len(records)], redact.Envelope{Rule: "load/r000", RuleSeq: 1})
				n++
			}
		})
	}
}
