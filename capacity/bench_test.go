package capacity_test

import (
	"testing"

	"github.com/pgyield/pgyield/capacity"
)

func BenchmarkErlangB100kPermits(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		must(capacity.ErlangB(100_000, 1e6))
	}
}

func BenchmarkErlangA100kPermits(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		must(capacity.ErlangA(100_000, 1e6, 1000))
	}
}

func BenchmarkSplit(b *testing.B) {
	b.ReportAllocs()
	split := capacity.Split{Erlangs: 18, Limit: 24, Shards: 6, MaxWait: 1, Retries: 2}
	for b.Loop() {
		must(split.Solve())
	}
}
