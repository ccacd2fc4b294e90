package intent

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Verdict is a Class with the place in the text that decided it.
type Verdict struct {
	Intent Intent
	DML    bool // as Class.DML
	// Reason is a phrase in English without a full stop. It may hold a short
	// piece of the text (a keyword or a name, never a string's content).
	Reason string
	// Offset is the index of the deciding byte, from 0. For a read it is the
	// start of the first statement that is not trivial.
	Offset int
	// Line and Column say the same for people: both from 1, the column in
	// characters. A line ends at a line feed.
	Line, Column int
}

// Explain is Classify with the reason. It is not cached and allocates: it is
// meant for people. It is safe for concurrent use.
func (c *Classifier) Explain(sql string) Verdict {
	v := examine(sql, &c.current().functions)
	line, column := Position(sql, v.start)
	return Verdict{
		Intent: v.Intent, DML: v.DML, Reason: v.sentence(sql),
		Offset: v.start, Line: line, Column: column,
	}
}

// sentence fills the reason in.
func (v verdict) sentence(sql string) string {
	format := reasons[v.why]
	if !strings.Contains(format, "%s") {
		return format
	}
	text := sql[v.start:v.end]
	switch v.why {
	case notARead, dataChange, intoTable, rowLock:
		text = strings.ToUpper(text)
	case unknownCharacter:
		_, size := utf8.DecodeRuneInString(sql[v.start:])
		text = fmt.Sprintf("%q", sql[v.start:v.start+size])
	}
	if len(text) > maxName {
		text = clip(text) + "..."
	}
	return fmt.Sprintf(format, text)
}

// Position returns the line and the column, both from 1, of the byte at offset:
// lines end at line feeds, and columns count characters. An offset outside the
// text is moved to its nearest end.
func Position(sql string, offset int) (line, column int) {
	before := sql[:max(0, min(offset, len(sql)))]
	lineStart := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[lineStart:]) + 1
}
