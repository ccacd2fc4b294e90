// Package fleet lets many processes share one limit on one database.
//
// Divided once and for all over processes, a limit refuses reads in one while it idles in
// another. A [Member] instead follows the load. It tells the others of itself, and hears
// of them, through the names of sessions that the server shows to everybody
// (application_name): no leader, no table, no other service. A name carries the fleet, the
// member, a heartbeat and a few numbers ([Member.Name]); [Member.Observe] takes the names
// that others set, and [Member.Ceiling] says how high the member's own limit may be now.
// [Member.Even] says it for a member that write pressure holds back, beside others that it
// holds back too.
//
// # Share, grant and slack
//
// Each member computes the same division of the limit: max-min fair by demand, what is
// left over split evenly, at least one each. A member's share shrinks at once; it grows
// into what others have said they no longer hold, so that what members are granted never
// sums to more than the limit (but for the first permit of newcomers, which none waits
// for). Above its grant a member may use all the slack, the part of the limit that nobody
// needed at its last poll. Several may use the same slack, so the limit is passed a little
// at times; behind it stands each member's adaptive limit. [Options.Strict] does without
// slack.
//
// # The trap
//
// Names are outside text: anybody who may connect can set one. They are parsed strictly
// and bounded, a malformed one is ignored, and one that lies can at worst win a member's
// fair share and take away slack.
//
// This package talks to no server: it encodes, decodes and divides. A Member is safe for
// concurrent use.
package fleet
