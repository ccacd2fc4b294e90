// Package adaptive moves a limit on reads by how writes fare: it halves the limit
// while writes suffer and reads contend, and climbs back by one a period when they
// do not.
//
// [Step] is that rule alone. [Limit] runs it once a period, with the memory that
// measurements showed it needs: a level at which writes suffered is not tried again
// at once, strong evidence cuts without waiting for more, a cut that does not help
// is taken back, and a first baseline is learned at the floor when the program
// starts in the middle of a load.
//
// The trap is to feed it the wrong contention: it must mean that the limit held a
// read back. A limit that reads do not touch is never lowered, whatever writes do.
package adaptive
