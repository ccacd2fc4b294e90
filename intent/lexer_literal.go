package intent

import "strings"

// lineEnd returns the end of the `--` comment at i: a carriage return ends it
// as well as a line feed.
func lineEnd(sql string, i int) int {
	for i < len(sql) && sql[i] != '\n' && sql[i] != '\r' {
		i++
	}
	return i
}

// comment returns the index behind the /* comment */ at i. Such comments nest.
func (l *lexer) comment(start int) int {
	sql, i, depth := l.sql, start, 0
	for i+1 < len(sql) {
		switch {
		case sql[i] == '/' && sql[i+1] == '*':
			depth++
			i += 2
		case sql[i] == '*' && sql[i+1] == '/':
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return l.bad(start, unfinishedComment)
}

// plainString returns the index behind the '...' at i. Where a backslash stands before a quote the server's
// standard_conforming_strings decides where the string ends, and the text does
// not show that setting.
func (l *lexer) plainString(i int) int {
	for j := i + 1; ; j += 2 {
		n := strings.IndexByte(l.sql[j:], '\'')
		if n < 0 {
			return l.bad(i, unfinishedString)
		}
		j += n
		if l.sql[j-1] == '\\' {
			return l.bad(j-1, backslashQuote)
		}
		if j+1 == len(l.sql) || l.sql[j+1] != '\'' {
			return j + 1
		}
	}
}

// escapeString reads E'...', i being the index of the E. It goes on behind white
// space with a line end in it and another quote, and the escapes with it.
func (l *lexer) escapeString(i int) int {
	sql := l.sql
	for j := i + 2; j < len(sql); j++ {
		switch sql[j] {
		case '\\':
			// In some client encodings a backslash is the second half of a
			// character; the text does not show the encoding.
			if sql[j-1] >= 0x80 && !l.utf8 {
				return l.bad(j, backslashByte)
			}
			j++
		case '\'':
			if j+1 < len(sql) && sql[j+1] == '\'' {
				j++
				continue
			}
			next := continuation(sql, j+1)
			if next < 0 {
				return j + 1
			}
			j = next
		}
	}
	return l.bad(i, unfinishedString)
}

// continuation returns the index of the quote that goes on with a string which
// ended before i, or -1. Only white space and `--` comments may stand between,
// and there must be a line end.
func continuation(sql string, i int) int {
	newLine := false
	for i < len(sql) {
		switch c := sql[i]; {
		case c == '\n' || c == '\r':
			newLine = true
			i++
		case classes[c] == space:
			i++
		case c == '-' && i+1 < len(sql) && sql[i+1] == '-':
			i = lineEnd(sql, i)
		case c == '\'' && newLine:
			return i
		default:
			return -1
		}
	}
	return -1
}

// quotedName reads "...", which is a token.
func (l *lexer) quotedName(i int) token {
	for j := i + 1; ; j += 2 {
		n := strings.IndexByte(l.sql[j:], '"')
		if n < 0 {
			l.bad(i, unfinishedName)
			return bad
		}
		j += n
		if j+1 == len(l.sql) || l.sql[j+1] != '"' {
			if j == i+1 {
				l.bad(i, emptyName)
				return bad
			}
			l.start, l.pos = i, j+1
			return quoted
		}
	}
}

// dollar reads $1 and $tag$...$tag$.
func (l *lexer) dollar(i int) int {
	sql, j := l.sql, i+1
	if j < len(sql) && classes[sql[j]] == digit {
		for j < len(sql) && classes[sql[j]] == digit {
			j++
		}
		return l.numberEnd(i, j)
	}
	for j < len(sql) && classes[sql[j]] <= digit {
		j++
	}
	if j == len(sql) || sql[j] != '$' {
		return l.bad(i, unknownCharacter)
	}
	tag := sql[i : j+1]
	n := strings.Index(sql[j+1:], tag)
	if n < 0 {
		return l.bad(i, unfinishedString)
	}
	return j + 1 + n + len(tag)
}

// number reads a number that starts with a digit or with a dot and a digit.
func (l *lexer) number(i int) int {
	sql, j := l.sql, i
	if sql[i] == '0' && i+1 < len(sql) {
		if valid := radix(sql[i+1]); valid != "" {
			if j = digits(sql, i+2, valid); j < 0 || j == i+2 {
				return l.bad(i, junkNumber)
			}
			return l.numberEnd(i, j)
		}
	}
	if sql[j] != '.' {
		j = digits(sql, j, decimal)
	}
	if j >= 0 && j < len(sql) && sql[j] == '.' {
		if j+1 < len(sql) && sql[j+1] == '.' {
			return l.bad(i, junkNumber)
		}
		j = digits(sql, j+1, decimal)
	}
	if j >= 0 && j < len(sql) && sql[j]|0x20 == 'e' {
		j++
		if j < len(sql) && (sql[j] == '+' || sql[j] == '-') {
			j++
		}
		from := j
		if j = digits(sql, j, decimal); j == from {
			return l.bad(i, junkNumber)
		}
	}
	return l.numberEnd(i, j)
}

// numberEnd ends a number or parameter at j: what follows must not look like part
// of it, because servers disagree on what that is. A negative j is a bad number.
func (l *lexer) numberEnd(i, j int) int {
	if j < 0 || j < len(l.sql) && classes[l.sql[j]] <= dollar {
		return l.bad(i, junkNumber)
	}
	return j
}

const decimal = "0123456789"

// radix returns the digits of the base that the letter behind a 0 names.
func radix(b byte) string {
	switch b | 0x20 {
	case 'x':
		return decimal + "abcdefABCDEF"
	case 'o':
		return "01234567"
	case 'b':
		return "01"
	default:
		return ""
	}
}

// digits returns the end of the digits at i, which single underscores may
// separate; -1 for an underscore that separates nothing.
func digits(sql string, i int, valid string) int {
	from := i
	for i < len(sql) {
		switch {
		case strings.IndexByte(valid, sql[i]) >= 0:
			i++
		case sql[i] == '_' && i > from && sql[i-1] != '_' && i+1 < len(sql) && strings.IndexByte(valid, sql[i+1]) >= 0:
			i++
		case sql[i] == '_':
			return -1
		default:
			return i
		}
	}
	return i
}
