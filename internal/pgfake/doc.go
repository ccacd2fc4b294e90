// Package pgfake is a PostgreSQL server for tests in virtual time. It speaks
// the wire protocol over net.Pipe, so that pgx and pgxpool run against it
// inside a testing/synctest bubble: a query of ten seconds and a timeout of
// three cost milliseconds, and happen in the same order every time.
//
//	fake := pgfake.New(pgfake.Options{})
//	defer fake.Close()
//	pool, err := pgxpool.NewWithConfig(ctx, fake.Config(t, "pool_max_conns=4"))
//
// What a statement does is decided by a [Handler]; the default one, [Default],
// knows pg_sleep, generate_series, literals and parameters. The traps:
//
//   - A shape (columns and parameter types) is asked for before a statement
//     runs, because pgx prepares statements. It comes from Options.Describe, or
//     is guessed from the text ([Guess]).
//   - As with a real server, a statement goes on when its client is gone: only
//     a cancel request, Kill or Close ends it. A handler must therefore return
//     when its context is done, or Close waits for ever.
//   - Rows are written one at a time and net.Pipe has no buffer, so a client
//     that does not read holds the server, exactly where a real one is held
//     after its socket buffers are full. What a client sends, the server takes
//     in advance (64 KiB), as a socket does.
//   - The fake has no data, no locks and no SQL: a handler that needs them
//     brings them.
package pgfake
