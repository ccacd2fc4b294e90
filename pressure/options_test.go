package pressure

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestOptionsAreChecked(t *testing.T) {
	name := func() string { return "" }
	for _, c := range []struct {
		options Options
		parts   []string
	}{
		{Options{Period: time.Millisecond}, []string{"Period", "1ms", "50ms"}},
		{Options{Period: -1}, []string{"Period", "-1ns"}},
		{Options{Timeout: time.Hour}, []string{"Timeout", "1h0m0s", "1m0s"}},
		{Options{BackoffMin: time.Hour}, []string{"BackoffMin", "1h0m0s", "10m0s"}},
		{Options{BackoffMin: time.Second, BackoffMax: time.Millisecond}, []string{"BackoffMax", "1ms", "1s"}},
		{Options{MaintainEvery: time.Millisecond}, []string{"MaintainEvery", "1ms", "1s"}},
		{Options{MaintainTimeout: -time.Second}, []string{"MaintainTimeout", "-1s"}},
		{Options{OwnWrites: 1}, []string{"OwnWrites", "1ns", "1µs"}},
		{Options{WALSync: -1}, []string{"WALSync"}},
		{Options{WALWait: 2 * time.Hour}, []string{"WALWait", "2h0m0s", "1h0m0s"}},
		{Options{WriteStatement: -1}, []string{"WriteStatement"}},
		{Options{LockWait: -1}, []string{"LockWait"}},
		{Options{Name: name}, []string{"NamePrefix", "together"}},
		{Options{Mark: "m"}, []string{"Mark", `"m"`, "Name"}},
		{Options{NamePrefix: "x"}, []string{"NamePrefix", `"x"`}},
		{Options{Name: name, NamePrefix: strings.Repeat("x", 64)}, []string{"NamePrefix", "64", "63"}},
	} {
		_, err := c.options.Normalize()
		if err == nil {
			t.Errorf("%+v passes", c.options)
			continue
		}
		for _, part := range append(c.parts, "pgyield: ") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %q", err, part)
			}
		}
	}
	o, err := Options{}.Normalize()
	if err != nil || o.Period != DefaultPeriod || o.Timeout != DefaultTimeout || o.BackoffMax != DefaultBackoffMax || o.Logger == nil {
		t.Errorf("the defaults are %+v, %v", o, err)
	}
	if again, err := o.Normalize(); err != nil || again.Period != o.Period {
		t.Errorf("normalized options do not pass: %v", err)
	}
	if o, err := (Options{BackoffMin: time.Minute}).Normalize(); err != nil || o.BackoffMax != time.Minute {
		t.Errorf("a long BackoffMin alone: %v, %v", o.BackoffMax, err)
	}
}

func TestJudgeAndPollerRefuseBadInput(t *testing.T) {
	for _, tolerance := range []float64{1, -1, 101} {
		if _, err := NewJudge(tolerance, Options{}); err == nil || !strings.Contains(err.Error(), "Tolerance") {
			t.Errorf("tolerance %v: %v", tolerance, err)
		}
	}
	if _, err := NewJudge(0, Options{WALSync: -1}); err == nil {
		t.Error("a judge takes bad options")
	}
	for _, config := range []*pgx.ConnConfig{nil, {}} {
		if _, err := NewPoller(config, Options{}); err == nil {
			t.Errorf("a poller takes the config %v", config)
		}
	}
}
