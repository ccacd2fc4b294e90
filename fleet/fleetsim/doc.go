// Package fleetsim runs a load against one limit in simulated time: held by one process,
// divided once and for all over many, or shared by a fleet ([fleet.Member], the real one,
// over a bus in memory). It answers what formulas cannot: what a fleet refuses while its
// members hear of each other only now and then, and how far it passes the limit.
//
// Reads arrive at random and hold a permit for an exponential time. There is no pressure
// and no adaptive limit in it: it shows what the limit alone does.
//
// The trap: one run is one sample. Compare runs of the same seed, and long enough.
package fleetsim
