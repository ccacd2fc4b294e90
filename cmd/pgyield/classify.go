package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/pgyield/pgyield/intent"
)

// classifyCmd is `pgyield classify`: what the pool would make of an application's
// statements, before it is adopted.
type classifyCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Files of SQL, statements ending with a semicolon; - is standard input, which is also read when there is neither a file nor --dsn."`

	DSN  string `name:"dsn" placeholder:"URL" help:"Classify what this database has run, by pg_stat_statements, and learn which of its functions are volatile, as the pool does."`
	JSON bool   `name:"json" help:"Write one JSON object a statement, and nothing else."`

	WritingFunction []string `name:"writing-function" placeholder:"NAME" sep:"none" help:"A function that writes; may be repeated. As Options.WritingFunctions."`
	ReadingFunction []string `name:"reading-function" placeholder:"NAME" sep:"none" help:"A function that only reads; may be repeated. As Options.ReadingFunctions."`
}

// classified is one statement with its verdict, as --json writes it.
type classified struct {
	Source string `json:"source"` // a file, "-" or "pg_stat_statements"
	Intent string `json:"intent"` // "read", "trivial" or "write"
	DML    bool   `json:"dml"`
	Reason string `json:"reason"`
	// Where the deciding token is in the source: bytes from 0; line and column
	// from 1. Of pg_stat_statements, within the statement.
	Offset int    `json:"offset"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	SQL    string `json:"sql"`
	// Of pg_stat_statements only.
	QueryID int64 `json:"query_id,omitempty"`
	Calls   int64 `json:"calls,omitempty"`
}

// AfterApply is called by kong.
func (c *classifyCmd) AfterApply() error {
	_, err := c.classifier()
	return err
}

func (c *classifyCmd) classifier() (*intent.Classifier, error) {
	return intent.New(intent.Options{WritingFunctions: c.WritingFunction, ReadingFunctions: c.ReadingFunction})
}

// Run is called by kong.
func (c *classifyCmd) Run(ctx context.Context, k *kong.Context) error {
	classifier, err := c.classifier()
	if err != nil {
		return err
	}
	report := newClassifyReport(k.Stdout, k.Stderr, c.JSON)
	if err := c.classifyAll(ctx, classifier, report); err != nil {
		// What was classified is told whole, also when a later source fails.
		return errors.Join(err, report.out.Flush())
	}
	return report.end()
}

func (c *classifyCmd) classifyAll(ctx context.Context, classifier *intent.Classifier, report *classifyReport) error {
	// The database first: what it teaches holds for the files too.
	if c.DSN != "" {
		if err := classifyDatabase(ctx, c.DSN, classifier, report); err != nil {
			return err
		}
	}
	files := c.Files
	if len(files) == 0 && c.DSN == "" {
		files = []string{"-"}
	}
	for _, file := range files {
		if err := classifyFile(ctx, file, classifier, report); err != nil {
			return err
		}
	}
	return nil
}

// classifyFile reads a file whole, since a statement may be as long as it.
func classifyFile(ctx context.Context, file string, classifier *intent.Classifier, report *classifyReport) error {
	text, err := readAll(ctx, file)
	if err != nil {
		return fmt.Errorf("read the statements: %w", err)
	}
	return classifyScript(file, string(text), classifier, report)
}

// readAll reads a file, or standard input, and leaves off when ctx ends: a pipe may be silent
// for ever. What then still reads ends with the program.
func readAll(ctx context.Context, file string) ([]byte, error) {
	type content struct {
		text []byte
		err  error
	}
	whole := make(chan content, 1)
	go func() {
		var c content
		if file == "-" {
			c.text, c.err = io.ReadAll(os.Stdin)
		} else {
			c.text, c.err = os.ReadFile(file)
		}
		whole <- c
	}()
	select {
	case c := <-whole:
		return c.text, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func classifyScript(source, script string, classifier *intent.Classifier, report *classifyReport) error {
	// Positions only grow, so lines are counted on from the last one: a file of many
	// statements must not be counted from its start for each.
	at := position{line: 1, column: 1}
	for offset, sql := range intent.Split(script) {
		v := classifier.Explain(sql)
		at = at.moveTo(script, offset+v.Offset)
		if err := report.add(classified{
			Source: source, Intent: v.Intent.String(), DML: v.DML, Reason: v.Reason,
			Offset: at.offset, Line: at.line, Column: at.column, SQL: sql,
		}); err != nil {
			return err
		}
	}
	return nil
}

// position is a place in a text: a byte from 0, a line and a column from 1.
type position struct{ offset, line, column int }

// moveTo goes on to a later byte.
func (p position) moveTo(text string, offset int) position {
	lines, column := intent.Position(text[p.offset:], offset-p.offset)
	if lines == 1 {
		return position{offset, p.line, p.column + column - 1}
	}
	return position{offset, p.line + lines - 1, column}
}

// classifyReport writes statements as they come, and counts them.
type classifyReport struct {
	out    *bufio.Writer
	notes  io.Writer
	json   *json.Encoder // nil: for people
	counts map[string]int
	dml    int
	hidden int // statements whose text the role may not see
}

func newClassifyReport(out, notes io.Writer, asJSON bool) *classifyReport {
	r := &classifyReport{out: bufio.NewWriter(out), notes: notes, counts: map[string]int{}}
	if asJSON {
		r.json = json.NewEncoder(r.out)
		r.json.SetEscapeHTML(false)
	}
	return r
}

func (r *classifyReport) add(s classified) error {
	r.counts[s.Intent]++
	if s.DML {
		r.dml++
	}
	if r.json != nil {
		return r.json.Encode(s)
	}
	place := fmt.Sprintf("%s:%d:%d", s.Source, s.Line, s.Column)
	if s.Source == statStatements {
		place = fmt.Sprintf("query %d, %d calls, %d:%d", s.QueryID, s.Calls, s.Line, s.Column)
	}
	class := s.Intent
	if s.DML {
		class += " (DML)"
	}
	_, err := fmt.Fprintf(r.out, "%s: %s: %s\n\t%s\n", place, class, s.Reason, oneLine(s.SQL))
	return err
}

// end writes the sums and what is still in the buffer.
func (r *classifyReport) end() error {
	if r.json == nil {
		total := r.counts["read"] + r.counts["trivial"] + r.counts["write"]
		fmt.Fprintf(r.out, "%d statements: %d read, %d trivial, %d write (%d of them DML)\n",
			total, r.counts["read"], r.counts["trivial"], r.counts["write"], r.dml)
	}
	if err := r.out.Flush(); err != nil {
		return err
	}
	if r.hidden > 0 {
		fmt.Fprintf(r.notes, "pgyield: %d statements of other roles are hidden from this one: grant it pg_read_all_stats\n", r.hidden)
	}
	return nil
}

// snippet is how many bytes of a statement a person is shown.
const snippet = 100

// oneLine shortens a statement to its beginning, with white space folded, and
// without what a terminal might obey.
func oneLine(sql string) string {
	text := strings.ToValidUTF8(sql[:min(len(sql), 8*snippet)], "")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= snippet {
		return text
	}
	return strings.ToValidUTF8(text[:snippet], "") + " ..."
}
