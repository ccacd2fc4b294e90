package pgyield_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/bulkhead"
	"github.com/pgyield/pgyield/internal/pgfake"
)

// server stands in for a Postgres, so that the examples run anywhere.
func server(params ...string) (config *pgyield.Config, stop func()) {
	fake := pgfake.New(pgfake.Options{})
	config, err := pgyield.ParseConfig(fake.ConnString(params...))
	if err != nil {
		panic(err)
	}
	fake.Attach(&config.ConnConfig.Config)
	return config, fake.Close
}

// A pool of 10 lets 8 reads run at once to start with: the rest is the writes'.
func ExampleNewWithConfig() {
	ctx := context.Background()
	config, stop := server("pool_max_conns=10")
	defer stop()

	pool, err := pgyield.NewWithConfig(ctx, config)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()

	var n int
	err = pool.QueryRow(ctx, "select generate_series(1, 3)").Scan(&n)
	fmt.Println(err, pool.ReadStat().Limit(), pool.ReadStat().Running())
	// Output: <nil> 8 0
}

// A read that may not wait is refused, before any SQL was sent, with the time after
// which it is worth another try.
func ExampleRefusedError() {
	ctx := pgyield.WithCaller(context.Background(), "reports")
	config, stop := server("pool_max_conns=10")
	defer stop()

	pool, err := pgyield.NewWithOptions(ctx, config, pgyield.Options{
		Bulkhead: bulkhead.Options{Ceiling: 1, MaxWaiting: -1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()

	conn, err := pool.AcquireRead(ctx) // takes the one permit there is
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Release()

	_, err = pool.Query(ctx, "select id from orders")
	var refused *pgyield.RefusedError
	if errors.As(err, &refused) {
		fmt.Println(refused.Caller, refused.Reason, refused.RetryAfter > 0)
	}
	// Output: reports limit true
}
