// Package bulkhead limits how much cost may run at once, and shares the limit fairly
// among callers.
//
// A read takes a [Permit] with [Bulkhead.Acquire] and gives it back with
// [Permit.Release]. A permit is weighted by a cost; the limit counts cost and moves
// while reads run ([Bulkhead.SetLimit]).
//
// # Fairness is an order, not a cap
//
// Where reads may wait, a permit is never left idle while the next read in order fits,
// so fairness costs no throughput: what is fair is the order of grants. Callers that
// run less than their share of the limit go before those that run their share or more,
// and penalised callers (package demerit) go last; among equals the one with the least
// running cost goes first, then the one that came first. Where reads may not wait
// ([Bulkhead.TryAcquire], or MaxWaiting below 0) order cannot help: there a caller is
// held to its share once another that is not penalised was refused.
//
// A read that is next and does not fit yet keeps its place until it does, so a read of
// great cost is not passed for ever by small ones. A cost above the limit counts as the
// whole limit, so such a read runs alone and does not wait for ever.
//
// # Liveness, and the trap
//
// A program may open rows and run a second read inside the loop. With every permit held
// by such loops, nobody would ever give one back. So when all running permits have been
// idle ([Permit.Idle]) for a while and a read waits, a stall slot opens above the limit;
// and when nothing at all has moved for longer, one waiting read goes regardless. Both
// depend on holders that mark their permits idle whenever they are not inside the
// driver: a permit that nobody marks is taken for a long query.
//
// # Pauses
//
// [Bulkhead.SetBounds] with zeros pauses a bulkhead: its limit is 0, and reads wait, or
// are refused where they may not. Who pauses it must end the pause. What runs goes on, and
// what stalls it is let in as ever; when nothing runs, nothing is let in, but for one read
// a minute, so that a pause that nobody ends starves none for good.
//
// All methods of a [Bulkhead] and its permits are safe for concurrent use. No lock is
// held while a read waits or while [Options.MayOverdraw] runs.
package bulkhead
