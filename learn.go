package pgyield

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/intent"
)

// learnFunctions tells the classifier which user functions may write. It runs on the
// monitor's connection, so that it costs the pool none, and leaves no session state.
func (p *Pool) learnFunctions(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, intent.VolatileFunctions, pgx.QueryExecModeExec)
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
