// Package pgtest finds or starts a PostgreSQL server for tests and demos.
//
// It tries three ways, in this order:
//
//  1. a server that runs already, named by [Options.DSN] or by PGYIELD_DSN;
//  2. the server programs of this machine, found in PATH or where Debian, Red
//     Hat, Alpine, Homebrew and Postgres.app put them: a new cluster in a
//     temporary folder, on a free loopback port, as an unprivileged user when
//     the program is run as root, since PostgreSQL refuses root;
//  3. Docker, through testcontainers-go, with the image of [Options.Image] or of
//     PGYIELD_IMAGE.
//
// The trap is what stays behind. A deferred call runs neither when another
// goroutine panics, nor at os.Exit, nor at a signal, and a signal handler of a
// library would take the signal from the program. So a small shell, which holds
// the other end of a pipe, watches this process: when the process is gone, for
// whatever reason, kill -9 included, the kernel closes the pipe, and the shell
// stops the server and removes its files.
//
// A server is started as it would run in production, with fsync on, because what
// writes cost is what tests of load are about. [Options.Fast] gives that up.
package pgtest
