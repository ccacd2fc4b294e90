package pressure

import (
	"strings"
	"testing"
	"time"
)

func TestPollText(t *testing.T) {
	for _, c := range []struct {
		kind      queryKind
		has, lack []string
	}{
		{queryKind{version: 130016, parts: allParts}, []string{"next_xid", "wal_waiters"}, []string{"pg_stat_wal", "pg_stat_io", "track_wal_io_timing", "$1", "pg_locks"}},
		{queryKind{version: 140000, parts: allParts}, []string{"pg_stat_wal w", "track_wal_io_timing"}, []string{"pg_stat_io"}},
		{queryKind{version: 179999, parts: allParts}, []string{"pg_stat_wal w"}, []string{"pg_stat_io"}},
		{queryKind{version: 180000, parts: allParts}, []string{"pg_stat_io WHERE object='wal' AND context='normal'"}, []string{"pg_stat_wal"}},
		{queryKind{version: 130000, parts: allParts, locks: true}, []string{"FROM pg_locks WHERE NOT granted AND locktype<>'virtualxid'"}, []string{"waitstart"}},
		{queryKind{version: 150000, parts: allParts, locks: true}, []string{"min(waitstart)"}, nil},
		{queryKind{version: 150000, parts: allParts &^ partWALStats}, []string{"next_xid"}, []string{"pg_stat_wal"}},
		{queryKind{version: 150000, parts: allParts, names: true}, []string{"set_config('application_name', $1::text, false)", "starts_with(application_name, $2::text)))[1:"}, []string{"$3", "pgyield.member", "n.names"}},
		{queryKind{version: 150000, parts: allParts &^ partSessions, names: true}, []string{"n.names", ") n", "$2"}, []string{"lock_waiters"}},
		{queryKind{version: 150000, parts: allParts, names: true, mark: true}, []string{"set_config('pgyield.member', $3::text, false)", "current_setting('pgyield.member', true) AS mark OFFSET 0"}, nil},
	} {
		sql := c.kind.build()
		for _, s := range c.has {
			if !strings.Contains(sql, s) {
				t.Errorf("%+v lacks %q", c.kind, s)
			}
		}
		for _, s := range c.lack {
			if strings.Contains(sql, s) {
				t.Errorf("%+v has %q", c.kind, s)
			}
		}
	}
}

// TestPollLooksOnce at the sessions: to look costs most of what a poll does.
func TestPollLooksOnce(t *testing.T) {
	for _, parts := range []part{allParts, allParts &^ partSessions} {
		sql := queryKind{version: 150000, parts: parts, names: true, mark: true}.build()
		if n := strings.Count(sql, "pg_stat_get_activity"); n != 1 {
			t.Errorf("it looks %d times: %s", n, sql)
		}
	}
}

func TestPause(t *testing.T) {
	for sessions, want := range map[int]time.Duration{-1: 0, 0: 0, 1: 0, 250: 0, 251: time.Second, 1 << 30: time.Second} {
		if got := (&Sample{Sessions: sessions}).Pause(); got != want {
			t.Errorf("with %d sessions polls are %v apart, want %v", sessions, got, want)
		}
	}
}

func TestReportedVersion(t *testing.T) {
	for text, want := range map[string]int{
		"15.18 (Debian 15.18-1)": 150000, "18.6": 180000, "19devel": 190000, "17": 170000,
		"": oldest, "x": oldest, "9.6.24": oldest, "99999999999999999999": oldest,
	} {
		if got := reportedVersion(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestOddAnswersAreAbsent(t *testing.T) {
	s := row{"next_xid": "many", "wal_syncs": "NaN", "wal_sync_ms": "Infinity", "server_ts": "-5", "started": "1e300", "lock_waiters": ""}.sample()
	if s.NextXID.Known || s.WALSyncs.Known || s.WALSyncMillis.Known || s.LockWaiters.Known || !s.ServerTime.IsZero() || !s.Started.IsZero() {
		t.Errorf("read %+v", s)
	}
	if s := (row{"server_ts": "1700000000.25"}).sample(); s.ServerTime.Sub(time.Unix(1700000000, 0)) != 250*time.Millisecond {
		t.Errorf("the time is %v", s.ServerTime)
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{0, 500 * time.Microsecond, 501 * time.Microsecond, time.Minute} {
		h.observe(d)
	}
	if h.Counts[0] != 2 || h.Counts[1] != 1 || h.Counts[len(h.Counts)-1] != 1 || h.Count() != 4 || len(h.Counts) != len(h.Bounds)+1 {
		t.Errorf("%+v", h)
	}
}
