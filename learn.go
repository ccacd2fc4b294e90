package pgyield

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// volatileFunctions names the functions of the database's users that may write: those
// declared volatile, and the aggregates over them, which are themselves always stored
// as immutable. Procedures cannot be called in a query, nor can trigger functions.
const volatileFunctions = `
WITH risky AS (
	SELECT oid, proname FROM pg_catalog.pg_proc
	WHERE oid >= 16384 AND provolatile = 'v' AND prokind <> 'p'
	  AND prorettype NOT IN ('pg_catalog.trigger'::pg_catalog.regtype, 'pg_catalog.event_trigger'::pg_catalog.regtype)
)
SELECT proname::text FROM risky
UNION
SELECT p.proname::text
FROM pg_catalog.pg_aggregate a
JOIN pg_catalog.pg_proc p ON p.oid = a.aggfnoid
WHERE a.aggfnoid >= 16384 AND EXISTS (
	SELECT FROM risky WHERE risky.oid IN (
		a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)
)`

// learnFunctions tells the classifier which user functions may write. It runs on the
// monitor's connection, so that it costs the pool none, and leaves no session state.
func (p *Pool) learnFunctions(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, volatileFunctions, pgx.QueryExecModeExec)
	if err != nil {
		return fmt.Errorf("learn which functions are volatile: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("learn which functions are volatile: %w", err)
	}
	p.classifier.Learn(names)
	return nil
}
