package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/pgyield/pgyield/capacity"
)

// size runs `pgyield size` and returns what it prints.
func size(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	parser, err := kong.New(&cli{}, kong.Name("pgyield"), kong.Writers(&out, &out),
		kong.BindFor(t.Context()), kong.Exit(func(int) { t.Fatal("exit") }))
	if err != nil {
		t.Fatal(err)
	}
	command, err := parser.Parse(append([]string{"size"}, args...))
	if err != nil {
		return "", err
	}
	err = command.Run()
	return out.String(), err
}

func TestSizeJSON(t *testing.T) {
	out, err := size(t, "--rate", "400/s", "--mean", "30ms", "--limit", "16", "--pods", "6", "--retries", "1", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var s sized
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil || len(s.Rows) != 3 || math.Abs(s.Erlangs-12) > 1e-9 {
		t.Fatalf("%v: %s", err, out)
	}
	pooled, split, fleet := s.Rows[0], s.Rows[1], s.Rows[2]
	for name, want := range map[string]struct {
		row    sizeRow
		shards int
	}{"pooled": {pooled, 1}, "split": {split, 6}} {
		o, err := capacity.Split{Erlangs: 12, Limit: 16, Shards: want.shards, Retries: 1}.Solve()
		if err != nil {
			t.Fatal(err)
		}
		if want.row.Name != name || math.Abs(want.row.Refused-o.Refused) > 1e-9 || math.Abs(want.row.Lost-o.Lost/0.03) > 1e-6 {
			t.Errorf("%s: %+v, want %+v", name, want.row, o)
		}
	}
	o, _ := capacity.Split{Erlangs: 12, Limit: split.Needs, Shards: 6, Retries: 1}.Solve()
	less, _ := capacity.Split{Erlangs: 12, Limit: split.Needs - 1, Shards: 6, Retries: 1}.Solve()
	if o.Refused > pooled.Refused || less.Refused <= pooled.Refused {
		t.Errorf("split needs %d: refuses %v there and %v at one less; pooled %v", split.Needs, o.Refused, less.Refused, pooled.Refused)
	}
	if fleet.Name != "fleet" || !fleet.Simulated || fleet.Refused > split.Refused/2 || fleet.Needs < 16 || fleet.Needs >= split.Needs {
		t.Errorf("%+v", fleet)
	}
}

func TestSizeTable(t *testing.T) {
	out, err := size(t, "--rate", "24000/m", "--mean", "30ms", "--limit", "16", "--pods", "4", "--parts", "70,10,10,10", "--max-wait", "60ms")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{
		`^400 reads/s of 30 ms are a load of 12 on a limit of 16 \(75 %\)`,
		`(?m)^ +pooled .* 16\s*$`, `(?m)^ +split .* \d+\s*$`, `(?m)^ +fleet .* \d+\s*$`, `fleet: simulated, ±`,
	} {
		if !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("%s is not in\n%s", pattern, out)
		}
	}
	if out, err = size(t, "--rate", "400/s", "--mean", "30ms", "--limit", "16"); err != nil || strings.Contains(out, "split") {
		t.Errorf("one pod is no fleet: %v\n%s", err, out)
	}
}

func TestSizePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "size.html")
	if _, err := size(t, "--rate", "400/s", "--mean", "30ms", "--limit", "16", "--pods", "3", "--html", file); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(page, []byte("<svg")); n != 2 {
		t.Errorf("%d charts, want 2", n)
	}
	if outside := regexp.MustCompile(`(src|href)=|@import|url\(`).Find(page); outside != nil {
		t.Errorf("the page needs more than itself: %s", outside)
	}
	text := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindSubmatch(page)
	var data struct {
		Charts []struct {
			Points []float64             `json:"points"`
			Lines  map[string][]*float64 `json:"lines"`
		} `json:"charts"`
	}
	if err := json.Unmarshal(text[1], &data); err != nil || len(data.Charts) != 2 {
		t.Fatalf("%v: %s", err, text[1])
	}
	for _, chart := range data.Charts {
		for _, name := range []string{"pooled", "split", "fleet"} {
			if len(chart.Lines[name]) != len(chart.Points) || len(chart.Points) < 15 {
				t.Errorf("%s has %d values at %d points", name, len(chart.Lines[name]), len(chart.Points))
			}
		}
		// More load, or a smaller limit, refuses more.
		last := chart.Lines["split"][len(chart.Points)-1]
		first := chart.Lines["split"][0]
		if first != nil && last != nil && *first == *last {
			t.Errorf("the curve is flat: %v to %v", *first, *last)
		}
	}
	if _, err := os.Stat(file + ".part"); err == nil {
		t.Error("a part of the page is left behind")
	}
}

func TestSizeErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--rate", "fast"}, `"fast" is no rate`},
		{[]string{"--rate", "NaN/s"}, `no rate`},
		{[]string{"--rate", "5/d"}, `no rate`},
		{[]string{"--rate", "0/s"}, "--rate is 0/s, must be above 0"},
		{[]string{"--mean", "0s"}, "--mean is 0s, must be from"},
		{[]string{"--limit", "0"}, "--limit is 0, must be from 1"},
		{[]string{"--pods", "0"}, "--pods is 0, must be from 1"},
		{[]string{"--retries=-1"}, "--retries is -1"},
		{[]string{"--max-wait=-1s"}, "--max-wait is -1s"},
		{[]string{"--max-wait=24h", "--mean=8us"}, "--max-wait is 24h0m0s, must be at most 1e+10 times --mean, which is 8µs"},
		{[]string{"--pods", "3", "--parts", "1,2"}, "--parts has 2 numbers"},
		{[]string{"--pods", "2", "--parts", "0,0"}, "only zeros"},
		{[]string{"--pods", "2", "--parts", "NaN,1"}, "--parts has NaN"},
	} {
		args := append([]string{"--rate", "400/s", "--mean", "30ms", "--limit", "16"}, c.args...)
		if _, err := size(t, args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}

// A flag that must be given is missed by its name, not by what its zero would mean.
// TestSizeAtItsBounds: what the flags may be can be simulated, and what cannot is not drawn.
func TestSizeAtItsBounds(t *testing.T) {
	page := filepath.Join(t.TempDir(), "size.html")
	for _, args := range [][]string{
		{"--rate=0.01/s", "--mean=1h", "--limit=50", "--pods=2"},
		{"--rate=100/s", "--mean=1us", "--limit=11", "--html=" + page},
	} {
		if out, err := size(t, args...); err != nil || !strings.Contains(out, "pooled") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
	c := sizeCmd{Rate: 100, Mean: 100 * time.Microsecond, Limit: 100, Pods: 1}
	curves, err := c.curves(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if points := curves[1].Points; len(points) != 10 || points[9] != 100 { // a load of 100 % is a million a second
		t.Errorf("drawn at %v %% of the limit", points)
	}
}

func TestSizeMissingFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "missing flags: --limit=N, --mean=TIME, --rate=RATE"},
		{[]string{"--rate=400/s", "--mean=30ms"}, "missing flags: --limit=N"},
	} {
		if _, err := size(t, c.args...); err == nil || err.Error() != c.want {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
