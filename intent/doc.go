// Package intent tells from SQL text alone whether it only reads.
//
// The job is one-sided: a write must never be called a read, while a read that
// is called a write costs no more than its place in a queue. So everything that
// the package does not understand is a Write, and the burden of proof lies on
// Read.
//
// The text is cut into tokens exactly as PostgreSQL cuts it (13 to 18), and a
// few rules are applied to the tokens; there is no parser and no recursion.
// That is enough because in PostgreSQL's grammar a statement that begins like a
// read can write only through a handful of words (INTO, FOR UPDATE and its
// kin, INSERT, UPDATE, DELETE or MERGE inside WITH) or through a function that
// it calls. The trap lies in the tokens: whoever is wrong about where a string,
// a comment or a quoted name ends sees other words than the server does.
//
// No text shows what a view, a cast, an operator or a domain's check calls, or
// that a function written as an attribute (`t.f` for `f(t)`) is one. For those
// the caller has to say what the statement is.
package intent
