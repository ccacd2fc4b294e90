package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

const good = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"quiet\n"}
{"Action":"run","Package":"p","Test":"TestA/sub"}
{"Action":"pass","Package":"p","Test":"TestA/sub"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: not applicable: no root\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":1.25}
{"Action":"skip","Package":"empty"}
`

// hangs is a package whose test times out in a subtest, beside one that ended.
var hangs = func() string {
	var b strings.Builder
	b.WriteString(`{"Action":"run","Package":"q","Test":"TestOther"}
{"Action":"pass","Package":"q","Test":"TestOther"}
{"Action":"run","Package":"q","Test":"TestHang"}
{"Action":"output","Package":"q","Test":"TestHang","Output":"=== RUN   TestHang\n"}
{"Action":"run","Package":"q","Test":"TestHang/sub"}
`)
	say := func(format string, args ...any) {
		line, _ := json.Marshal(event{Action: "output", Package: "q", Test: "TestHang/sub", Output: fmt.Sprintf(format, args...)})
		b.Write(append(line, '\n'))
	}
	for i := range 60 {
		say("log %d\n", i)
	}
	say("panic: test timed out after 10m0s\n")
	say("\trunning tests:\n")
	say("\t\tTestHang (10m0s)\n")
	for i := range 300 {
		say("goroutine %d [select]:\n", i+1)
	}
	return b.String()
}()

func TestTally(t *testing.T) {
	for _, test := range []struct {
		name, events string
		strict       bool
		fails        string // in the error; "" for none
		shows, hides string
		counts       string
	}{
		{"good", good, true, "", "ok    p 1.2s", "quiet", "2 passed, 0 failed, 1 skipped"},
		{"reason of a skip", good, false, "", "skip  p TestB: not applicable: no root", "empty", "2 passed, 0 failed, 1 skipped"},
		{
			"failed test", good + `{"Action":"output","Package":"q","Test":"TestC","Output":"why\n"}
{"Action":"fail","Package":"q","Test":"TestC"}
{"Action":"fail","Package":"q"}`, false, "1 tests failed", "why", "quiet", "2 passed, 1 failed, 1 skipped",
		},
		{
			"failed package", good + `{"Action":"output","Package":"q","Output":"panic: x\n"}
{"Action":"fail","Package":"q"}`, false, "1 packages failed", "panic: x", "quiet", "2 passed, 0 failed, 1 skipped",
		},
		{
			"build", good + `{"Action":"build-output","ImportPath":"q","Output":"syntax error\n"}
{"Action":"build-fail","ImportPath":"q"}
{"Action":"fail","Package":"q"}`, false, "1 packages failed", "syntax error", "quiet", "2 passed, 0 failed, 1 skipped",
		},
		{
			"something missing", good + `{"Action":"output","Package":"q","Test":"TestD","Output":"    d_test.go:1: no Docker\n"}
{"Action":"skip","Package":"q","Test":"TestD"}`, true, "TestD", "no Docker", "quiet", "2 passed, 0 failed, 2 skipped",
		},
		{
			"something missing, not strict", good + `{"Action":"skip","Package":"q","Test":"TestD"}`, false, "",
			"TestD: no reason", "quiet", "2 passed, 0 failed, 2 skipped",
		},
		{
			"timeout", good + hangs + `{"Action":"fail","Package":"q","Elapsed":600.1}`, false, "2 tests failed",
			"FAIL  q TestHang: did not end\n", "goroutine 198 ", "3 passed, 2 failed, 1 skipped",
		},
		{
			"timeout, what stood there", hangs + `{"Action":"fail","Package":"q","Elapsed":600.1}`, false, "2 tests failed",
			"FAIL  q TestHang/sub: did not end\n... 10 lines before\nlog 10\n", "log 9\n", "1 passed, 2 failed, 0 skipped",
		},
		{
			"timeout, the dump", hangs + `{"Action":"fail","Package":"q","Elapsed":600.1}`, false, "2 tests failed",
			"log 59\npanic: test timed out after 10m0s\n\trunning tests:\n\t\tTestHang (10m0s)\n", "TestOther: did not end", "1 passed, 2 failed, 0 skipped",
		},
		{"killed", hangs, false, "2 tests failed", "\tTestHang (10m0s)\n", "goroutine 300 ", "1 passed, 2 failed, 0 skipped"},
		{"no test", `{"Action":"skip","Package":"empty"}`, false, "no test passed", "", "empty", "0 passed, 0 failed, 0 skipped"},
		{"no events", "go: no such module", false, "no test passed", "go: no such module", "ok", "0 passed, 0 failed, 0 skipped"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "counts")
			var out strings.Builder
			err := run(file, "", test.strict, strings.NewReader(test.events), &out)
			if (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("error %v, want %q", err, test.fails)
			}
			if !strings.Contains(out.String(), test.shows) || strings.Contains(out.String(), test.hides) {
				t.Errorf("printed %q, want %q in it and not %q", out.String(), test.shows, test.hides)
			}
			if total, err := sumCounts(file); err != nil || total.String() != test.counts {
				t.Errorf("counted %v, %v, want %s", total, err, test.counts)
			}
		})
	}
}

func TestSum(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	for _, c := range []counts{{1, 0, 2}, {10, 0, 0}} {
		if err := appendCounts(file, c); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := run("", file, false, nil, &out); err != nil || out.String() != "11 passed, 0 failed, 2 skipped\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := appendCounts(file, counts{0, 1, 0}); err != nil {
		t.Fatal(err)
	}
	if err := run("", file, false, nil, &out); err == nil {
		t.Error("a sum with a failure is good")
	}
	for _, bad := range []string{filepath.Join(t.TempDir(), "none"), "main_test.go", ""} {
		if err := run("", bad, false, nil, &out); err == nil {
			t.Errorf("%q was summed", bad)
		}
	}
}
