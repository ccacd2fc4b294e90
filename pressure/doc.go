// Package pressure tells whether a database's writes suffer.
//
// Its parts stand alone: a [Poller] asks a Postgres server for a [Sample] over
// one connection of its own; [Writes] records how long the program's own writes
// take; a [Judge] compares both with what they are when reads are quiet and
// gives a [Verdict] for each period.
//
// The trap is that most of what a server counts says that writes are busy, not
// that they suffer: WAL volume, backlog and bare numbers of waiting backends
// rise just as much under a healthy bulk load. So every signal here is a time
// for each write, and is compared with the same time in calm periods.
package pressure
