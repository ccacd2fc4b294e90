package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// madeUp is a server that is sampled twice a second: 100 writes a second, each with a
// sync of so many milliseconds.
type madeUp struct {
	now   time.Time
	last  pressure.Sample
	syncs float64
	took  float64
}

func (m *madeUp) sample(syncMillis float64) *pressure.Sample {
	m.now = m.now.Add(500 * time.Millisecond)
	m.syncs += 50
	m.took += 50 * syncMillis
	m.last = pressure.Sample{
		At: m.now, ServerTime: m.now, Version: 170000, WALSyncs: pressure.Read(m.syncs), WALSyncMillis: pressure.Read(m.took),
		NextXID: pressure.Read(m.syncs), WALWaiters: pressure.Read(0), LockWaiters: pressure.Read(0),
		WriteStatementMillis: pressure.Read(0), RelationLockWaiters: pressure.Read(0), RelationLockWaitMillis: pressure.Read(0),
	}
	return &m.last
}

// Load that grows slowly is learned as normal only while it is to be learned.
func TestWatchLearns(t *testing.T) {
	for _, test := range []struct {
		learn   time.Duration
		presses bool
	}{{10 * time.Second, true}, {time.Hour, false}} {
		l, err := newLadder(1.6, test.learn, pressure.Options{})
		if err != nil {
			t.Fatal(err)
		}
		server := &madeUp{now: time.Now()}
		pressed := false
		for i := range 2400 { // twenty minutes: 40 quiet periods, then from 1 to 6 ms
			v, learning := l.next(server.now, server.sample(1+5*max(0, float64(i-40))/2400))
			pressed = pressed || v.Pressing
			if want := i < 20 || test.learn == time.Hour; i < 20 || i > 40 {
				if learning != want {
					t.Fatalf("learn %v, period %d: learning %v", test.learn, i, learning)
				}
			}
		}
		if pressed != test.presses {
			t.Errorf("learn %v: pressed %v, want %v", test.learn, pressed, test.presses)
		}
		if test.presses {
			for i, r := range l.rungs[1:] {
				if r.pressing > l.rungs[i].pressing {
					t.Errorf("tolerance %v presses in %d periods, %v in %d", r.tolerance, r.pressing, l.rungs[i].tolerance, l.rungs[i].pressing)
				}
			}
			if first, last := l.rungs[0], l.rungs[len(l.rungs)-1]; first.pressing < 1000 || last.pressing > 0 {
				t.Errorf("tolerance 1.2 presses in %d periods, 5 in %d", first.pressing, last.pressing)
			}
		}
	}
}

func TestWatchPeriodLine(t *testing.T) {
	l, err := newLadder(2.5, time.Minute, pressure.Options{})
	if err != nil || len(l.rungs) != 6 || l.chosen.tolerance != 2.5 {
		t.Fatalf("%v: %+v", err, l)
	}
	var out, notes strings.Builder
	r := newWatchReport(&out, &notes, false, l)
	server := &madeUp{now: time.Now()}
	stat := pressure.Stat{Version: 170004, Role: "app"}
	for range 10 {
		if err := r.period(server.now, *server.sample(0.5), nil, stat); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		if err := r.period(server.now, *server.sample(5), nil, stat); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(r.period(server.now, pressure.Sample{}, errors.New("gone"), stat), r.end()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"  calm      wal_sync 0.50 ms (0.50 ms, 1.98 ms)  lock_wait 0.00 ms (-, 12.5 ms)  relation_lock 0.00 ms (-, 100 ms)  learning\n",
		"  pressing  wal_sync 5.00 ms (0.94 ms, 3.71 ms)!", "  unknown   no sample: gone\n", "17 periods, 1 without a sample",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if n := strings.Count(notes.String(), "no own_writes"); n != 1 {
		t.Errorf("what is absent is said %d times:\n%s", n, notes.String())
	}
}

func TestWatchAbsence(t *testing.T) {
	full := *(&madeUp{now: time.Now()}).sample(1)
	change := func(f func(*pressure.Sample)) pressure.Sample { s := full; f(&s); return s }
	untimed := func(s *pressure.Sample) { s.WALSyncMillis = pressure.Reading{} }
	for _, test := range []struct {
		name   string
		sample pressure.Sample
		stat   pressure.Stat
		want   string
	}{
		{pressure.OwnWrites, full, pressure.Stat{}, "makes none"},
		{pressure.WALSync, full, pressure.Stat{}, "not judged yet"},
		{pressure.WALSync, change(untimed), pressure.Stat{}, "track_wal_io_timing is off"},
		{pressure.WALSync, change(func(s *pressure.Sample) { s.WALSyncs, s.Version = pressure.Reading{}, 130016; untimed(s) }), pressure.Stat{}, "PostgreSQL 13 does not count"},
		{pressure.WALSync, change(func(s *pressure.Sample) { s.WALSyncs = pressure.Reading{}; untimed(s) }), pressure.Stat{Refused: []string{"WAL sync counters"}}, "refuses a part of the poll: WAL sync counters"},
		{pressure.WALWait, full, pressure.Stat{}, "stands in"},
		{pressure.WALWait, change(untimed), pressure.Stat{Role: `a"b`, BlindSignals: []string{pressure.WALWait}}, `GRANT pg_monitor TO "a""b"`},
		{pressure.WALWait, change(untimed), pressure.Stat{}, "not judged yet"},
		{pressure.LockWait, change(func(s *pressure.Sample) { s.LockWaiters = pressure.Reading{} }), pressure.Stat{Refused: []string{"sessions"}}, "poll: sessions"},
		{pressure.LockWait, change(func(s *pressure.Sample) { s.Standby = true }), pressure.Stat{}, "standby"},
	} {
		if got := absence(test.name, test.sample, test.stat); !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
