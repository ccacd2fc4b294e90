package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/pgyield/pgyield/pressure"
)

// pressureControl is load that reads do not cause: writes are busy, or slow by their own
// doing.
type pressureControl struct {
	name  string
	start func(l *mixedLoad)
}

func pressureControls() []pressureControl {
	return []pressureControl{
		{name: "nothing", start: func(*mixedLoad) {}},
		{name: "bulk load", start: func(l *mixedLoad) { l.bulk() }},
		{name: "2,000 writes/s", start: func(l *mixedLoad) { l.manyWrites(4) }},
		{name: "writers among themselves", start: func(l *mixedLoad) { l.hotRow(8) }},
		{name: "checkpoints", start: func(l *mixedLoad) { l.checkpoints() }},
		{name: "an open bulk transaction", start: func(l *mixedLoad) { l.openBulk() }},
	}
}

// manyWrites writes as fast as so many sessions can: some 2,000 a second on two cores.
func (l *mixedLoad) manyWrites(sessions int) {
	for range sessions {
		l.writers.Go(func() {
			for i := 0; l.ctx.Err() == nil; i++ {
				_, _ = l.pool.Exec(l.ctx, "insert into pressure_history values ($1, now())", i)
			}
		})
	}
}

// TestPressureControlsOnEveryVersion: beside light reads no signal of the server takes
// what writes do among themselves for suffering. Own writes may: they are slow then, and
// only an experiment tells why (a cut must help). The versions are measured in turn.
func TestPressureControlsOnEveryVersion(t *testing.T) {
	rigs := pressureRigs(t)
	for _, r := range rigs {
		t.Run(r.version, func(t *testing.T) {
			l := newMixedLoad(t, r.dsn, newReadGate(1, 16))
			defer l.close()
			light := "select pg_sleep(0.01)"
			l.readSQL.Store(&light)
			l.write(60)
			w := watchVerdicts(t, r.version, r.dsn, l)
			defer w.close()
			if err := r.learn(w); err != nil {
				t.Fatal(err)
			}
			l.read(2)
			noise := 0.0
			for i, c := range pressureControls() {
				if share := r.control(t, l, w, c, noise); i == 0 {
					noise = share
				}
			}
			r.checkAbsent(t, w)
		})
	}
	t.Run("reads alone", func(t *testing.T) {
		together(rigs, func(r *pressureRig) { r.readsAlone(t) })
	})
}

// control runs one control and returns in which share of the periods a signal of the
// server pressed.
func (r *pressureRig) control(t *testing.T, l *mixedLoad, w *verdictWatch, c pressureControl, noise float64) float64 {
	t.Helper()
	w.begin()
	busy := &mixedLoad{t: t, pool: l.pool}
	busy.ctx, busy.stop = context.WithCancel(l.ctx)
	c.start(busy)
	time.Sleep(4 * time.Second) // two windows of the server's, and two from which they may begin
	busy.stop()
	busy.writers.Wait()
	// Without a sync time, what stands in for it cannot tell busy writes from suffering
	// ones: on 13 it pressed in up to seven tenths of such periods.
	excused := func(v pressure.Verdict) bool {
		return !r.timed && c.name != "nothing" && pressesBy(v, pressure.WALWait, pressure.WriteStatement)
	}
	server := w.share(func(one watched) bool { return one.server.Pressing && !excused(one.server) })
	own := w.share(func(one watched) bool { return one.own.Pressing })
	t.Logf("%s: the server presses in %.2f of the periods, own writes in %.2f", c.name, server, own)
	// One window that was bad by chance lies in a quarter of these periods, and the disk
	// is one for all that runs on the machine.
	if most := max(0.55, 2*noise); server > most {
		t.Errorf("%s: the server presses in %.2f of the periods, %.2f with nothing else running: %v", c.name, server, noise, w)
	}
	if share := w.share(func(one watched) bool { return one.all.Pressing && !one.server.Pressing && !one.own.Pressing }); share > 0.1 {
		t.Errorf("%s: in %.2f of the periods all together press and neither kind does: %v", c.name, share, w)
	}
	if share := w.share(func(one watched) bool { return one.server.Known && one.server.WritesMove }); share < 0.9 {
		t.Errorf("%s: the server shows writes in %.2f of the periods: %v", c.name, share, w)
	}
	return server
}

// readsAlone: where nothing writes, nothing suffers, and the verdict says so.
func (r *pressureRig) readsAlone(t *testing.T) {
	l := newMixedLoad(t, r.dsn, newReadGate(1, 4))
	defer l.close()
	w := watchVerdicts(t, r.version+", reads alone", r.dsn, l)
	defer w.close()
	l.read(6)
	quiet := func(one watched) bool { return !one.all.Pressing && one.all.Known && one.all.Reason == "no writes" }
	if err := w.until(20*time.Second, "no writes are known", quiet); err != nil {
		t.Error(err)
	}
	if w.share(func(one watched) bool { return one.all.Pressing }) > 0 {
		t.Errorf("reads alone press: %v", w)
	}
}
