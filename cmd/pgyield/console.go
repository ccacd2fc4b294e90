package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// console is where a command talks to a person: results go to out, what it is
// doing to err, as moving bars when that is a terminal and as lines when not.
type console struct {
	out, err io.Writer
	terminal bool
	mu       sync.Mutex // guards err
}

func newConsole(out, err io.Writer) *console {
	file, isFile := err.(*os.File)
	return &console{out: out, err: err, terminal: isFile && term.IsTerminal(int(file.Fd()))}
}

// sayf prints one line about what is going on.
func (c *console) sayf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.err, format+"\n", args...)
}

// progress is a bar from 0 to its total; the zero one shows nothing.
type progress struct {
	console *console
	what    string
	bar     *progressbar.ProgressBar // nil when not on a terminal
	begun   time.Time
}

func (c *console) progress(what string, total int) *progress {
	p := &progress{console: c, what: what, begun: time.Now()}
	if !c.terminal {
		c.sayf("%s ...", what)
		return p
	}
	p.bar = progressbar.NewOptions(total,
		progressbar.OptionSetWriter(c.err),
		progressbar.OptionSetDescription(fmt.Sprintf("%-28s", what)),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionOnCompletion(func() { fmt.Fprintln(c.err) }))
	return p
}

func (p *progress) set(n int) {
	if p.bar != nil {
		_ = p.bar.Set(n) // a bar that cannot be drawn is no reason to stop
	}
}

// done ends the bar: full when the work succeeded, as it stands when it failed.
func (p *progress) done(err error) {
	switch {
	case p.bar != nil && err == nil:
		_ = p.bar.Finish()
	case p.bar != nil:
		_ = p.bar.Exit()
		fmt.Fprintln(p.console.err)
	case err == nil && p.console != nil:
		p.console.sayf("%s: done in %.1f s", p.what, time.Since(p.begun).Seconds())
	}
}
