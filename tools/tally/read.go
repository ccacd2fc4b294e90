package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is one of `go test -json`; ImportPath stands in those of a build.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// report is what was read.
type report struct {
	counts   counts
	packages int      // that failed, or did not build
	excuses  []string // tests skipped for a reason that is no good one
}

// read reads events to the end and prints on the way. A line that is no event,
// which the go command prints when it cannot start, is passed on.
func read(in io.Reader, out io.Writer) (report, error) {
	var r report
	printed := map[[2]string]*strings.Builder{}
	open := begun{}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var e event
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			fmt.Fprintln(out, scanner.Text())
			continue
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "run":
			open.add(e)
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "output":
			if printed[key] == nil {
				printed[key] = &strings.Builder{}
			}
			printed[key].WriteString(e.Output)
		case "pass", "fail", "skip":
			for _, test := range open.end(e) {
				r.endless(e.Package, test, take(printed, [2]string{e.Package, test}), out)
			}
			r.end(e, take(printed, key), out)
		}
	}
	// The go command was killed: nobody ended the packages either.
	for _, e := range open {
		r.endless(e.Package, e.Test, take(printed, [2]string{e.Package, e.Test}), out)
	}
	return r, scanner.Err()
}

// take is what was printed under a key, once.
func take(printed map[[2]string]*strings.Builder, key [2]string) string {
	if printed[key] == nil {
		return ""
	}
	defer delete(printed, key)
	return printed[key].String()
}

// end takes the end of a test or, where no test is named, of a package.
func (r *report) end(e event, text string, out io.Writer) {
	switch {
	case e.Test == "":
		r.endPackage(e, text, out)
	case e.Action == "pass":
		r.counts.passed++
	case e.Action == "fail":
		r.counts.failed++
		fmt.Fprint(out, text)
	default:
		r.counts.skipped++
		reason := skipReason(text)
		fmt.Fprintf(out, "skip  %s %s: %s\n", e.Package, e.Test, reason)
		if !strings.HasPrefix(reason, "not applicable: ") {
			r.excuses = append(r.excuses, e.Test)
		}
	}
}

func (r *report) endPackage(e event, text string, out io.Writer) {
	switch e.Action {
	case "pass":
		fmt.Fprintf(out, "ok    %s %.1fs\n", e.Package, e.Elapsed)
	case "fail":
		r.packages++
		fmt.Fprint(out, text) // a panic outside the tests, say
		fmt.Fprintf(out, "FAIL  %s %.1fs\n", e.Package, e.Elapsed)
	}
	// A package is skipped when it has no tests, which nobody needs to be told.
}

var fileLine = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// skipReason is the last line that a skipped test logged, without its place.
func skipReason(text string) string {
	reason := "no reason"
	for line := range strings.Lines(text) {
		if place := fileLine.FindString(line); place != "" {
			reason = strings.TrimSpace(line[len(place):])
		}
	}
	return reason
}

// verdict is nil when everything passed. A package may fail without a failed test,
// when it does not build or its main exits badly.
func (r *report) verdict(strict bool) error {
	switch {
	case r.counts.failed > 0:
		return fmt.Errorf("%d tests failed", r.counts.failed)
	case r.packages > 0:
		return fmt.Errorf("%d packages failed", r.packages)
	case r.counts.passed == 0:
		return errors.New("no test passed")
	case strict && len(r.excuses) > 0:
		return fmt.Errorf("skipped, but nothing may be missing here: %s", strings.Join(r.excuses, ", "))
	}
	return nil
}
