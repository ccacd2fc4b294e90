// Package pgyield is a drop-in replacement for [github.com/jackc/pgx/v5/pgxpool]
// whose reads yield to writes.
//
// A read takes a permit before it takes a connection. The number of permits is a
// limit that follows the database's write pressure: it halves while writes suffer
// and reads contend, and climbs back by one when they do not. Callers share the
// permits fairly. A write is never queued, refused or counted.
//
// Changing the import line is enough:
//
//	import pgxpool "github.com/pgyield/pgyield"
//
// # What is a read
//
// A statement is a read when its text proves that it does not write (package
// [github.com/pgyield/pgyield/intent]); in doubt it is a write. A read that touches
// no table and calls no function, such as `select 1`, is trivial and not gated, so
// that health checks never queue behind analytics. Statements inside a transaction
// or on an acquired connection are not gated: waiting there would hold a row lock or
// a connection. [WithIntent] overrules the text, and [Ungated] lets a read through
// that must not wait.
//
// # The trap
//
// A permit is held until the rows are closed, the row is scanned, the batch results
// are closed or the read-only transaction ends, just as pgxpool holds the connection
// until then. A program that forgets to close rows leaks a connection with pgxpool,
// and a permit with it here.
//
// # What it costs
//
// One connection more: the monitor's, outside the pool, which polls the server's
// write pressure every half second. When it is blind or dead, the pool's own write
// latency still drives the limit; with nothing to judge by, the limit drifts back to
// its start and no read is starved. `yield_adapt=off` fixes the limit and opens no
// monitor connection.
package pgyield
