package main

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// sample is a result whose every number can be told by hand: 100 writes a second
// of 2 ms alone, 200 ms beside reads of pgxpool, 4 ms beside those of pgyield,
// whose limit goes 16, 8, 4, 5.
func sample() *result {
	res := &result{Server: "17.0", Rate: 100, Readers: 16, Conns: 20, Settle: time.Second, Begun: time.Now()}
	at := time.Duration(0)
	for i, took := range []time.Duration{2 * ms, 200 * ms, 4 * ms} {
		name := []string{phaseIdle, phasePlain, phaseYield}[i]
		p := &phase{Name: name, From: at, To: at + 5*time.Second}
		for due := p.From; due < p.To; due += 10 * ms {
			p.Writes = append(p.Writes, work{Begun: due, Took: took, Done: true})
		}
		for begun := p.From; i > 0 && begun < p.To; begun += 250 * ms {
			p.Reads = append(p.Reads, work{Begun: begun - 100*ms, Took: 150 * ms, Done: true})
		}
		if i == 2 {
			p.Decisions = []decision{
				{At: p.From + 1100*ms, From: 16, To: 8, Reason: "own_writes 3ms over 2ms & <more>"},
				{At: p.From + 2100*ms, From: 8, To: 4, Reason: "wal_sync 1ms over 0.5ms"},
			}
		}
		for n := range 50 {
			g := gauge{At: p.From + time.Duration(n)*gaugeEvery, WritesInFlight: i}
			if i == 2 {
				limit := []int{16, 8, 4, 5, 5}[n/10]
				g.Gate = &gate{Limit: limit, Running: limit, Waiting: 16 - limit, Pressing: n < 20}
			}
			p.Gauges = append(p.Gauges, g)
		}
		for t := p.From; t < p.To; t += 250 * ms {
			res.Samples = append(res.Samples, serverSample{At: t, WALSyncMean: took / 10})
		}
		res.Phases = append(res.Phases, p)
		at = p.To + 100*ms
	}
	return res
}

func TestQuantile(t *testing.T) {
	var sorted []time.Duration
	if quantile(sorted, 0.5) != 0 {
		t.Error("of nothing")
	}
	for i := range 100 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.95: 95, 0.99: 99, 1: 100} {
		if got := quantile(sorted, q); got != want {
			t.Errorf("q %v: %d, want %d", q, got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	p := &phase{
		Name: phaseYield, Lead: 500 * ms, From: 10 * time.Second, To: 15 * time.Second,
		Writes: []work{
			{Begun: 10400 * ms, Took: 50 * ms, Done: true},         // before the reads joined
			{Begun: 10500 * ms, Took: 5 * time.Second, Done: true}, // settling, and ended too late
			{Begun: 10900 * ms, Took: 200 * ms, Done: true},        // counts for the rate alone
			{Begun: 11 * time.Second, Took: 10 * ms, Done: true},   //
			{Begun: 12 * time.Second, Took: 20 * ms, Done: true},   //
			{Begun: 14990 * ms, Took: 30 * ms, Done: true},         // ended late: latency alone
			{Begun: 14 * time.Second, Took: 4 * time.Second},       // never ended
		},
		Reads: []work{
			{Begun: 10 * time.Second, Took: 500 * ms, Done: true},        // settling
			{Begun: 10 * time.Second, Took: 2 * time.Second, Done: true}, //
			{Begun: 14 * time.Second, Took: 900 * ms, Done: true},        //
			{Begun: 14 * time.Second, Took: 900 * ms},                    // cancelled
		},
		Refused: []time.Duration{10500 * ms, 12 * time.Second},
		Gauges: []gauge{
			{Gate: &gate{Limit: 16}}, {Gate: &gate{Limit: 16}}, {Gate: &gate{Limit: 8}}, {Gate: &gate{Limit: 9}},
		},
	}
	r := p.summary(500 * ms)
	if r.P50 != 20*ms || r.P95 != 4*time.Second || r.P99 != 4*time.Second {
		t.Errorf("latency %v %v %v", r.P50, r.P95, r.P99)
	}
	if !r.AtLeast || r.Unfinished != 1 {
		t.Errorf("unfinished %d", r.Unfinished)
	}
	if r.WriteRate != 3.0/4.5 || r.ReadRate != 2.0/4 || r.Refused != 1 {
		t.Errorf("writes/s %v, reads/s %v, refused %d", r.WriteRate, r.ReadRate, r.Refused)
	}
	if got := pathText(r.Path); got != "16 > 8 > 9" {
		t.Errorf("path %s", got)
	}
}

func TestPathTextIsShort(t *testing.T) {
	var long []int
	for i := range 100 {
		long = append(long, i)
	}
	got := pathText(long)
	if len(got) > 120 || got[:9] != "0 > 1 > 2" || got[len(got)-7:] != "98 > 99" {
		t.Errorf("%s", got)
	}
}

func TestSyncMeanNeedsEvidence(t *testing.T) {
	begin := time.Now()
	res := newSamplerFor(begin, []float64{0, 0, 10, 10, 20, 22}, []float64{0, 0, 5, 5, 10, 40})
	got := res.since(begin)
	want := []time.Duration{0, 0, 500 * time.Microsecond, 500 * time.Microsecond, 500 * time.Microsecond, 2916666 * time.Nanosecond}
	for i := range want {
		if d := got[i].WALSyncMean - want[i]; d < -time.Microsecond || d > time.Microsecond {
			t.Errorf("sample %d: %v, want %v", i, got[i].WALSyncMean, want[i])
		}
	}

	few := newSamplerFor(begin, []float64{0, 1, 2, 3}, []float64{0, 9, 18, 27}).since(begin)
	if few[3].WALSyncMean != 0 {
		t.Errorf("of three syncs: %v", few[3].WALSyncMean)
	}
}
