package pgyield

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rows are the rows of a read that holds a permit. Between its calls the holder is
// idle: it may be about to run another read, which must not wait for this one.
type rows struct {
	r     pgx.Rows
	lease lease
}

func (r *rows) Close() {
	r.lease.permit.Busy()
	defer r.lease.end() // also when a tracer of the caller's panics
	r.r.Close()
}

func (r *rows) Next() bool {
	r.lease.permit.Busy()
	if !r.r.Next() {
		r.Close()
		return false
	}
	r.lease.permit.Idle()
	return true
}

func (r *rows) Scan(dest ...any) (err error) {
	returned := false
	defer func() { r.closeUnless(returned && err == nil) }()
	err = r.r.Scan(dest...)
	returned = true
	return err
}

func (r *rows) Values() (values []any, err error) {
	returned := false
	defer func() { r.closeUnless(returned && err == nil) }()
	values, err = r.r.Values()
	returned = true
	return values, err
}

// closeUnless ends the read when a value could not be read, be it by an error or by a
// panic in a Scanner of the caller's.
func (r *rows) closeUnless(fine bool) {
	if !fine {
		r.Close()
	}
}

func (r *rows) Err() error                                   { return r.r.Err() }
func (r *rows) CommandTag() pgconn.CommandTag                { return r.r.CommandTag() }
func (r *rows) FieldDescriptions() []pgconn.FieldDescription { return r.r.FieldDescriptions() }
func (r *rows) RawValues() [][]byte                          { return r.r.RawValues() }
func (r *rows) Conn() *pgx.Conn                              { return r.r.Conn() }
func (r *rows) TypeMap() *pgtype.Map                         { return r.r.TypeMap() }

// row is the one row of a read that holds a permit.
type row struct {
	r     pgx.Rows
	lease lease
}

var errDriverBytes = errors.New("cannot scan into *pgtype.DriverBytes from QueryRow")

// Scan reads the row and ends the read. It goes through the rows itself, rather than
// through pgx's row, because a Scanner of the caller's may read from the pool: that is
// the caller's time, not the driver's.
func (r *row) Scan(dest ...any) error {
	permit := r.lease.permit
	permit.Busy()
	defer r.lease.end() // also when a tracer of the caller's panics
	defer r.r.Close()
	if err := r.r.Err(); err != nil {
		return err
	}
	for _, d := range dest {
		if _, ok := d.(*pgtype.DriverBytes); ok {
			return errDriverBytes // its memory would be gone with the row
		}
	}
	if !r.r.Next() {
		if err := r.r.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	permit.Idle()
	_ = r.r.Scan(dest...) // Err has it
	permit.Busy()
	r.r.Close()
	return r.r.Err()
}

// failedRows are the rows of a read that got no permit, no connection or no result.
type failedRows struct{ err error }

func (failedRows) Close()                                       {}
func (r failedRows) Err() error                                 { return r.err }
func (failedRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (failedRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (failedRows) Next() bool                                   { return false }
func (r failedRows) Scan(...any) error                          { return r.err }
func (r failedRows) Values() ([]any, error)                     { return nil, r.err }
func (failedRows) RawValues() [][]byte                          { return nil }
func (failedRows) Conn() *pgx.Conn                              { return nil }
func (failedRows) TypeMap() *pgtype.Map                         { return nil }

// failedRow is the same for one row.
type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }
