package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTableShape(t *testing.T) {
	var out bytes.Buffer
	res := sample()
	if err := writeTable(&out, res); err != nil {
		t.Fatal(err)
	}
	want := `            write p50      p95      p99  writes/s  reads/s  refused  read limit, one after the other
  no reads    2.00 ms  2.00 ms  2.00 ms       100        -        -                                -
   pgxpool     200 ms   200 ms   200 ms        96      4.0        0                                -
   pgyield    4.00 ms  4.00 ms  4.00 ms       100      4.0        0                   16 > 8 > 4 > 5

Write latency counts from when the write was due, the wait for a connection included.
100 writes/s were due, those that ended since the reads joined are counted; 16 reads at once; a pool of 20.
Writes were alone for 0s before the reads joined; 1s after that are left out, save of the limit's path.
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}

	out.Reset()
	res.Phases[1].Writes[450].Done = false
	res.Phases[2].Errors, res.Phases[2].FirstErr = 3, errors.New("boom")
	if err := writeTable(&out, res); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"200 ms*", "* pgxpool: 1 writes were still waiting", "pgyield: 3 statements failed, the first: boom"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in\n%s", part, out.String())
		}
	}
}

// A browser without network must show everything: no address is fetched.
func TestReportIsSelfContained(t *testing.T) {
	var out bytes.Buffer
	if err := writeReport(&out, sample()); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, bad := range []string{"<script src", "<link", "<img", "@import", "url(", "NaN", "ZgotmplZ"} {
		if strings.Contains(page, bad) {
			t.Errorf("the report has %q", bad)
		}
	}
	for _, address := range regexp.MustCompile(`https?://[^"' <]+`).FindAllString(page, -1) {
		if !strings.HasPrefix(address, "http://www.w3.org/") { // names of XML, never fetched
			t.Errorf("the report names %s", address)
		}
	}
	charts := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(charts) != 5 {
		t.Fatalf("%d charts", len(charts))
	}
	for _, label := range []string{"1 ms", "10 ms", "100 ms"} { // of a logarithmic scale
		if !strings.Contains(charts[0], ">"+label+"<") {
			t.Errorf("the first chart has no label %s", label)
		}
	}
	for i, svg := range charts {
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("chart %d: %v", i, err)
			}
		}
		if n := strings.Count(svg, "<path"); n < 3 {
			t.Errorf("chart %d has %d paths", i, n)
		}
	}
}

// Each move of the limit stands below its chart, and below no other.
func TestReportListsDecisions(t *testing.T) {
	var out bytes.Buffer
	if err := writeReport(&out, sample()); err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?s)<section>\s*<h2>([^<]*)</h2>.*?</section>`).FindAllStringSubmatch(out.String(), -1)
	listed := 0
	for _, section := range lists {
		if !strings.Contains(section[0], "<details>") {
			continue
		}
		listed++
		for _, row := range []string{
			"<td>11.3</td><td>16</td><td>8</td><td>own_writes 3ms over 2ms &amp; &lt;more&gt;</td>",
			"<td>12.3</td><td>8</td><td>4</td><td>wal_sync 1ms over 0.5ms</td>",
		} {
			if section[1] != "The read limit" || !strings.Contains(section[0], row) {
				t.Errorf("%s: no %s", section[1], row)
			}
		}
	}
	if listed != 1 {
		t.Errorf("decisions are listed below %d charts", listed)
	}
}

var jsonData = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

func TestReportHasTheData(t *testing.T) {
	var out bytes.Buffer
	if err := writeReport(&out, sample()); err != nil {
		t.Fatal(err)
	}
	found := jsonData.FindStringSubmatch(out.String())
	if found == nil {
		t.Fatal("no data")
	}
	var charts []chartData
	if err := json.Unmarshal([]byte(found[1]), &charts); err != nil {
		t.Fatal(err)
	}
	byTitle := map[string]chartData{}
	for _, c := range charts {
		byTitle[c.Title] = c
	}
	at := func(title, line string, second float64) float64 {
		t.Helper()
		c := byTitle[title]
		for i, s := range c.Second {
			if s == second && c.Lines[line] != nil && c.Lines[line][i] != nil {
				return *c.Lines[line][i]
			}
		}
		return math.NaN()
	}
	for _, point := range []struct {
		title, line string
		second      float64
		want        float64
	}{
		{"Write latency, p95", phaseIdle, 2, 2},
		{"Write latency, p95", phasePlain, 8, 200},
		{"Write latency, p95", phaseYield, 13, 4},
		{"Write latency, p95", phaseIdle, 8, math.NaN()}, // another phase's time
		{"The read limit", "limit", 11.5, 8},
		{"The read limit", "waiting", 11.5, 8},
		{"Reads per second", phasePlain, 9, 4},
		{"Pressure", "write p90", 2, 1},
		{"Pressure", "write p90", 8, 100},
		{"Pressure", "WAL sync", 13, 2},
		{"Pressure", "pgyield: pressing", 11, 1},
		{"Pressure", "pgyield: pressing", 14, math.NaN()},
		{"Writes in flight", phaseYield, 13, 2},
	} {
		got := at(point.title, point.line, point.second)
		if math.Abs(got-point.want) > 0.01*point.want || math.IsNaN(got) != math.IsNaN(point.want) {
			t.Errorf("%s, %s at %v s: %v, want %v", point.title, point.line, point.second, got, point.want)
		}
	}
}

func TestReportFileReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	for range 2 {
		if err := reportAt(path).write(func(w io.Writer) error { return writeReport(w, sample()) }); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	missing := filepath.Join(t.TempDir(), "none", "report.html")
	if err := reportAt(missing).write(func(w io.Writer) error { return writeReport(w, sample()) }); err == nil || !strings.HasPrefix(err.Error(), "pgyield: report: ") {
		t.Errorf("a folder that is missing: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() < 10_000 {
		t.Errorf("%v, %v", info, err)
	}
}
