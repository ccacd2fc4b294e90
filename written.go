package pgyield

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// writtenRows are the rows that a write returns. What the program does between two of them
// is its own time, and no latency of the write: a loop over them that reads would else make
// writes look slow just when reads wait.
type writtenRows struct {
	pgx.Rows
	state *connState    // nil: they are closed, and the connection is somebody else's
	left  time.Duration // when the program was left alone with a row
}

func writtenRowsOf(r pgx.Rows) pgx.Rows {
	conn := r.Conn()
	if conn == nil {
		return r
	}
	return &writtenRows{Rows: r, state: stateOf(conn), left: sinceStart()}
}

// back notes that the program asks for more.
func (r *writtenRows) back() {
	if r.state != nil {
		now := sinceStart()
		r.state.outside(now - r.left)
		r.left = now // also when a Scanner of the caller's panics now
	}
}

// leave notes that the program has what it asked for. Rows that are not open any more have
// given their connection back.
func (r *writtenRows) leave(open bool) {
	if !open {
		r.state = nil
		return
	}
	r.left = sinceStart()
}

func (r *writtenRows) Next() bool {
	r.back()
	open := r.Rows.Next()
	r.leave(open)
	return open
}

func (r *writtenRows) Scan(dest ...any) error {
	r.back()
	err := r.Rows.Scan(dest...)
	r.leave(err == nil)
	return err
}

func (r *writtenRows) Values() ([]any, error) {
	r.back()
	values, err := r.Rows.Values()
	r.leave(err == nil)
	return values, err
}

func (r *writtenRows) Close() {
	r.back()
	r.leave(false)
	r.Rows.Close()
}
