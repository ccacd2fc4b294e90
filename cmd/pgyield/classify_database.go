package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/intent"
)

// statStatements is the extension, and the name of its view.
const statStatements = "pg_stat_statements"

// ownMark is the comment in the statements of pgyield itself, the monitor's and this
// command's: they are not the application's.
const ownMark = "/* pgyield */"

// classifyDatabase learns a database's volatile functions and classifies what
// pg_stat_statements has of it, most called first.
func classifyDatabase(ctx context.Context, dsn string, classifier *intent.Classifier, report *classifyReport) error {
	config, err := pgyield.ParseConfig(dsn) // which may carry a pool's parameters
	if err != nil {
		return ofDSN(err)
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return ofDSN(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, intent.VolatileFunctions)
	if err != nil {
		return fmt.Errorf("learn which functions are volatile: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("learn which functions are volatile: %w", err)
	}
	classifier.Learn(names)

	schema, err := statStatementsSchema(ctx, conn)
	if err != nil {
		return err
	}
	return classifyStatStatements(ctx, conn, schema, classifier, report)
}

// statStatementsSchema finds the view, which need not be in the search path.
func statStatementsSchema(ctx context.Context, conn *pgx.Conn) (string, error) {
	var schema string
	err := conn.QueryRow(ctx, `select `+ownMark+` n.nspname::text from pg_catalog.pg_extension e
		join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = $1`, statStatements).Scan(&schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("%s is not installed in database %s: put it into shared_preload_libraries, restart, and create extension %[1]s",
			statStatements, conn.Config().Database)
	}
	return schema, err
}

func classifyStatStatements(ctx context.Context, conn *pgx.Conn, schema string, classifier *intent.Classifier, report *classifyReport) error {
	// A statement that many users ran has many rows.
	rows, err := conn.Query(ctx, `select `+ownMark+` coalesce(queryid, 0), sum(calls)::bigint, count(*), coalesce(query, '')
		from `+pgx.Identifier{schema, statStatements}.Sanitize()+`
		where dbid = (select oid from pg_catalog.pg_database where datname = current_database())
		group by 1, 4 order by 2 desc, 1`)
	if err != nil {
		return fmt.Errorf("read %s: %w", statStatements, err)
	}
	var (
		id, calls int64
		n         int // rows; those whose text is hidden are one group
		sql       string
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &calls, &n, &sql}, func() error {
		if strings.Contains(sql, ownMark) {
			return nil
		}
		if sql == "" || sql == "<insufficient privilege>" {
			report.hidden += n
			return nil
		}
		v := classifier.Explain(sql)
		return report.add(classified{
			Source: statStatements, Intent: v.Intent.String(), DML: v.DML, Reason: v.Reason,
			Offset: v.Offset, Line: v.Line, Column: v.Column, SQL: sql, QueryID: id, Calls: calls,
		})
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", statStatements, err)
	}
	return nil
}
