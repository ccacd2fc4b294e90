// Command tally counts tests. It reads the events of `go test -json`, prints what
// a person wants to see of them (a line per package, the output of what failed,
// each skip with its reason), and adds the counts to a file, so that the sum of
// several runs can be told at the end:
//
//	go test -json ./... | tally -add counts.txt
//	tally -sum counts.txt
//
// With -strict a skip fails the run, unless its reason begins with "not
// applicable: ": a test that could not run proves nothing.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	add := flag.String("add", "", "read events from standard input and add their counts to `file`")
	sum := flag.String("sum", "", "print the sum of the counts in `file`")
	strict := flag.Bool("strict", false, "fail on a skip whose reason does not begin with \"not applicable: \"")
	flag.Parse()
	if err := run(*add, *sum, *strict, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

func run(add, sum string, strict bool, in io.Reader, out io.Writer) error {
	switch {
	case add != "":
		report, err := read(in, out)
		if err != nil {
			return err
		}
		if err := appendCounts(add, report.counts); err != nil {
			return err
		}
		return report.verdict(strict)
	case sum != "":
		total, err := sumCounts(sum)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, total)
		if total.failed > 0 {
			return fmt.Errorf("%d tests failed", total.failed)
		}
		return nil
	}
	return errors.New("one of -add and -sum is needed")
}

// counts are numbers of tests; a subtest is a test, and so is the test around it.
type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

func appendCounts(file string, c counts) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, c)
	return errors.Join(err, f.Close())
}

func sumCounts(file string) (counts, error) {
	var total counts
	f, err := os.Open(file)
	if err != nil {
		return total, err
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		var c counts
		if _, err := fmt.Sscanf(scanner.Text(), "%d passed, %d failed, %d skipped", &c.passed, &c.failed, &c.skipped); err != nil {
			return total, fmt.Errorf("%s: %q: %w", file, scanner.Text(), err)
		}
		total.passed += c.passed
		total.failed += c.failed
		total.skipped += c.skipped
	}
	return total, scanner.Err()
}
