package pgtest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgyield/pgyield/pgtest"
)

// A test that needs a server, and an empty database of its own on it.
func ExampleNew() {
	_ = func(t *testing.T) {
		server := pgtest.New(t, pgtest.Options{})
		conn, err := pgx.Connect(t.Context(), server.Database(t))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
	}
}

// A program that brings its own server.
func ExampleStart() {
	ctx := context.Background()
	server, err := pgtest.Start(ctx, pgtest.Options{
		Settings: map[string]string{"max_connections": "50"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Stop()

	conn, err := pgx.Connect(ctx, server.DSN())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close(ctx)
	var sum int
	err = conn.QueryRow(ctx, "select 1 + 1").Scan(&sum)
	fmt.Println(sum, err)
	// Output: 2 <nil>
}
