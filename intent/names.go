package intent

import (
	_ "embed"
	"errors"
	"strings"
	"sync"
)

//go:embed builtin_names.txt
var builtinNames string

// builtinSet is only needed once something is learned.
var builtinSet = sync.OnceValue(func() map[string]struct{} {
	names := strings.Fields(builtinNames)
	set := make(map[string]struct{}, len(names))
	for _, name := range names {
		set[name] = struct{}{}
	}
	return set
})

// builtIn tells whether PostgreSQL or a known extension has a reading function
// of that catalogue name.
func builtIn(name string) bool {
	_, ok := builtinSet()[name]
	return ok
}

// isCatalog tells whether a name as it stands in a text is pg_catalog's.
func isCatalog(text string) bool {
	return strings.EqualFold(text, "pg_catalog") || text == `"pg_catalog"`
}

var (
	errNoName     = errors.New("not a function's name: want [schema.]name, as in SQL and without parentheses")
	errUnicodeKey = errors.New(`names with Unicode escapes (U&"...") are not understood; write the characters themselves`)
)

// parseName returns the last part of a possibly qualified name, as the catalogue
// spells it.
func parseName(text string) (string, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return "", errNoName
	}
	for l := (lexer{sql: text}); ; {
		t := l.next()
		var part string
		switch {
		case l.gap:
			return "", errNoName
		case t == word:
			part = foldName(text[l.start:l.pos])
		case t == quoted:
			part = strings.ReplaceAll(text[l.start+1:l.pos-1], `""`, `"`)
		case t == bad && l.why == unicodeName:
			return "", errUnicodeKey
		default:
			return "", errNoName
		}
		switch t := l.next(); {
		case l.gap:
			return "", errNoName
		case t == end:
			return clip(part), nil
		case t != dot:
			return "", errNoName
		}
	}
}

// foldName folds as PostgreSQL does in UTF-8: only A to Z.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r | 0x20
		}
		return r
	}, name)
}
