package pgyield_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/adaptive"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/pressure"
)

const nowhere = "postgres://reader:secret@127.0.0.1:1/db?sslmode=disable&pool_max_conns=10"

func TestLimitsAtStart(t *testing.T) {
	for _, tt := range []struct {
		dsn                   string
		options               bulkhead.Options
		limit, floor, ceiling int
	}{
		{dsn: nowhere, limit: 8, floor: 1, ceiling: 8},
		{dsn: strings.Replace(nowhere, "conns=10", "conns=20", 1), limit: 16, floor: 1, ceiling: 16},
		{dsn: strings.Replace(nowhere, "conns=10", "conns=4", 1), limit: 3, floor: 1, ceiling: 3},
		{dsn: strings.Replace(nowhere, "conns=10", "conns=2", 1), limit: 1, floor: 1, ceiling: 1},
		{dsn: strings.Replace(nowhere, "conns=10", "conns=1", 1), limit: 1, floor: 1, ceiling: 1},
		{dsn: nowhere + "&yield_read_limit=4", limit: 4, floor: 1, ceiling: 8},
		{dsn: nowhere + "&yield_read_limit=9", limit: 9, floor: 1, ceiling: 9},
		{dsn: nowhere + "&yield_read_limit=10", limit: 10, floor: 1, ceiling: 10},
		{dsn: nowhere + "&yield_read_floor=3", limit: 8, floor: 3, ceiling: 8},
		{dsn: nowhere + "&yield_read_ceiling=5", limit: 5, floor: 1, ceiling: 5},
		{dsn: nowhere + "&yield_read_ceiling=5&yield_read_limit=2&yield_read_floor=2", limit: 2, floor: 2, ceiling: 5},
		{dsn: nowhere + "&yield_read_limit=4", options: bulkhead.Options{Limit: 2}, limit: 2, floor: 1, ceiling: 8},
	} {
		config, err := pgyield.ParseConfig(tt.dsn)
		if err != nil {
			t.Fatal(err)
		}
		p, err := pgyield.NewWithOptions(context.Background(), config, pgyield.Options{Bulkhead: tt.options, FixedLimit: true})
		if err != nil {
			t.Errorf("%s: %v", tt.dsn, err)
			continue
		}
		s := p.ReadStat()
		if s.Limit() != tt.limit || s.Floor() != tt.floor || s.Ceiling() != tt.ceiling {
			t.Errorf("%s: limit, floor, ceiling are %d, %d, %d, want %d, %d, %d", tt.dsn,
				s.Limit(), s.Floor(), s.Ceiling(), tt.limit, tt.floor, tt.ceiling)
		}
		p.Close()
	}
}

// Bad input is an error at construction that names the key, the value and the bound.
func TestBadInput(t *testing.T) {
	for _, tt := range []struct {
		params  string
		options pgyield.Options
		want    []string
	}{
		{params: "yield_mode=strict", want: []string{"yield_mode", `"strict"`, "enforce, shadow or off"}},
		{params: "yield_adapt=yes", want: []string{"yield_adapt", `"yes"`, "on or off"}},
		{params: "yield_read_limit=0", want: []string{"yield_read_limit", `"0"`, "at least 1"}},
		{params: "yield_read_limit=many", want: []string{"yield_read_limit", `"many"`, "integer"}},
		{params: "yield_read_limit=11", want: []string{"yield_read_limit", "11", "MaxConns (10)"}},
		{params: "yield_read_ceiling=11", want: []string{"yield_read_ceiling", "11", "MaxConns (10)"}},
		{params: "yield_read_floor=9&yield_read_ceiling=8", want: []string{"yield_read_floor", "9", "ceiling (8)"}},
		{params: "yield_read_limit=2&yield_read_floor=3", want: []string{"yield_read_limit", "2", "floor (3)"}},
		{params: "yield_max_wait=2", want: []string{"yield_max_wait", `"2"`, "duration"}},
		{params: "yield_max_wait=-2s", want: []string{"yield_max_wait", `"-2s"`, "above 0"}},
		{params: "yield_max_waiting=-2", want: []string{"yield_max_waiting", `"-2"`, "-1 for none"}},
		{params: "yield_period=soon", want: []string{"yield_period", `"soon"`, "duration"}},
		{params: "yield_period=1ns", want: []string{"yield_period", `"1ns"`, "10ms"}},
		{params: "yield_periods=0", want: []string{"yield_periods", `"0"`, "from 1 to 1000"}},
		{params: "yield_tolerance=1", want: []string{"yield_tolerance", `"1"`, "from 1.1 to 100"}},
		{params: "yield_tolerance=NaN", want: []string{"yield_tolerance", `"NaN"`, "from 1.1 to 100"}},
		{params: "yield_fleet=a:b", want: []string{"yield_fleet", `"a:b"`, "1 to 21"}},
		{params: "yield_fleet=" + strings.Repeat("x", 22), want: []string{"yield_fleet", "1 to 21"}},
		{params: "yield_fleet_limit=1000001", want: []string{"yield_fleet_limit", `"1000001"`, "from 1 to 1000000"}},
		{params: "yield_red_limit=1", want: []string{"yield_red_limit", "yield_read_limit"}},
		{options: pgyield.Options{Mode: 7}, want: []string{"Options.Mode", "7", "Shadow"}},
		{options: pgyield.Options{Bulkhead: bulkhead.Options{Limit: -1}}, want: []string{"Limit", "-1", "10"}},
		{options: pgyield.Options{Bulkhead: bulkhead.Options{Window: -time.Second}}, want: []string{"Window", "-1s"}},
		{options: pgyield.Options{Bulkhead: bulkhead.Options{MaxPermits: 3}}, want: []string{"Bulkhead.MaxPermits", "unset"}},
		{options: pgyield.Options{Adaptive: adaptive.Options{Pressure: pressure.Options{WALSync: 1}}}, want: []string{"Adaptive.Pressure", "unset"}},
		{options: pgyield.Options{Adaptive: adaptive.Options{Tolerance: 1}}, want: []string{"Tolerance", "1.1"}},
		{options: pgyield.Options{FixedLimit: true, Adaptive: adaptive.Options{Tolerance: 1}}, want: []string{"Tolerance", "1.1"}},
		{options: pgyield.Options{FixedLimit: true, Pressure: pressure.Options{Period: 1}}, want: []string{"Period", "1ns"}},
		{options: pgyield.Options{FixedLimit: true, MonitorConfig: &pgx.ConnConfig{}}, want: []string{"ParseConfig"}},
		{options: pgyield.Options{WritingFunctions: []string{""}}, want: []string{"WritingFunctions"}},
	} {
		err := construct(nowhere+"&"+tt.params, tt.options)
		if err == nil {
			t.Errorf("%s %+v: no error", tt.params, tt.options)
			continue
		}
		for _, want := range append(tt.want, "pgyield") {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not name %q", tt.params, err, want)
			}
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %q shows the password", tt.params, err)
		}
	}
}

func construct(dsn string, options pgyield.Options) error {
	config, err := pgyield.ParseConfig(dsn)
	if err != nil {
		return err
	}
	p, err := pgyield.NewWithOptions(context.Background(), config, options)
	if err == nil {
		p.Close()
	}
	return err
}

// Both forms of a connection string carry the parameters, and the server sees none.
func TestParamsAreNotSentToTheServer(t *testing.T) {
	for _, dsn := range []string{
		nowhere + "&yield_read_limit=3&application_name=x",
		"host=127.0.0.1 port=1 user=reader pool_max_conns=10 yield_read_limit=3 application_name=x",
	} {
		config, err := pgyield.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if got := config.ConnConfig.RuntimeParams; len(got) != 1 || got["application_name"] != "x" {
			t.Errorf("%s: runtime parameters are %v, want only application_name", dsn, got)
		}
		p, err := pgyield.NewWithConfig(context.Background(), config)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.ReadStat().Limit(); got != 3 {
			t.Errorf("%s: limit is %d, want 3", dsn, got)
		}
		p.Close()
	}
}

// A config that pgxpool parsed still holds the parameters as runtime parameters; they
// count, and go no further.
func TestConfigParsedByPgxpool(t *testing.T) {
	config, err := pgxpool.ParseConfig(nowhere + "&yield_read_limit=3&yield_adapt=off")
	if err != nil {
		t.Fatal(err)
	}
	p, err := pgyield.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.ReadStat().Limit(); got != 3 {
		t.Errorf("limit is %d, want 3", got)
	}
	if got := p.Unwrap().Config().ConnConfig.RuntimeParams; len(got) != 0 {
		t.Errorf("the server would get %v", got)
	}
}

// A parameter set in code counts as one of the string does, and beats it.
func TestRuntimeParamsCount(t *testing.T) {
	config, err := pgyield.ParseConfig(nowhere + "&yield_read_limit=3&yield_adapt=off")
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["yield_read_limit"] = "2"
	p, err := pgyield.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if got := p.ReadStat().Limit(); got != 2 {
		t.Errorf("limit is %d, want 2", got)
	}
	config.ConnConfig.RuntimeParams["yield_read_limt"] = "2"
	if p, err := pgyield.NewWithConfig(context.Background(), config); err == nil {
		p.Close()
		t.Error("no error on an unknown parameter")
	}
}

// A config is whole: what its string was read with may be gone since.
func TestConfigOutlivesItsFiles(t *testing.T) {
	key := filepath.Join(t.TempDir(), "pg_service.conf")
	if err := os.WriteFile(key, []byte("[here]\nhost=127.0.0.1\nport=1\nuser=reader\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := pgyield.ParseConfig("service=here servicefile=" + key + " pool_max_conns=10")
	if err != nil {
		t.Fatal(err)
	}
	with, err := pgyield.ParseConfig("service=here servicefile=" + key + " pool_max_conns=10 yield_read_limit=3")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	p, err := pgyield.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatalf("pgxpool takes this config; error %v", err)
	}
	p.Close()
	if p, err := pgyield.NewWithConfig(context.Background(), with); err == nil { // or its limit would be lost silently
		p.Close()
		t.Error("no error where the parameters cannot be read")
	}
}

func TestConfigMustBeParsed(t *testing.T) {
	const want = "config must be created by ParseConfig" // pgxpool's own
	if got := panics(func() { _, _ = pgyield.NewWithConfig(context.Background(), &pgyield.Config{}) }); got != want {
		t.Errorf("panic is %v, want %q", got, want)
	}
}
