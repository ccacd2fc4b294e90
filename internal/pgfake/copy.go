package pgfake

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
)

// copyDirection is FROM or TO for COPY with the client, else empty.
func copyDirection(sql string) string {
	if word(sql, 0) != "COPY" {
		return ""
	}
	upper := strings.ToUpper(sql)
	switch {
	case strings.Contains(upper, "FROM STDIN"):
		return "FROM"
	case strings.Contains(upper, "TO STDOUT"):
		return "TO"
	}
	return ""
}

func copyFormat(sql string) byte {
	if strings.Contains(strings.ToUpper(sql), "BINARY") {
		return 1
	}
	return 0
}

// copyIn takes the rows of COPY FROM, then calls the handler.
func (s *session) copyIn(x *execution) bool {
	if err := s.allowed(x.sql); err != nil {
		s.fail(s.conclude(x, 0, err))
		return false
	}
	counter := copyCounter{binary: copyFormat(x.sql) == 1}
	s.backend.Send(&pgproto3.CopyInResponse{OverallFormat: copyFormat(x.sql)})
	s.flush()
	for {
		msg, err := s.backend.Receive()
		if err != nil {
			_ = s.conclude(x, counter.rows, errGone)
			s.dead = true
			return false
		}
		switch msg := msg.(type) {
		case *pgproto3.CopyData:
			counter.add(msg.Data)
		case *pgproto3.CopyFail:
			s.fail(s.conclude(x, counter.rows, Errorf("57014", "COPY from stdin failed: %s", msg.Message)))
			return false
		case *pgproto3.Terminate:
			_ = s.conclude(x, counter.rows, errGone)
			s.dead = true
			return false
		case *pgproto3.CopyDone:
			s.call(x, counter.rows)
			if x.result.Tag == "" {
				x.result.Tag = commandTag("COPY", counter.rows, s.tx)
			}
			return s.answer(x, nil, nil)
		}
	}
}

// copyOut sends the handler's rows, each one's first value as it is.
func (s *session) copyOut(x *execution) bool {
	s.call(x, 0)
	if x.result.Err == nil {
		s.backend.Send(&pgproto3.CopyOutResponse{OverallFormat: copyFormat(x.sql)})
	}
	var rows int64
	err := x.result.Err
	if err == nil && x.result.Rows != nil {
		for values, rowErr := range x.result.Rows {
			if rowErr == nil {
				rowErr = x.ctx.Err()
			}
			var data []byte
			if rowErr == nil {
				data, rowErr = s.encode(textOID, 0, values[0])
			}
			if err = rowErr; err != nil {
				break
			}
			s.backend.Send(&pgproto3.CopyData{Data: data})
			if s.flush(); s.dead {
				err = errGone
				break
			}
			rows++
		}
	}
	if err = s.conclude(x, rows, err); err != nil {
		if !s.dead {
			s.fail(err)
		}
		return false
	}
	s.backend.Send(&pgproto3.CopyDone{})
	s.backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(commandTag("COPY", rows, s.tx))})
	return true
}

// copyCounter counts the rows of a COPY stream, however it is cut in pieces.
type copyCounter struct {
	binary bool
	rows   int64
	header bool // of the binary format: passed
	rest   []byte
}

func (c *copyCounter) add(data []byte) {
	if !c.binary {
		c.rows += int64(bytes.Count(data, []byte{'\n'}))
		return
	}
	c.rest = append(c.rest, data...)
	if !c.header {
		// signature (11), flags (4), length of an extension (4)
		if len(c.rest) < 19 {
			return
		}
		c.rest, c.header = c.rest[19:], true
	}
	for {
		n := binaryRow(c.rest)
		if n == 0 {
			return
		}
		c.rows++
		c.rest = c.rest[n:]
	}
}

// binaryRow is the length of the row that b begins with, 0 when it is not whole
// or is the trailer.
func binaryRow(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	fields := int16(binary.BigEndian.Uint16(b))
	if fields < 0 {
		return 0
	}
	n := 2
	for range fields {
		if len(b) < n+4 {
			return 0
		}
		size := int32(binary.BigEndian.Uint32(b[n:]))
		n += 4 + int(max(size, 0))
		if len(b) < n {
			return 0
		}
	}
	return n
}
