package intent

import "iter"

// The words that Split knows besides.
const (
	kwEnd    = 'e'<<16 | 'n'<<8 | 'd'
	kwCase   = 'c'<<24 | 'a'<<16 | 's'<<8 | 'e'
	kwBegin  = 'b'<<32 | 'e'<<24 | 'g'<<16 | 'i'<<8 | 'n'
	kwAtomic = 'a'<<40 | 't'<<32 | 'o'<<24 | 'm'<<16 | 'i'<<8 | 'c'
	kwCreate = 'c'<<40 | 'r'<<32 | 'e'<<24 | 'a'<<16 | 't'<<8 | 'e'
)

// Split cuts a script into its statements at the semicolons that are outside
// parentheses, literals, comments and the bodies of SQL functions (BEGIN ATOMIC
// ... END). It yields the byte offset of each statement and its text from its
// first token to its semicolon, without it; empty statements are left out. Where
// the text cannot be cut into tokens it goes on behind the offending bytes, and
// behind a string, name or comment that does not end there is nothing more.
//
// It takes the script for UTF-8, in which no byte of a character is a backslash.
// It knows SQL, not psql: a backslash command is part of the statement that it
// stands in, and so are rows that follow COPY FROM STDIN.
func Split(script string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		s := splitter{lexer: lexer{sql: script, utf8: true}}
		for {
			from, to, more := s.statement()
			if to > from && !yield(from, script[from:to]) || !more {
				return
			}
		}
	}
}

type splitter struct {
	lexer
}

// statement finds the bounds of the next statement, empty ones included; more is
// false at the end of the script.
func (s *splitter) statement() (from, to int, more bool) {
	from = s.skipSpace()
	var (
		parens, bodies int
		first          = true
		creates        bool
		prev           uint64
	)
	for {
		t := s.next()
		key := uint64(0)
		switch t {
		case word:
			key = s.key
			switch {
			case first:
				creates = key == kwCreate
			case !creates:
			case key == kwAtomic && prev == kwBegin, key == kwCase && bodies > 0:
				bodies++
			case key == kwEnd && bodies > 0:
				bodies--
			}
		case open:
			parens++
		case closing:
			parens = max(parens-1, 0)
		case semicolon:
			if parens == 0 && bodies == 0 {
				return from, s.start, true
			}
		case end:
			return from, s.pos, false
		case bad:
			if !s.resume() {
				s.pos = len(s.sql)
				return from, s.pos, false
			}
		}
		first, prev = false, key
	}
}

// skipSpace moves to the next statement's first byte that is neither white space
// nor comment.
func (s *splitter) skipSpace() int {
	for s.pos < len(s.sql) {
		switch c := s.sql[s.pos:]; {
		case classes[c[0]] == space:
			s.pos++
		case len(c) > 1 && c[:2] == "--":
			s.pos = lineEnd(s.sql, s.pos)
		case len(c) > 1 && c[:2] == "/*":
			i := s.comment(s.pos)
			if i < 0 {
				return s.pos
			}
			s.pos = i
		default:
			return s.pos
		}
	}
	return s.pos
}

// resume moves behind a bad token; it is false when that is the rest of the text.
func (s *splitter) resume() bool {
	switch s.why {
	case unfinishedComment, unfinishedString, unfinishedName:
		return false
	case backslashQuote, emptyName, unicodeName:
		s.pos += 2 // \' as the standard has it, "" and U&
	default:
		s.pos++
	}
	return true
}
