package intent

import (
	"math/bits"
	"strings"
)

// The words that the rules know, packed as lexer.key packs them.
const (
	kwNo      = 'n'<<8 | 'o'
	kwFor     = 'f'<<16 | 'o'<<8 | 'r'
	kwKey     = 'k'<<16 | 'e'<<8 | 'y'
	kwInto    = 'i'<<24 | 'n'<<16 | 't'<<8 | 'o'
	kwFrom    = 'f'<<24 | 'r'<<16 | 'o'<<8 | 'm'
	kwWith    = 'w'<<24 | 'i'<<16 | 't'<<8 | 'h'
	kwShow    = 's'<<24 | 'h'<<16 | 'o'<<8 | 'w'
	kwCopy    = 'c'<<24 | 'o'<<16 | 'p'<<8 | 'y'
	kwTable   = 't'<<32 | 'a'<<24 | 'b'<<16 | 'l'<<8 | 'e'
	kwShare   = 's'<<32 | 'h'<<24 | 'a'<<16 | 'r'<<8 | 'e'
	kwMerge   = 'm'<<32 | 'e'<<24 | 'r'<<16 | 'g'<<8 | 'e'
	kwInsert  = 'i'<<40 | 'n'<<32 | 's'<<24 | 'e'<<16 | 'r'<<8 | 't'
	kwUpdate  = 'u'<<40 | 'p'<<32 | 'd'<<24 | 'a'<<16 | 't'<<8 | 'e'
	kwDelete  = 'd'<<40 | 'e'<<32 | 'l'<<24 | 'e'<<16 | 't'<<8 | 'e'
	kwSelect  = 's'<<40 | 'e'<<32 | 'l'<<24 | 'e'<<16 | 'c'<<8 | 't'
	kwValues  = 'v'<<40 | 'a'<<32 | 'l'<<24 | 'u'<<16 | 'e'<<8 | 's'
	kwExplain = 'e'<<48 | 'x'<<40 | 'p'<<32 | 'l'<<24 | 'a'<<16 | 'i'<<8 | 'n'
	kwAnalyze = 'a'<<48 | 'n'<<40 | 'a'<<32 | 'l'<<24 | 'y'<<16 | 'z'<<8 | 'e'
	kwAnalyse = 'a'<<48 | 'n'<<40 | 'a'<<32 | 'l'<<24 | 'y'<<16 | 's'<<8 | 'e'
	kwVerbose = 'v'<<48 | 'e'<<40 | 'r'<<32 | 'b'<<24 | 'o'<<16 | 's'<<8 | 'e'
)

// mattering holds, by length, the initials of the words that mean something
// inside a query: a quick look that spares most words the slow one.
var mattering = func() (table [8]uint32) {
	for _, key := range []uint64{
		kwNo, kwFor, kwKey, kwInto, kwFrom, kwWith, kwTable, kwShare, kwMerge,
		kwInsert, kwUpdate, kwDelete, kwSelect, kwValues,
	} {
		n := (bits.Len64(key) + 7) / 8
		table[n] |= 1 << (key >> (8 * (n - 1)) & 31)
	}
	return table
}()

// matters is true of those words and of a few others.
func (l *lexer) matters() bool {
	n := l.pos - l.start
	return n < len(mattering) && mattering[n]>>(l.sql[l.start]&31)&1 != 0
}

func isDML(key uint64) bool {
	return key == kwInsert || key == kwUpdate || key == kwDelete || key == kwMerge
}

// verdict is a class with what decided it: the bytes from start to end.
type verdict struct {
	Class
	why        reason
	start, end int
}

// scan carries a lexer through the statements of one text.
type scan struct {
	lexer
	functions *functions
	last      token // that ended the current statement
}

// examine classifies a text. Every statement has to be a read; the first that is
// not decides.
func examine(sql string, f *functions) verdict {
	s := scan{lexer: lexer{sql: sql}, functions: f}
	all := verdict{why: emptyText, end: len(sql)}
	for {
		from := s.pos
		t := s.next()
		if s.gap {
			if t != bad {
				s.start = from + len(sql[from:]) - len(strings.TrimLeft(sql[from:], whiteSpace))
			}
			return s.failed(t, noWord)
		}
		switch t {
		case semicolon:
			continue
		case end:
			// Inside strings and comments a NUL goes unseen by the lexer, and the
			// protocol would end the text there.
			if all.Intent != Write {
				if i := strings.IndexByte(sql, 0); i >= 0 {
					return verdict{why: nulByte, start: i, end: i + 1}
				}
			}
			return all
		}
		v := s.statement(t)
		if v.Intent == Write {
			return v
		}
		if all.Intent == Write || v.Intent == Read && all.Intent == Trivial {
			all = v
		}
	}
}

// statement classifies the statement that starts with t, and leaves the lexer
// behind it.
func (s *scan) statement(t token) verdict {
	depth := 0
	for t == open && !s.gap {
		depth++
		t = s.next()
	}
	if t != word || s.gap {
		return s.failed(t, noWord)
	}
	switch s.key {
	case kwSelect, kwValues:
		return s.query(depth, Trivial)
	case kwTable, kwWith:
		return s.query(depth, Read)
	case kwShow:
		if depth == 0 {
			return s.show()
		}
	case kwExplain:
		if depth == 0 {
			return s.explain()
		}
	case kwInsert, kwUpdate, kwDelete, kwMerge:
		return s.write(dataChange, true)
	case kwCopy:
		return s.copy()
	}
	return s.write(notARead, false)
}

// write makes a verdict of the current token.
func (s *scan) write(why reason, dml bool) verdict {
	return verdict{Class: Class{DML: dml}, why: why, start: s.start, end: s.pos}
}

// failed is the verdict on a token that is out of place: bad ones have a reason
// of their own.
func (s *scan) failed(t token, why reason) verdict {
	if t == bad {
		why = s.why
	}
	return s.write(why, false)
}

// show reads on to the end of SHOW, which takes no more than a name.
func (s *scan) show() verdict {
	v := verdict{Class: Class{Intent: Trivial}, why: showsSetting, start: s.start, end: s.pos}
	for {
		switch t := s.next(); t {
		case end, semicolon:
			s.last = t
			return v
		case word, quoted, dot:
			if !s.gap {
				continue
			}
			fallthrough
		default:
			return s.failed(t, notUnderstood)
		}
	}
}

// copy tells COPY ... FROM from COPY ... TO. Outside parentheses, which may hold a
// query, the latter has no FROM.
func (s *scan) copy() verdict {
	v := s.write(notARead, false)
	for depth := 0; ; {
		switch s.next() {
		case end, semicolon, bad:
			return v
		case open:
			depth++
		case closing:
			depth--
		case word:
			if depth == 0 && s.key == kwFrom {
				v.DML, v.why = true, dataChange
				return v
			}
		}
	}
}
