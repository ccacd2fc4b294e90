package pgfake

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Default is the handler of a server without one. It knows select lists of
// literals, parameters, 1/0, now(), pg_backend_pid(), pg_sleep(seconds),
// count(...) (0) and generate_series(a, b), the last also after FROM, where a
// plain name stands for its number. A select from any other table has no rows,
// unless it is a count; INSERT, UPDATE, DELETE touch one row, and return its
// list; everything else succeeds.
func Default(ctx context.Context, q Query) Result {
	list := selectList(q.SQL)
	if len(list) == 0 {
		return Result{}
	}
	e := evaluation{ctx: ctx, q: q, list: list}
	from, to, series, hasFrom, err := e.series()
	if err != nil {
		return Result{Err: err}
	}
	if hasFrom && !series && !e.counts() {
		return Result{}
	}
	if !series {
		from, to = 1, 1
	}
	return Result{Rows: func(yield func([]any, error) bool) {
		for n := from; n <= to; n++ {
			row, err := e.row(n)
			if !yield(row, err) || err != nil {
				return
			}
		}
	}}
}

type evaluation struct {
	ctx  context.Context
	q    Query
	list []item
}

// series finds generate_series(a, b) in the select list or after FROM.
func (e evaluation) series() (from, to int64, found, hasFrom bool, err error) {
	text := ""
	for _, it := range e.list {
		if fn, args, ok := call(it.expr); ok && fn == "generate_series" {
			text = args
		}
	}
	source, hasFrom := after(e.q.SQL, "FROM")
	switch word(e.q.SQL, 0) {
	case "SELECT", "WITH":
	default:
		hasFrom = false
	}
	if i := strings.Index(strings.ToLower(source), "generate_series("); hasFrom && i >= 0 {
		text = source[i+len("generate_series("):]
		text = text[:max(strings.IndexByte(text, ')'), 0)]
	}
	if text == "" {
		return 0, 0, false, hasFrom, nil
	}
	bounds := split(text, ',')
	if len(bounds) != 2 {
		return 0, 0, false, hasFrom, Errorf("42883", "pgfake: generate_series wants two bounds, got %q", text)
	}
	var n [2]int64
	for i := range n {
		value, err := e.value(parseItem(strings.TrimSpace(bounds[i])), 0)
		if err != nil {
			return 0, 0, false, hasFrom, err
		}
		if n[i], err = strconv.ParseInt(fmt.Sprint(value), 10, 64); err != nil {
			return 0, 0, false, hasFrom, Errorf("22P02", "pgfake: generate_series: %v", err)
		}
	}
	return n[0], n[1], true, hasFrom, nil
}

func (e evaluation) counts() bool {
	fn, _, _ := call(e.list[0].expr)
	return fn == "count" || fn == "sum"
}

func (e evaluation) row(n int64) ([]any, error) {
	row := make([]any, len(e.list))
	for i, it := range e.list {
		value, err := e.value(it, n)
		if err != nil {
			return nil, err
		}
		row[i] = value
	}
	return row, nil
}

// value is what it is in row n of the series.
func (e evaluation) value(it item, n int64) (any, error) {
	expr := it.expr
	switch {
	case expr == "1/0":
		return nil, Errorf("22012", "division by zero")
	case strings.EqualFold(expr, "null"):
		return nil, nil
	case len(expr) > 1 && expr[0] == '$':
		i, err := strconv.Atoi(expr[1:])
		if err != nil || i < 1 || i > len(e.q.Args) {
			return nil, Errorf("42P02", "there is no parameter %s", expr)
		}
		return e.q.Args[i-1], nil
	case len(expr) > 1 && expr[0] == '\'' && expr[len(expr)-1] == '\'':
		return expr[1 : len(expr)-1], nil
	}
	if i, err := strconv.ParseInt(expr, 10, 64); err == nil {
		return i, nil
	}
	if b, err := strconv.ParseBool(expr); err == nil && len(expr) > 3 {
		return b, nil
	}
	if fn, args, ok := call(expr); ok {
		return e.function(fn, args, n)
	}
	if it.oid == pgtype.TextOID && !isName(expr) {
		return expr, nil
	}
	return n, nil
}

func (e evaluation) function(fn, args string, n int64) (any, error) {
	switch fn {
	case "generate_series":
		return n, nil
	case "count", "sum":
		return int64(0), nil
	case "pg_backend_pid":
		return int64(e.q.PID), nil
	case "now", "clock_timestamp":
		return time.Now(), nil
	case "pg_sleep":
		value, err := e.value(parseItem(args), n)
		if err != nil {
			return nil, err
		}
		seconds, err := strconv.ParseFloat(fmt.Sprint(value), 64)
		if err != nil {
			return nil, Errorf("22P02", "pgfake: pg_sleep: %v", err)
		}
		return "", Sleep(e.ctx, time.Duration(seconds*float64(time.Second)))
	}
	return nil, nil
}
