package integration_test

// trackedSource is a package that stands between the suite and ours: the same
// names, and each pool that is made is remembered.
const trackedSource = `package tracked

import (
	"context"
	"os"
	"sync"

	"github.com/pgyield/pgyield"
	"github.com/pgyield/pgyield/bulkhead"
)

type (
	Config                = pgyield.Config
	Conn                  = pgyield.Conn
	Pool                  = pgyield.Pool
	Tx                    = pgyield.Tx
	Stat                  = pgyield.Stat
	ShouldPingParams      = pgyield.ShouldPingParams
	AcquireTracer         = pgyield.AcquireTracer
	ReleaseTracer         = pgyield.ReleaseTracer
	TraceAcquireStartData = pgyield.TraceAcquireStartData
	TraceAcquireEndData   = pgyield.TraceAcquireEndData
	TraceReleaseData      = pgyield.TraceReleaseData
)

var (
	mu    sync.Mutex
	pools []*Pool
)

func remember(pool *Pool, err error) (*Pool, error) {
	if err == nil {
		mu.Lock()
		defer mu.Unlock()
		pools = append(pools, pool)
	}
	return pool, err
}

// limited has room for one read only, when the environment says so. (In the DSN
// it would reach connections that the suite opens without a pool.)
var limited = os.Getenv("SUITE_ONE_READ") != ""

func New(ctx context.Context, connString string) (*Pool, error) {
	if !limited {
		return remember(pgyield.New(ctx, connString))
	}
	config, err := pgyield.ParseConfig(connString)
	if err != nil {
		return nil, err
	}
	return NewWithConfig(ctx, config)
}

func NewWithConfig(ctx context.Context, config *Config) (*Pool, error) {
	if !limited {
		return remember(pgyield.NewWithConfig(ctx, config))
	}
	return remember(pgyield.NewWithOptions(ctx, config, pgyield.Options{
		Bulkhead: bulkhead.Options{Limit: 1, Ceiling: 1},
	}))
}

func ParseConfig(connString string) (*Config, error) { return pgyield.ParseConfig(connString) }

// Pools returns every pool that was made.
func Pools() []*Pool {
	mu.Lock()
	defer mu.Unlock()
	return pools
}
`

// trackedMainSource fails the suite when a permit is left at its end. A read whose
// connection is being closed keeps its permit for as long as pgx takes, 15 s at
// most.
const trackedMainSource = `package pgxpool_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"suite/tracked"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if len(tracked.Pools()) == 0 {
		fmt.Println("no pool was watched")
		code = 1
	}
	admitted := int64(0)
	for i, pool := range tracked.Pools() {
		deadline := time.Now().Add(20 * time.Second)
		for pool.ReadStat().Running() > 0 && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
		stat := pool.ReadStat()
		admitted += int64(stat.Admitted())
		if limited := os.Getenv("SUITE_ONE_READ") != ""; limited && stat.Ceiling() != 1 {
			fmt.Printf("pool %d has room for %d reads\n", i, stat.Ceiling())
			code = 1
		}
		if stat.Running() != 0 || stat.Waiting() != 0 {
			fmt.Printf("pool %d: %d permits held, %d reads waiting\n", i, stat.Running(), stat.Waiting())
			code = 1
		}
	}
	if admitted == 0 {
		fmt.Println("no read took a permit")
		code = 1
	}
	os.Exit(code)
}
`
