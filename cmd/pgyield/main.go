// Command pgyield shows and examines what the module pgyield does: reads that
// yield to writes on one Postgres.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line. A command's Run gets the context, which ends with
// Ctrl-C, and the *kong.Context, whose Stdout and Stderr it writes to.
type cli struct {
	Demo demoCmd `cmd:"" help:"Run the same mixed load through plain pgxpool and through pgyield; print a table, write a report."`
}

// exitInterrupted is what a shell expects of a command that Ctrl-C ended.
const exitInterrupted = 130

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal starts the clean-up; a second one must be able to end it.
	context.AfterFunc(ctx, stop)

	parser, err := kong.New(&cli{},
		kong.Name("pgyield"),
		kong.Description("Reads that yield to writes on one Postgres."),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgyield:", err)
		return 1
	}
	command, err := parser.Parse(args)
	parser.FatalIfErrorf(err)
	err = command.Run()
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "pgyield: interrupted")
		return exitInterrupted
	}
	fmt.Fprintln(os.Stderr, trimPrefix(err))
	return 1
}

// trimPrefix is the text of err with the command's name before it exactly once.
func trimPrefix(err error) string {
	text := err.Error()
	const prefix = "pgyield: "
	if len(text) >= len(prefix) && text[:len(prefix)] == prefix {
		return text
	}
	return prefix + text
}
