package pgfake

import (
	"context"
	"iter"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Handler decides what a statement does. It runs on the session's goroutine,
// many sessions at once. ctx ends with a cancel request, Kill and Close; an
// error returned after that is reported as 57014 or 57P01 whatever it was.
// Statements that begin or end a transaction, and a ping (SQL that is only a
// comment), come here too: the fake keeps the transaction's status itself and
// only asks for an error or a delay.
type Handler func(ctx context.Context, q Query) Result

// Query is a statement as a session received it.
type Query struct {
	SQL      string
	PID      uint32
	App      string // application_name at start-up
	Args     []any  // decoded by the described type; text for an unknown one; nil for NULL
	Simple   bool   // simple protocol
	TxStatus byte   // 'I', 'T' or 'E' before the statement
	CopyRows int64  // COPY FROM: rows that came; the handler runs after them
}

// Column of a result.
type Column struct {
	Name string
	OID  uint32 // pgtype.Int4OID, ...; 0: text
}

// Shape of a statement. A parameter of type 0 is sent as text.
type Shape struct {
	Params  []uint32
	Columns []Column
}

// Result of a statement.
type Result struct {
	// Columns are used where the statement was not described before it ran
	// (simple protocol, QueryExecModeExec). Nil: the described ones.
	Columns []Column

	// Rows are pulled one at a time, each after the client took the one
	// before; an error ends them. The iterator may sleep. Nil: no rows.
	Rows iter.Seq2[[]any, error]

	// Tag is the command tag. Empty: made from the text and the rows sent.
	Tag string

	// Err is told to the client: a *pgconn.PgError as it is (see Errorf), any
	// other with SQLSTATE XX000.
	Err error
}

// Cols makes columns from pairs: Cols("id", pgtype.Int4OID, "name", pgtype.TextOID).
// It panics on a malformed list.
func Cols(pairs ...any) []Column {
	columns := make([]Column, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		name, isName := pairs[i].(string)
		oid, isOID := pairs[i+1].(int) // what the untyped constants of pgtype become
		if !isName || !isOID {
			panic("pgfake: Cols wants name, OID, name, OID, ...")
		}
		columns = append(columns, Column{Name: name, OID: uint32(oid)})
	}
	return columns
}

// Rows is a result of the given rows.
func Rows(columns []Column, rows ...[]any) Result {
	return Result{Columns: columns, Rows: func(yield func([]any, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}}
}

// Fail is a result that is an error with a SQLSTATE.
func Fail(code, format string, args ...any) Result {
	return Result{Err: Errorf(code, format, args...)}
}

// Sleep waits for d or for ctx, whose error it then returns.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Hang waits until the statement is cancelled or its session ends.
func Hang(ctx context.Context) Result {
	<-ctx.Done()
	return Result{Err: ctx.Err()}
}

// Types that the fake itself names.
const (
	voidOID = 2278
	textOID = pgtype.TextOID
)
