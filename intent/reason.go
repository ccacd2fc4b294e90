package intent

// reason says what decided a class.
type reason uint8

const (
	none reason = iota

	// Of reads.
	readsOnly
	probe
	showsSetting
	plansOnly

	// Of writes: what the statement is or calls.
	noWord
	notUnderstood
	notARead
	dataChange
	intoTable
	rowLock
	builtinVolatile
	builtinPlanned
	registeredFunction
	learnedFunction
	learnedNamesake // of a built-in function

	// Of writes: what cannot be told.
	emptyText
	nulByte
	unknownCharacter
	unfinishedComment
	unfinishedString
	unfinishedName
	emptyName
	unicodeName
	junkNumber
	backslashQuote
	backslashByte
	unbalanced
)

// reasons are sentences; a %s is the text that decided, shortened.
var reasons = [...]string{
	none:         "",
	readsOnly:    "reads only",
	probe:        "reads no table and calls no function",
	showsSetting: "shows a setting",
	plansOnly:    "plans its statement and does not run it",

	noWord:             "a statement starts with a word",
	notUnderstood:      "what follows the keyword is not understood",
	notARead:           "%s is not the start of a read",
	dataChange:         "%s changes rows",
	intoTable:          "%s may create a table",
	rowLock:            "FOR %s locks rows",
	builtinVolatile:    "calls %s, a built-in function that writes or holds something",
	builtinPlanned:     "calls %s, a built-in function that writes or holds something",
	registeredFunction: "calls %s, registered as a writing function",
	learnedFunction:    "calls %s, which the database declares volatile",
	learnedNamesake:    "",

	emptyText:         "holds no statement",
	nulByte:           "holds a NUL byte",
	unknownCharacter:  "%s is no part of SQL that every server reads alike",
	unfinishedComment: "the comment does not end",
	unfinishedString:  "the string does not end",
	unfinishedName:    "the quoted name does not end",
	emptyName:         "the quoted name is empty",
	unicodeName:       "a name with Unicode escapes may be any name",
	junkNumber:        "servers disagree on where this number ends",
	backslashQuote:    "where the string ends depends on standard_conforming_strings",
	backslashByte:     "where the string ends depends on client_encoding",
	unbalanced:        "parentheses do not match",
}
