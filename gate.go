package pgyield

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/intent"
)

// classify returns what a statement is: by the context, else by the text that a
// prepared name stands for, else by the text.
func (p *Pool) classify(w wish, sql string, args []any) intent.Class {
	class := p.classOf(sql)
	switch {
	case w.hasIntent:
		class.Intent = w.intent
	case class.Intent != intent.Write && rewrites(args):
		// What it will send is known only on a connection, which a read takes last.
		class = intent.Class{Intent: intent.Write}
	}
	return class
}

func (p *Pool) classOf(sql string) intent.Class {
	if text, ok := p.prepared.text(sql); ok {
		return p.classifier.Classify(text)
	}
	return p.classifier.Classify(sql)
}

// count adds one call to the statistics by intent and returns whether it takes a permit.
func (p *Pool) count(w wish, class intent.Class) (gated bool) {
	i := class.Intent
	if i > intent.Trivial {
		i = intent.Write
	}
	p.statements[i].Add(1)
	return i == intent.Read && !w.ungated
}

// rewrites reports whether a query rewriter other than pgx's named arguments, which
// keep the statement what it is, stands among the options that may precede arguments.
func rewrites(args []any) bool {
	for _, arg := range args {
		switch arg.(type) {
		case pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryExecMode, pgx.NamedArgs, pgx.StrictNamedArgs:
		case pgx.QueryRewriter:
			return true
		default:
			return false
		}
	}
	return false
}

// lease is what a gated read holds: a connection and the permit to read on it. Its zero
// connection means that somebody else gives both back (a transaction, a ReadConn).
type lease struct {
	pool   *Pool
	conn   *Conn
	permit bulkhead.Permit
}

// enter takes a permit and then a connection, in this order always: waiting for a
// permit with a connection in hand would let waiting reads hold what writes need.
func (p *Pool) enter(ctx context.Context, w wish) (l lease, err error) {
	l.pool = p
	if !w.ungated {
		if err := ctx.Err(); err != nil {
			return l, err // as pgxpool's, for it has not waited
		}
		if l.permit, err = p.bulkhead.Acquire(ctx, w.caller, w.cost); err != nil {
			return l, err
		}
	}
	entered := false
	defer func() {
		if !entered { // also when a hook of the caller's panics
			l.permit.Release()
		}
	}()
	if p.hooked {
		ctx = withPermit(ctx, l.permit)
	}
	if l.conn, err = p.inner.Acquire(ctx); err != nil {
		return l, err
	}
	entered = true
	return l, nil
}

// skipTiming tells the connection's tracer that the next statement is a read.
func (l *lease) skipTiming() { stateOf(l.conn.Conn()).skip = true }

// end gives the connection back, and then the permit. Where the lease is not ours to
// end, it notes that its holder is in the caller's hands again.
func (l *lease) end() {
	conn := l.conn
	if conn == nil {
		l.permit.Idle()
		return
	}
	l.conn = nil
	l.pool.giveBack(conn, l.permit)
}

// giveBack releases conn and then permit. A connection that will not go back to the
// pool keeps the permit until pgx has cleaned it up: until then it fills a slot of the
// pool, and the server may still be running the query.
func (p *Pool) giveBack(conn *Conn, permit bulkhead.Permit) {
	pgConn := conn.Conn().PgConn()
	doomed := pgConn.IsClosed() || pgConn.IsBusy() || pgConn.TxStatus() != 'I'
	if !doomed && !p.afterReleases {
		defer permit.Release() // also when a tracer of the caller's panics
		conn.Release()
		return
	}
	permit.Busy()
	var kept chan bool
	if !doomed {
		kept = make(chan bool, 1)
		stateOf(conn.Conn()).kept = kept
	}
	p.cleanups.Go(func() {
		defer permit.Release()
		awaitReturn(pgConn, kept)
	})
	conn.Release()
}

// longestCleanup is how long pgxpool waits for a connection's clean-up. One whose socket
// the caller has hijacked is never cleaned up.
const longestCleanup = 15 * time.Second

// awaitReturn returns when a released connection no longer fills a slot of the pool.
// kept tells what the AfterRelease hook said, where it decides.
func awaitReturn(pgConn *pgconn.PgConn, kept <-chan bool) {
	if kept != nil {
		select {
		case stays := <-kept:
			if stays {
				return
			}
		case <-pgConn.CleanupDone(): // its lifetime was over, so that no hook was asked
			return
		}
	}
	select {
	case <-pgConn.CleanupDone():
	case <-time.After(longestCleanup):
	}
}
