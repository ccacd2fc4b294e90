package intent

// token is a kind of token. Only kinds that mean something to the rules are
// tokens of their own: see lexer.gap for the others.
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

const whiteSpace = " \t\n\r\f"

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
		"$": dollar, whiteSpace: space, "~!@#^&|`?+*%<>=": operator, "-": dash, "/": slash,
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
	gap   bool   // literals, operators, commas, brackets or colons stand before the token
	utf8  bool   // the text is known to be UTF-8
}

// next moves to the next token. Behind a bad one it must not be called again
// before pos is moved.
func (l *lexer) next() token {
	sql, i := l.sql, l.pos
	l.gap = false
	for i < len(sql) {
		switch classes[sql[i]] {
		case letter:
			// Of the bytes that a word may hold only letters and '_' are changed by
			// the bit, and no two of them become the same but the cases of a letter.
			key, j := uint64(sql[i]|0x20), i+1
			for j < len(sql) && classes[sql[j]] <= dollar {
				key = key<<8 | uint64(sql[j]|0x20)
				j++
			}
			switch j - i {
			case 1:
				if j < len(sql) && (sql[j] == '\'' || sql[j] == '&') {
					if k := l.prefixed(i); k != i {
						if k < 0 {
							return bad
						}
						i, l.gap = k, true
						continue
					}
				}
			case 2, 3, 4, 5, 6, 7, 8:
			default:
				key = 0
			}
			l.start, l.pos, l.key = i, j, key
			return word
		case space:
			i++
		case operator, punctuation:
			// Operators are taken one character at a time, since a comment may start
			// in the middle of a run of them.
			i++
			l.gap = true
		case parenOpen:
			l.start, l.pos = i, i+1
			return open
		case parenClose:
			l.start, l.pos = i, i+1
			return closing
		case period:
			if i+1 == len(sql) || sql[i+1] != '.' && classes[sql[i+1]] != digit {
				l.start, l.pos = i, i+1
				return dot
			}
			if i = l.inert(i); i < 0 {
				return bad
			}
		case doubleQuote:
			return l.quotedName(i)
		case semi:
			l.start, l.pos = i, i+1
			return semicolon
		default:
			if i = l.inert(i); i < 0 {
				return bad
			}
		}
	}
	l.start, l.pos = i, i
	return end
}

// inert returns the index behind what is no token: a comment, a literal, a dash
// or slash. It is negative when l is at a bad token.
func (l *lexer) inert(i int) int {
	sql, c := l.sql, classes[l.sql[i]]
	if i+1 < len(sql) {
		switch {
		case c == dash && sql[i+1] == '-':
			return lineEnd(sql, i)
		case c == slash && sql[i+1] == '*':
			return l.comment(i)
		case c == period && sql[i+1] == '.':
			return l.bad(i, unknownCharacter)
		}
	}
	l.gap = true
	switch c {
	case dash, slash:
		return i + 1
	case quote:
		return l.plainString(i)
	case digit, period:
		return l.number(i)
	case dollar:
		return l.dollar(i)
	default:
		return l.bad(i, unknownCharacter)
	}
}

// prefixed returns the index behind the literal that begins with the letter at i,
// i when there is none, or a negative number when l is at a bad token. Other
// prefixes than E do not change how a string is read.
func (l *lexer) prefixed(i int) int {
	switch next := l.sql[i+1]; {
	case l.sql[i]|0x20 == 'e' && next == '\'':
		return l.escapeString(i)
	case l.sql[i]|0x20 == 'u' && next == '&' && i+2 < len(l.sql) && l.sql[i+2] == '"':
		return l.bad(i, unicodeName)
	default:
		return i
	}
}

// bad makes a bad token; it returns what inert does.
func (l *lexer) bad(i int, why reason) int {
	l.start, l.pos, l.why = i, i, why
	return -1
}
