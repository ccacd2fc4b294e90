package pressure

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// pollName is what the poll's statement is called on the server where it is prepared.
const pollName = "pgyield_poll"

// prepare returns what to run the poll by: its text, or its name where it could be
// prepared. To parse and plan the poll is a third of what it costs, but only a server
// to which nothing stands between is sure to know the statement again.
func (p *Poller) prepare(ctx context.Context, sql string) (statement string, err error) {
	switch {
	case !p.direct:
		return sql, nil
	case p.prepared == sql:
		return pollName, nil
	case p.prepared != "":
		p.prepared = ""
		if err := p.conn.Deallocate(ctx, pollName); err != nil {
			return "", err
		}
	}
	if _, err := p.conn.Prepare(ctx, pollName, sql); err != nil {
		return "", err
	}
	p.prepared = sql
	return pollName, nil
}

// shared is true when the server does not know the prepared statement any more, or knows
// one that another client has left: something between us passes sessions on.
func shared(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) &&
		(answer.Code == "26000" || answer.Code == "42P05") // invalid_sql_statement_name, duplicate_prepared_statement
}
