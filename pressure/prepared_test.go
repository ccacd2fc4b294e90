package pressure

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/pgyield/pgyield/internal/pgfake"
)

// withProcess runs a test against a fake that tells which process serves a session: the
// one that greeted it, or, behind a bouncer, another.
func withProcess(t *testing.T, bouncer bool, test func(m *monitored, p *Poller, fail func(code string))) {
	t.Helper()
	withPoller(t, Options{}, func(m *monitored, p *Poller) {
		var code string
		m.set(func(_ context.Context, q pgfake.Query) *pgfake.Result {
			var r pgfake.Result
			switch {
			case isPoll(q) && code != "":
				r, code = pgfake.Fail(code, "no"), ""
			case isPoll(q):
				return nil
			default:
				greeted, _ := q.Args[0].(int64)
				direct := map[bool]string{true: "t", false: "f"}[greeted == int64(q.PID) && !bouncer]
				r = pgfake.Rows([]pgfake.Column{{Name: "direct"}}, []any{direct})
			}
			return &r
		})
		test(m, p, func(c string) { code = c })
	})
}

// TestPollIsPreparedOnlyWhereNothingStandsBetween: a statement that is prepared is known
// to one server process, and a bouncer has many.
func TestPollIsPreparedOnlyWhereNothingStandsBetween(t *testing.T) {
	for _, bouncer := range []bool{false, true} {
		withProcess(t, bouncer, func(m *monitored, p *Poller, _ func(string)) {
			for range 3 {
				_, err := p.Sample(context.Background())
				if (p.prepared == "") != bouncer {
					t.Errorf("bouncer %t: prepared %q, %v", bouncer, p.prepared, err)
				}
			}
		})
	}
}

// TestForgottenPollIsNotPreparedAgain: something on the way discards sessions, or passes
// them on as they are, which costs one sample and no connection.
func TestForgottenPollIsNotPreparedAgain(t *testing.T) {
	for _, code := range []string{"26000", "42P05"} {
		t.Run(code, func(t *testing.T) { forgottenPoll(t, code) })
	}
}

func forgottenPoll(t *testing.T, code string) {
	withProcess(t, false, func(m *monitored, p *Poller, fail func(string)) {
		_, _ = p.Sample(context.Background())
		if p.prepared == "" {
			t.Fatal("nothing is prepared that could be forgotten")
		}
		fail(code)
		if _, err := p.Sample(context.Background()); err == nil {
			t.Error("a forgotten statement gave a sample")
		}
		for range 3 {
			if s, err := p.Sample(context.Background()); err != nil || !s.NextXID.Known {
				t.Errorf("afterwards %+v, %v", s, err)
			}
		}
		if n := p.Stat().Connects; n != 1 || len(p.Stat().Refused) > 0 {
			t.Errorf("%d connects, refused: %v", n, p.Stat().Refused)
		}
		m.fake.KillAll()
		_, _ = p.Sample(context.Background()) // notices
		if _, err := p.Sample(context.Background()); err != nil || p.direct {
			t.Errorf("on the next connection: prepared again, %v", err)
		}
	})
}

// TestAnotherPollIsPreparedAnew: the text depends on what the server refuses.
func TestAnotherPollIsPreparedAnew(t *testing.T) {
	withProcess(t, false, func(m *monitored, p *Poller, fail func(string)) {
		_, _ = p.Sample(context.Background())
		first := p.prepared
		p.query.locks = true
		_, _ = p.Sample(context.Background())
		if p.prepared == first || !strings.Contains(p.prepared, "pg_locks") {
			t.Errorf("prepared is still %q", p.prepared)
		}
		last := m.fake.Statements()
		if i := slices.IndexFunc(last, func(s pgfake.Statement) bool { return s.SQL == p.prepared }); i < 0 {
			t.Error("the new text never ran")
		}
	})
}
