package intent

// Intent says what a SQL text may do. The zero value is Write: what nobody
// looked at is taken for a write.
type Intent uint8

const (
	// Write is everything that is not proved to be a read.
	Write Intent = iota
	// Read is a text of which every statement is proved not to write.
	Read
	// Trivial is a read that names no table and calls no function, such as
	// `select 1` or SHOW: a probe.
	Trivial
)

// String returns "write", "read" or "trivial".
func (i Intent) String() string {
	switch i {
	case Read:
		return "read"
	case Trivial:
		return "trivial"
	default:
		return "write"
	}
}

// Class is what Classify tells about a text.
type Class struct {
	Intent Intent
	// DML is set when the statement that made the text a write is an INSERT,
	// UPDATE, DELETE, MERGE or COPY FROM, also behind WITH or EXPLAIN ANALYZE.
	// Such statements are alike enough for their latency to be compared.
	DML bool
}

// shared serves the package-level functions.
var shared Classifier

// Of returns the intent of a SQL text with the built-in functions only. It is
// safe for concurrent use and does not allocate.
func Of(sql string) Intent { return shared.Classify(sql).Intent }
