package intent

// token is a kind of token. Operators, commas, brackets and colons carry no
// meaning for the rules and are all other.
type token uint8

const (
	end    token = iota
	bad          // nothing that every supported server reads alike; lexer.why says what
	word         // a bare name or keyword
	quoted       // a "name"
	dot
	open
	closing
	semicolon
	literal // a string, number or $1
	other
)

// class sorts bytes by what a token that starts with them is. The order
// matters: what may go on inside a bare word comes first.
type class uint8

const (
	letter class = iota
	digit
	dollar
	space
	operator
	dash
	slash
	punctuation
	period
	parenOpen
	parenClose
	semi
	quote
	doubleQuote
	unknown
)

var classes = func() (table [256]class) {
	for i := range table {
		switch b := byte(i); {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '_', b >= 0x80:
			table[i] = letter
		case b >= '0' && b <= '9':
			table[i] = digit
		default:
			table[i] = unknown
		}
	}
	// A vertical tab is white space from PostgreSQL 16 on and an error before:
	// it stays unknown.
	for chars, c := range map[string]class{
		"$": dollar, " \t\n\r\f": space, "~!@#^&|`?+*%<>=": operator, "-": dash, "/": slash,
		",[]:": punctuation, ".": period, "(": parenOpen, ")": parenClose, ";": semi,
		"'": quote, `"`: doubleQuote,
	} {
		for i := range len(chars) {
			table[chars[i]] = c
		}
	}
	return table
}()

// lexer cuts a text into tokens as PostgreSQL's scanner does.
type lexer struct {
	sql   string
	start int    // of the current token
	pos   int    // behind the current token
	key   uint64 // of a word of at most eight bytes: folded and packed; else 0
	why   reason // of a bad token
}

// next moves to the next token. Behind a bad one it must not be called again,
// except through resume.
func (l *lexer) next() token {
	sql, i := l.sql, l.pos
	for i < len(sql) {
		switch classes[sql[i]] {
		case space:
			i++
			continue
		case letter:
			return l.word(i)
		case dash:
			if i+1 < len(sql) && sql[i+1] == '-' {
				i = lineEnd(sql, i)
				continue
			}
			return l.one(i, other)
		case slash:
			// A comment may start in the middle of a run of operator characters,
			// so operators are taken one character at a time.
			if i+1 < len(sql) && sql[i+1] == '*' {
				j := commentEnd(sql, i)
				if j < 0 {
					return l.bad(i, unfinishedComment)
				}
				i = j
				continue
			}
			return l.one(i, other)
		case operator, punctuation:
			return l.one(i, other)
		case parenOpen:
			return l.one(i, open)
		case parenClose:
			return l.one(i, closing)
		default:
			return l.rare(i)
		}
	}
	l.start, l.pos = i, i
	return end
}

// rare is the part of next that is not worth a place in its loop.
func (l *lexer) rare(i int) token {
	switch classes[l.sql[i]] {
	case semi:
		return l.one(i, semicolon)
	case period:
		return l.period(i)
	case quote:
		return l.plainString(i)
	case doubleQuote:
		return l.quotedName(i)
	case digit:
		return l.number(i)
	case dollar:
		return l.dollar(i)
	default:
		return l.bad(i, unknownCharacter)
	}
}

func (l *lexer) one(i int, t token) token {
	l.start, l.pos = i, i+1
	return t
}

func (l *lexer) upTo(i, j int, t token) token {
	l.start, l.pos = i, j
	return t
}

func (l *lexer) bad(i int, why reason) token {
	l.start, l.pos, l.why = i, i, why
	return bad
}

// word reads a bare word, or the string whose prefix it turns out to be.
func (l *lexer) word(i int) token {
	sql := l.sql
	key, j := uint64(sql[i]|0x20), i+1
	for j < len(sql) {
		b := sql[j]
		if classes[b] > dollar {
			break
		}
		// Of the bytes that a word may hold only letters and '_' are changed by
		// the bit, and no two of them become the same but the two cases of a letter.
		key = key<<8 | uint64(b|0x20)
		j++
	}
	if j-i == 1 && j < len(sql) {
		switch {
		case key == 'e' && sql[j] == '\'':
			return l.escapeString(i)
		case key == 'u' && sql[j] == '&' && j+1 < len(sql) && sql[j+1] == '"':
			return l.bad(i, unicodeName)
		}
	}
	if j-i > 8 {
		key = 0
	}
	l.start, l.pos, l.key = i, j, key
	return word
}

// period tells a dot from a number that starts with one.
func (l *lexer) period(i int) token {
	if i+1 < len(l.sql) {
		switch {
		case l.sql[i+1] == '.':
			return l.bad(i, unknownCharacter)
		case classes[l.sql[i+1]] == digit:
			return l.number(i)
		}
	}
	return l.one(i, dot)
}
