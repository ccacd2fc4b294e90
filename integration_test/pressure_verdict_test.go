package integration_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pressure"
)

// pressureRig is one version's server under one load.
type pressureRig struct {
	version string
	dsn     string
	box     container
	timed   bool // it gives the time of WAL syncs
}

// pressureRigs are all versions that run here.
func pressureRigs(t *testing.T) []*pressureRig {
	t.Helper()
	var rigs []*pressureRig
	for _, version := range postgresVersions {
		// A subtest, so that a version that cannot run here leaves the others.
		t.Run(version+" runs", func(st *testing.T) {
			server := versionServer(st, version)
			dsn := server.Database(t)
			rigs = append(rigs, &pressureRig{version: version, dsn: dsn, box: containerOf(t, dsn), timed: server.Version() >= 140000})
		})
	}
	return rigs
}

// storage are the signals by which a version shows that writes wait for the WAL.
func (r *pressureRig) storage() []string {
	if r.timed {
		return []string{pressure.WALSync}
	}
	return []string{pressure.WALWait, pressure.WriteStatement}
}

// pressureCase makes one kind of pressure beside writes and reads that run already, and
// says how it must show.
type pressureCase struct {
	name  string
	limit int    // of the reads
	reads int    // how many want to run
	sql   string // what each runs
	// press makes the pressure until the load's context ends.
	press func(r *pressureRig, l *mixedLoad) error
	// relieve ends what does not end with the load.
	relieve func(r *pressureRig)
	// shows is what a period must show, shownBy in words.
	shows   func(r *pressureRig, w watched) bool
	shownBy string
	// inTurn: the versions share what is made scarce, so they are shown one by one.
	inTurn bool
	// never must hold in no period until it has shown for as long as it lasts.
	never func(w watched) bool
	lasts time.Duration
}

const briefRead = "select pg_sleep(0.02)"

func pressureCases() []pressureCase {
	return []pressureCase{{
		name: "processor", limit: 8, reads: 10, sql: heavyAggregate, shownBy: "the server's WAL signal presses, and own writes do",
		press:   func(r *pressureRig, _ *mixedLoad) error { r.box.cpus("0.25"); return nil },
		relieve: func(r *pressureRig) { r.box.cpus(r.box.docker("info", "--format", "{{.NCPU}}")) },
		shows: func(r *pressureRig, w watched) bool {
			return pressesBy(w.server, r.storage()...) && pressesBy(w.own, pressure.OwnWrites) && w.all.Pressing
		},
	}, {
		name: "small fsyncs", limit: 2, reads: 4, sql: briefRead, inTurn: true, shownBy: "the server's WAL signal presses, and own writes do",
		press: func(r *pressureRig, l *mixedLoad) error { r.smallSyncs(l); return nil },
		shows: func(r *pressureRig, w watched) bool {
			return pressesBy(w.server, r.storage()...) && pressesBy(w.own, pressure.OwnWrites) && w.all.Pressing
		},
	}, {
		name: "queue on a row beside contending reads", limit: 2, reads: 4, sql: briefRead, shownBy: "the lock wait presses",
		press: func(_ *pressureRig, l *mixedLoad) error { l.queueOnRow(8); return nil },
		shows: func(_ *pressureRig, w watched) bool { return pressesBy(w.server, pressure.LockWait) && w.all.Pressing },
	}, {
		name: "DDL behind a long read", limit: 2, reads: 4, sql: briefRead, shownBy: "the limit is asked not to rise, and nothing on the server presses",
		press: func(r *pressureRig, l *mixedLoad) error { return r.blockDDL(l) },
		shows: func(_ *pressureRig, w watched) bool {
			s, ok := w.server.Signal(pressure.RelationLock)
			return w.all.Freeze && w.server.Freeze && !w.server.Pressing && ok && s.Value > 300*time.Millisecond && !s.Pressing
		},
		lasts: 5 * time.Second,
		never: func(w watched) bool { return pressesBy(w.server, pressure.LockWait, pressure.RelationLock) },
	}, {
		name: "exhausted pool", limit: 60, reads: 60, sql: "select pg_sleep(0.5)", shownBy: "own writes press and nothing on the server does",
		shows: func(_ *pressureRig, w watched) bool {
			return pressesBy(w.all, pressure.OwnWrites) && pressesBy(w.own, pressure.OwnWrites) && !w.server.Pressing && w.server.Known
		},
	}}
}

// TestPressureShowsOnEveryVersion makes each kind of pressure on all versions at once: a
// busy machine makes the rest larger, and each effect is many times the calm before it.
func TestPressureShowsOnEveryVersion(t *testing.T) {
	rigs := pressureRigs(t)
	for _, c := range pressureCases() {
		t.Run(c.name, func(t *testing.T) {
			show := func(r *pressureRig) {
				if err := r.show(t, c); err != nil {
					t.Error(err)
				}
			}
			if !c.inTurn {
				together(rigs, show)
				return
			}
			for _, r := range rigs {
				show(r)
			}
		})
	}
}

// show lets a case happen on one server.
func (r *pressureRig) show(t *testing.T, c pressureCase) error {
	l := newMixedLoad(t, r.dsn, newReadGate(1, c.limit))
	defer l.close()
	l.write(60)
	w := watchVerdicts(t, r.version+", "+c.name, r.dsn, l)
	defer w.close()
	if err := r.learn(w); err != nil {
		return err
	}
	w.begin()
	if c.relieve != nil {
		defer c.relieve(r)
	}
	l.readSQL.Store(&c.sql)
	l.read(c.reads)
	if c.press != nil {
		if err := c.press(r, l); err != nil {
			return fmt.Errorf("%s: making it so: %w", w.name, err)
		}
	}
	began := time.Now()
	if err := w.until(30*time.Second, c.shownBy, func(one watched) bool { return c.shows(r, one) }); err != nil {
		return err
	}
	t.Logf("%s: after %v", w.name, time.Since(began).Round(100*time.Millisecond))
	time.Sleep(c.lasts)
	if c.never != nil && w.share(c.never) > 0 {
		t.Errorf("%s: what must never be was seen: %v", w.name, w)
	}
	r.checkAbsent(t, w)
	return nil
}

// learn waits for baselines of own writes and of what the version offers that are of calm;
// reads are quiet. What is learned while servers that have just started are busy with
// themselves is many times that, so it is learned anew until it no longer halves.
func (r *pressureRig) learn(w *verdictWatch) error {
	time.Sleep(time.Second) // the pool connects
	var before []time.Duration
	for range 10 {
		learned, err := r.learnOnce(w)
		if err != nil {
			return err
		}
		calm := before != nil
		for i := range before {
			calm = calm && (learned[i] >= before[i]/2 || before[i] < 2*time.Millisecond)
		}
		if calm {
			return nil
		}
		before = learned
	}
	return fmt.Errorf("%s: each baseline that is learned is half of the last: %v", w.name, before)
}

// learnOnce has the judges learn from nothing, and returns what they have for own writes, lock waits
// and storage.
func (r *pressureRig) learnOnce(w *verdictWatch) (baselines []time.Duration, err error) {
	w.forget()
	names := append([]string{pressure.OwnWrites, pressure.LockWait}, r.storage()...)
	err = w.until(30*time.Second, "every baseline is known", func(one watched) bool {
		baselines = baselines[:0]
		for _, name := range names {
			s, ok := one.all.Signal(name)
			if !ok || s.Threshold == 0 {
				return false
			}
			baselines = append(baselines, s.Baseline)
		}
		return true
	})
	return baselines, err
}

// checkAbsent: a signal that the version does not offer is listed in no period.
func (r *pressureRig) checkAbsent(t *testing.T, w *verdictWatch) {
	absent := []string{pressure.WALSync}
	if r.timed {
		absent = []string{pressure.WALWait, pressure.WriteStatement}
	}
	for _, name := range absent {
		listed := func(one watched) bool { _, is := one.all.Signal(name); return is }
		if share := w.share(listed); share > 0 {
			t.Errorf("%s: %s is not offered, yet listed in %.2f of the periods", w.name, name, share)
		}
	}
}

// smallSyncs has other programs sync small writes to the server's own disk.
func (r *pressureRig) smallSyncs(l *mixedLoad) {
	// Bounded in time as well, should the test be killed.
	const script = `cd /var/lib/postgresql/data; rm -f pressure.*; end=$((SECONDS + 40))
		for i in {1..12}; do
			while [ $SECONDS -lt $end ] && [ ! -e pressure.stop ]; do
				dd if=/dev/zero of=pressure.$i bs=16k count=50 oflag=dsync 2>/dev/null
			done &
		done
		wait; rm -f pressure.*`
	l.writers.Go(func() { r.box.shell(script) })
	context.AfterFunc(l.ctx, func() { r.box.shell("touch /var/lib/postgresql/data/pressure.stop") })
}

// queueOnRow lets sessions queue for one row that each holds for a moment.
func (l *mixedLoad) queueOnRow(sessions int) {
	for range sessions {
		l.writers.Go(func() {
			for l.ctx.Err() == nil {
				_ = pgx.BeginFunc(l.ctx, l.pool, func(tx pgx.Tx) error {
					_, err := tx.Exec(l.ctx, "update pressure_accounts set n = n + 1 where id = 1")
					if err != nil {
						return err
					}
					_, err = tx.Exec(l.ctx, "select pg_sleep(0.02)")
					return err
				})
			}
		})
	}
}

// blockDDL leaves an ALTER TABLE behind a transaction that has read the table, and four
// sessions behind that. No write needs the table.
func (r *pressureRig) blockDDL(l *mixedLoad) error {
	// Sessions come in this order whatever a machine takes to let them in.
	session := func(last string, first ...string) error {
		conn, err := pgx.Connect(l.ctx, r.dsn)
		if err != nil {
			return err
		}
		for _, sql := range first {
			if _, err = conn.Exec(l.ctx, sql); err != nil {
				break
			}
		}
		l.writers.Go(func() {
			defer func() { _ = conn.Close(context.Background()) }()
			if err == nil {
				_, _ = conn.Exec(l.ctx, last) // it ends with the load
			}
		})
		return err
	}
	const wait = `do $$ begin
		while not exists (select from pg_locks where not granted and relation = 'pressure_ddl'::regclass) loop
			perform pg_sleep(0.02);
		end loop; end $$`
	err := errors.Join(
		session("select pg_sleep(60)", "create table if not exists pressure_ddl ()", "begin", "select * from pressure_ddl"),
		session("alter table pressure_ddl add column if not exists n int"),
		session("select", wait),
	)
	for range 4 {
		err = errors.Join(err, session("select * from pressure_ddl"))
	}
	return err
}
