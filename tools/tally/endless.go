package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// begun holds the tests that run, in the order of their starts. When a package ends
// before its tests do, by the timeout say, no event names them any more.
type begun []event

func (b *begun) add(e event) { *b = append(*b, e) }

// end takes a test off or, at the end of a package, all of its tests: it returns those
// that never ended.
func (b *begun) end(e event) (never []string) {
	*b = slices.DeleteFunc(*b, func(o event) bool {
		switch {
		case o.Package != e.Package:
			return false
		case e.Test == "":
			never = append(never, o.Test)
			return true
		}
		return o.Test == e.Test
	})
	return never
}

// What is printed of a test that did not end: its own last lines, and the first ones of
// the dump of all goroutines, which begins with who waits for whom. Its end is mostly the
// same goroutine hundreds of times.
const (
	ownLines  = 50
	dumpLines = 200
)

// endless takes a test that was begun and did not end: it failed.
func (r *report) endless(pack, test, text string, out io.Writer) {
	r.counts.failed++
	fmt.Fprintf(out, "FAIL  %s %s: did not end\n", pack, test)
	lines := slices.Collect(strings.Lines(text))
	at := slices.IndexFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "SIGQUIT: ")
	})
	if at < 0 {
		at = len(lines)
	}
	own, dump := lines[:at], lines[at:]
	if n := len(own) - ownLines; n > 0 {
		fmt.Fprintf(out, "... %d lines before\n", n)
		own = own[n:]
	}
	fmt.Fprint(out, strings.Join(own, ""))
	fmt.Fprint(out, strings.Join(dump[:min(len(dump), dumpLines)], ""))
	if n := len(dump) - dumpLines; n > 0 {
		fmt.Fprintf(out, "... %d lines more\n", n)
	}
}
