package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const printed = `goos: linux
pkg: example.com/x
BenchmarkGate/gate=plain-2   	 100	        20.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkGate/gate=ours-2    	 100	        50.0 ns/op	      80 B/op	       1 allocs/op
BenchmarkMany/gate=ours/callers=10-2   	 100	        10 ns/op
BenchmarkMany/gate=ours/callers=100-2  	 100	        15 ns/op
BenchmarkRead-2              	 100	         0 ns/op	      3000 plain-ns	         1.2 ours/plain
PASS
`

func TestParse(t *testing.T) {
	results, err := parse(strings.NewReader(printed))
	if err != nil || len(results) != 5 {
		t.Fatal(results, err)
	}
	if r := results[1]; r.name != "Gate/gate=ours" || r.values["ns/op"] != 50 || r.values["allocs/op"] != 1 {
		t.Error(r)
	}
	if r := results[4]; r.name != "Read" || r.values["ours/plain"] != 1.2 {
		t.Error(r)
	}
	if _, err := parse(strings.NewReader("BenchmarkGate 1 many ns/op")); err == nil {
		t.Error("a figure that is none was taken for one")
	}
}

// The ratio is that within a round: a machine that is twice as slow in one round must
// not show in it.
func TestRatios(t *testing.T) {
	var sum table
	for _, round := range [][2]float64{{20, 50}, {40, 100}, {10, 35}} {
		sum.add([]result{
			{"Gate/gate=plain", map[string]float64{took: round[0], "allocs/op": 0}},
			{"Gate/gate=ours", map[string]float64{took: round[1], "allocs/op": 1}},
			{"Many/gate=ours/callers=10", map[string]float64{took: 3}},
		})
	}
	var out strings.Builder
	if err := sum.print(&out); err != nil {
		t.Fatal(err)
	}
	want := `| benchmark |  | ns/op | ratio | ratio, least to most | allocs/op |
|---|---|---|---|---|---|
| Gate | gate=plain | 20 | 1.00 | 1.00 to 1.00 | 0 |
|  | gate=ours | 50 | 2.50 | 2.50 to 3.50 | 1 |
| Many/gate=ours | callers=10 | 3 | 1.00 | 1.00 to 1.00 |  |
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median(%v) is %v, want %v", test.values, got, test.want)
		}
	}
}

// What the command prints goes to the file untouched, round after round, behind what
// is there already; a command that fails has its output kept, and fails the run.
func TestRunKeepsRaw(t *testing.T) {
	dir := t.TempDir()
	input, raw := filepath.Join(dir, "printed"), filepath.Join(dir, "raw")
	for file, text := range map[string]string{input: printed, raw: "before\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run(2, raw, []string{"cat", input}, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "| Gate | gate=plain | 20 |") {
		t.Error(out.String())
	}
	if err := run(3, raw, []string{"sh", "-c", "echo failed; exit 1"}, &out); err == nil {
		t.Error("a command that fails did not fail the run")
	}
	if got, err := os.ReadFile(raw); err != nil || string(got) != "before\n"+printed+printed+"failed\n" {
		t.Errorf("%v; the file has\n%s", err, got)
	}
}
