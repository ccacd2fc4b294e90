package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/metrics"
	"github.com/pgyield/pgyield/pressure"
)

// The table of metrics is whole, and names nothing that does not exist.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(string(text), "| `"+name+"` |") {
			t.Errorf("%s has no row", name)
		}
	}
	for _, name := range regexp.MustCompile(`\b(pgyield|pgxpool)_[a-z_]+`).FindAllString(string(text), -1) {
		if !slices.Contains(names, strings.TrimSuffix(name, "_bucket")) {
			t.Errorf("%s does not exist", name)
		}
	}
	for _, signal := range pressure.SignalNames() {
		if !strings.Contains(string(text), "`"+signal+"`") {
			t.Errorf("signal %s is not named", signal)
		}
	}
}

// How many series there are does not depend on how many callers there are.
func TestSeriesAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, pool *pgyield.Pool) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(metrics.NewCollector(pool))
		for i := range 500 {
			ctx := pgyield.WithCaller(t.Context(), strings.Repeat("x", i))
			if _, err := pool.Exec(ctx, "select n from generate_series(1, 1) n"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second) // the first poll makes the buckets of poll times
		got := values(t, registry)
		known := 0
		for name := range got {
			if strings.HasPrefix(name, "pgyield_pressure{") {
				known++
			}
		}
		// The text format adds a bucket without bound to each of the two histograms.
		if n := len(got) + 2 - known + len(pressure.SignalNames()); n != 81 {
			t.Errorf("%d series at most, the documentation says 81", n)
		}
		if got["pgyield_callers_tracked"] < 100 {
			t.Errorf("%v callers tracked", got["pgyield_callers_tracked"])
		}
	})
}
