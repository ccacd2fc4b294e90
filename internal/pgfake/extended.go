package pgfake

import (
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"
)

// prepared is a statement between Parse and Close.
type prepared struct {
	sql    string
	params []uint32 // types that Parse gave
	shape  *Shape   // not nil once the client was told
}

// portal is a bound statement.
type portal struct {
	statement *prepared
	args      []any
	formats   []int16 // of the result
	columns   []Column
	described bool       // columns are what the client was told
	running   *execution // not nil once the handler was called
}

// extended answers a message of the extended protocol.
func (s *session) extended(msg pgproto3.FrontendMessage) {
	switch msg := msg.(type) {
	case *pgproto3.Parse:
		s.parse(msg)
	case *pgproto3.Describe:
		if msg.ObjectType == 'S' {
			s.describeStatement(msg.Name)
		} else {
			s.describePortal(msg.Name)
		}
	case *pgproto3.Bind:
		s.bind(msg)
	case *pgproto3.Execute:
		s.execute(msg)
	case *pgproto3.Close:
		if msg.ObjectType == 'S' {
			delete(s.prepared, msg.Name)
		} else {
			delete(s.portals, msg.Name)
		}
		s.backend.Send(&pgproto3.CloseComplete{})
	default:
		s.fail(Errorf("08P01", "pgfake: unexpected message %T", msg))
	}
}

func (s *session) parse(msg *pgproto3.Parse) {
	if err := s.allowed(msg.Query); err != nil {
		s.fail(err)
		return
	}
	if _, exists := s.prepared[msg.Name]; exists && msg.Name != "" {
		s.fail(Errorf("42P05", "prepared statement %q already exists", msg.Name))
		return
	}
	if len(splitStatements(msg.Query)) > 1 {
		s.fail(Errorf("42601", "cannot insert multiple commands into a prepared statement"))
		return
	}
	s.prepared[msg.Name] = &prepared{sql: msg.Query, params: slices.Clone(msg.ParameterOIDs)}
	s.backend.Send(&pgproto3.ParseComplete{})
}

// shape of st, the types that Parse gave put over the described ones.
func (s *session) shape(st *prepared) Shape {
	shape := s.describe(st.sql)
	if len(st.params) > 0 {
		params := make([]uint32, max(len(shape.Params), len(st.params)))
		copy(params, shape.Params)
		for i, oid := range st.params {
			if oid != 0 {
				params[i] = oid
			}
		}
		shape.Params = params
	}
	return shape
}

func (s *session) describeStatement(name string) {
	st, ok := s.prepared[name]
	if !ok {
		s.fail(Errorf("26000", "prepared statement %q does not exist", name))
		return
	}
	shape := s.shape(st)
	st.shape = &shape
	s.backend.Send(&pgproto3.ParameterDescription{ParameterOIDs: shape.Params})
	s.sendColumns(shape.Columns, nil)
}

func (s *session) bind(msg *pgproto3.Bind) {
	st, ok := s.prepared[msg.PreparedStatement]
	if !ok {
		s.fail(Errorf("26000", "prepared statement %q does not exist", msg.PreparedStatement))
		return
	}
	shape := s.shape(st)
	if len(msg.Parameters) != len(shape.Params) {
		s.fail(Errorf("08P01", "bind message supplies %d parameters, but prepared statement requires %d",
			len(msg.Parameters), len(shape.Params)))
		return
	}
	args := make([]any, len(msg.Parameters))
	for i, src := range msg.Parameters {
		value, err := s.decode(shape.Params[i], format(msg.ParameterFormatCodes, i), src)
		if err != nil {
			s.fail(Errorf("22P02", "parameter $%d: %v", i+1, err))
			return
		}
		args[i] = value
	}
	p := &portal{statement: st, args: args, formats: slices.Clone(msg.ResultFormatCodes)}
	if st.shape != nil {
		p.columns, p.described = st.shape.Columns, true
	}
	s.portals[msg.DestinationPortal] = p
	s.backend.Send(&pgproto3.BindComplete{})
}

// run calls the handler of p, once, and settles its columns: what the client was
// told stands, else the result's own, else the shape of the text.
func (s *session) run(p *portal) {
	if p.running != nil {
		return
	}
	p.running = s.begin(p.statement.sql, p.args, false)
	s.call(p.running, 0)
	if p.described {
		return
	}
	if p.columns = p.running.result.Columns; p.columns == nil {
		p.columns = s.shape(p.statement).Columns
	}
	p.described = true
}

func (s *session) describePortal(name string) {
	p, ok := s.portals[name]
	if !ok {
		s.fail(Errorf("34000", "portal %q does not exist", name))
		return
	}
	if !p.described {
		// The handler knows better than the text, and Execute follows.
		s.run(p)
		if p.running.result.Err != nil {
			s.answer(p.running, nil, nil)
			delete(s.portals, name)
			return
		}
	}
	s.sendColumns(p.columns, p.formats)
}

func (s *session) execute(msg *pgproto3.Execute) {
	p, ok := s.portals[msg.Portal]
	switch {
	case !ok:
		s.fail(Errorf("34000", "portal %q does not exist", msg.Portal))
		return
	case msg.MaxRows > 0:
		s.fail(Errorf("0A000", "pgfake: Execute with a row limit is not supported"))
		return
	case copyDirection(p.statement.sql) != "":
		s.fail(Errorf("0A000", "pgfake: COPY works in the simple protocol only"))
		return
	}
	delete(s.portals, msg.Portal)
	s.run(p)
	if len(splitStatements(p.statement.sql)) > 0 {
		s.answer(p.running, p.columns, p.formats)
		return
	}
	if err := s.conclude(p.running, 0, p.running.result.Err); err != nil {
		s.fail(err)
		return
	}
	s.backend.Send(&pgproto3.EmptyQueryResponse{})
}

// dropPortals ends what was described and then not executed. (A real server
// keeps portals to the end of the transaction; pgx does not rely on it.)
func (s *session) dropPortals() {
	for name, p := range s.portals {
		if p.running != nil {
			_ = s.conclude(p.running, 0, errGone)
		}
		delete(s.portals, name)
	}
}
