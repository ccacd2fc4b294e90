//go:build !unix

package pgtest

import (
	"context"
	"fmt"
	"runtime"
)

// startLocal needs process groups and a shell that outlives this process.
func startLocal(context.Context, Options) (*Server, error) {
	return nil, fmt.Errorf("a local server is not started on %s", runtime.GOOS)
}
