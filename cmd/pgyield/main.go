// Command pgyield shows and examines what the module pgyield does: reads that
// yield to writes on one Postgres.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line. A command's Run gets the context, which ends with
// Ctrl-C, and the *kong.Context, whose Stdout and Stderr it writes to.
type cli struct {
	Version kong.VersionFlag `help:"Print the version and what it was built with."`

	Demo     demoCmd     `cmd:"" help:"Run the same mixed load through plain pgxpool and through pgyield; print a table, write a report."`
	Bench    benchCmd    `cmd:"" help:"Measure pgyield beside plain pgxpool, fixed read pools and other limiters; print a table, write a report."`
	Classify classifyCmd `cmd:"" help:"Say of SQL statements whether the pool would call them reads or writes, and why."`
	Size     sizeCmd     `cmd:"" help:"Say what a limit will refuse, held by one process, split over many, or shared by a fleet."`
	Watch    watchCmd    `cmd:"" help:"Show the write pressure of a live database, period by period, beside what would press; gate nothing."`
}

// The exit codes; a shell expects the last of a command that Ctrl-C ended.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

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
		kong.Description("Reads that yield to writes on one Postgres.\n\n"+
			"The exit code is 0 when all went well, 1 when something failed, 2 when the command line is wrong, 130 when Ctrl-C broke it off"+
			" (watch just ends so: 0)."),
		kong.Vars{"version": version()},
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgyield:", err)
		return exitFailed
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s\nTry '%s --help'.\n", withPrefix(err), asked(err))
		return exitUsage
	}
	err = command.Run()
	code, said := outcome(ctx.Err() != nil, err)
	for _, line := range said {
		fmt.Fprintln(os.Stderr, line)
	}
	return code
}

// asked is the command that a wrong command line was about, as far as it names one.
func asked(err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok || wrong.Context.Selected() == nil {
		return "pgyield"
	}
	return wrong.Context.Selected().FullPath()
}

// flagError is an error that a flag's value led to.
type flagError struct {
	flag string
	err  error
}

func (e flagError) Error() string { return e.flag + ": " + strings.TrimPrefix(e.err.Error(), prefix) }

func (e flagError) Unwrap() error { return e.err }

// ofDSN names the flag in an error of the database that it gave.
func ofDSN(err error) error { return flagError{"--dsn", err} }

// cleanupError is something of ours that is left in somebody's database.
type cleanupError struct{ error }

func (e cleanupError) Unwrap() error { return e.error }

// outcome is the exit code for a command's error, and what is to be said of it. A
// command that was interrupted has nothing to explain but what it left behind.
func outcome(interrupted bool, err error) (code int, said []string) {
	if err == nil {
		return 0, nil
	}
	if !interrupted || !errors.Is(err, context.Canceled) {
		return exitFailed, []string{withPrefix(err)}
	}
	said = []string{"pgyield: interrupted"}
	if left, ok := errors.AsType[cleanupError](err); ok {
		said = append(said, withPrefix(left))
	}
	return exitInterrupted, said
}

const prefix = "pgyield: "

// withPrefix is the text of err with the command's name before it exactly once.
func withPrefix(err error) string {
	return prefix + strings.TrimPrefix(err.Error(), prefix)
}
