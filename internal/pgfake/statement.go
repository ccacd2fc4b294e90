package pgfake

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

// errGone stands for a connection that broke while rows were sent.
var errGone = errors.New("pgfake: client gone")

// execution is one statement in progress.
type execution struct {
	ctx    context.Context
	sql    string
	record *Statement
	result Result
}

// begin starts the execution of sql: its record and its context.
func (s *session) begin(sql string, args []any, simple bool) *execution {
	x := &execution{
		ctx:    s.statementContext(),
		sql:    sql,
		record: &Statement{SQL: sql, PID: s.pid, App: s.app, Args: args, Simple: simple},
	}
	s.f.beginStatement(x.record)
	return x
}

// call asks the handler.
func (s *session) call(x *execution, copyRows int64) {
	if err := s.allowed(x.sql); err != nil {
		x.result = Result{Err: err}
		return
	}
	x.result = s.f.options.Handler(x.ctx, Query{
		SQL: x.sql, PID: s.pid, App: s.app, Args: x.record.Args,
		Simple: x.record.Simple, TxStatus: s.tx, CopyRows: copyRows,
	})
}

// allowed is the rule of a failed transaction: only its end is.
func (s *session) allowed(sql string) error {
	if s.tx == 'E' && !endsTransaction(sql) {
		return Errorf("25P02", "current transaction is aborted, commands ignored until end of transaction block")
	}
	return nil
}

// answer sends the result of x, described by columns: rows, then the tag or the
// error. It says whether the statement succeeded.
func (s *session) answer(x *execution, columns []Column, formats []int16) bool {
	err := x.result.Err
	var rows int64
	if err == nil && x.result.Rows != nil {
		rows, err = s.stream(x, columns, formats)
	}
	err = s.conclude(x, rows, err)
	switch {
	case errors.Is(err, errGone):
		return false
	case err != nil:
		s.fail(err)
		return false
	}
	tag := x.result.Tag
	if tag == "" {
		tag = commandTag(x.sql, rows, s.tx)
	}
	s.tx = nextStatus(x.sql, s.tx)
	s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
	return true
}

// conclude ends the record of x and translates err: an error after a cancel is
// the cancel's.
func (s *session) conclude(x *execution, rows int64, err error) error {
	if err != nil && !errors.Is(err, errGone) && x.ctx.Err() != nil {
		switch cause := context.Cause(x.ctx); {
		case errors.Is(cause, errCanceled):
			err = Errorf("57014", "canceling statement due to user request")
		default:
			fatal := Errorf("57P01", "terminating connection due to administrator command")
			fatal.Severity = "FATAL"
			err = fatal
		}
	}
	s.statementOver()
	s.f.endStatement(x.record, rows, err)
	if err != nil && s.tx == 'T' && word(x.sql, 0) == "COMMIT" {
		s.tx = 'I' // a commit that fails ends its transaction
	}
	return err
}

// stream sends the rows one at a time: the next is pulled when the client has
// taken the one before.
func (s *session) stream(x *execution, columns []Column, formats []int16) (rows int64, err error) {
	for values, err := range x.result.Rows {
		if err == nil {
			err = x.ctx.Err()
		}
		if err != nil {
			return rows, err
		}
		if len(values) != len(columns) {
			return rows, fmt.Errorf("pgfake: a row of %d values, described were %d columns: %s",
				len(values), len(columns), x.sql)
		}
		if len(columns) == 0 {
			continue
		}
		row := make([][]byte, len(values))
		for i, value := range values {
			if row[i], err = s.encode(columns[i].OID, format(formats, i), value); err != nil {
				return rows, fmt.Errorf("pgfake: column %s: %w", columns[i].Name, err)
			}
		}
		s.backend.Send(&pgproto3.DataRow{Values: row})
		s.flush()
		if s.dead {
			return rows, errGone
		}
		rows++
	}
	return rows, nil
}

// encode writes value as type oid in the given format; nil is NULL. Strings are
// parsed for the number and bool types, anything is printed for the text types.
func (s *session) encode(oid uint32, format int16, value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	text, isText := value.(string)
	switch oid {
	case 0, textOID, voidOID, pgtype.VarcharOID, pgtype.UnknownOID, pgtype.NameOID:
		if b, ok := value.([]byte); ok {
			return b, nil
		}
		return append([]byte{}, fmt.Sprint(value)...), nil
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		if isText {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, err
			}
			value = n
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		if isText {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, err
			}
			value = n
		}
	case pgtype.BoolOID:
		if isText {
			value = text == "t" || strings.EqualFold(text, "true")
		}
	}
	return s.types.Encode(oid, format, value, []byte{})
}

// decode is the reverse, for arguments.
func (s *session) decode(oid uint32, format int16, src []byte) (any, error) {
	if src == nil {
		return nil, nil
	}
	if t, ok := s.types.TypeForOID(oid); ok {
		return t.Codec.DecodeValue(s.types, oid, format, src)
	}
	return string(src), nil
}

func format(formats []int16, i int) int16 {
	switch len(formats) {
	case 0:
		return pgtype.TextFormatCode
	case 1:
		return formats[0]
	}
	if i < len(formats) {
		return formats[i]
	}
	return pgtype.TextFormatCode
}

// describe is the shape of sql before it runs.
func (s *session) describe(sql string) Shape {
	if s.f.options.Describe != nil {
		if shape, ok := s.f.options.Describe(sql); ok {
			return shape
		}
	}
	return Guess(sql)
}

func (s *session) sendColumns(columns []Column, formats []int16) {
	if len(columns) == 0 {
		s.backend.Send(&pgproto3.NoData{})
		return
	}
	fields := make([]pgproto3.FieldDescription, len(columns))
	for i, c := range columns {
		oid := c.OID
		if oid == 0 {
			oid = textOID
		}
		fields[i] = pgproto3.FieldDescription{
			Name: []byte(c.Name), DataTypeOID: oid, DataTypeSize: -1, TypeModifier: -1,
			Format: format(formats, i),
		}
	}
	s.backend.Send(&pgproto3.RowDescription{Fields: fields})
}

// simple answers a message of the simple protocol.
func (s *session) simple(text string) {
	parts := splitStatements(text)
	if len(parts) == 0 {
		// A ping. The handler may still delay or fail it.
		x := s.begin(text, nil, true)
		s.call(x, 0)
		if err := s.conclude(x, 0, x.result.Err); err != nil {
			s.fail(err)
		} else {
			s.backend.Send(&pgproto3.EmptyQueryResponse{})
		}
	}
	for _, sql := range parts {
		if !s.simpleStatement(sql) {
			break
		}
	}
	s.skipping = false // an error ends only its own message here
	if !s.dead {
		s.ready()
	}
}

func (s *session) simpleStatement(sql string) bool {
	x := s.begin(sql, nil, true)
	switch copyDirection(sql) {
	case "FROM":
		return s.copyIn(x)
	case "TO":
		return s.copyOut(x)
	}
	s.call(x, 0)
	columns := x.result.Columns
	if columns == nil {
		columns = s.describe(sql).Columns
	}
	if x.result.Err == nil && len(columns) > 0 {
		s.sendColumns(columns, nil)
	}
	return s.answer(x, columns, nil)
}
