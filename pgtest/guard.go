//go:build unix

package pgtest

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// guardHead waits for the end of this process, whatever ends it: the pipe at its
// standard input then closes. A word on the pipe means that there is nothing left
// to do. A terminal's Ctrl-C is meant for the program, not for the guard.
const guardHead = `trap '' INT TERM HUP QUIT
read -r word && exit 0
`

// guard is a shell that cleans up when this process is gone.
type guard struct {
	pipe io.WriteCloser
	cmd  *exec.Cmd
	once sync.Once
}

// startGuard runs the script, with arguments as $1 and on, once this process has
// ended without having called release. The guard has a session of its own, so it
// survives what is sent to this process's group, and holds none of its files.
func startGuard(script string, credential *syscall.Credential, folder string, arguments ...string) (*guard, error) {
	//nolint:noctx // it is to outlive everything that a context could bound
	cmd := exec.Command("/bin/sh", append([]string{"-c", guardHead + script, "pgtest-guard"}, arguments...)...)
	cmd.Dir = folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: credential}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &guard{pipe: pipe, cmd: cmd}, nil
}

// release ends the guard without its script. It waits, so that no process of ours
// is left. A guard that guards nothing has nothing to release.
func (g *guard) release() {
	g.once.Do(func() {
		if g.cmd == nil {
			return
		}
		_, _ = io.WriteString(g.pipe, "done\n") // a guard that was killed needs no word
		_ = g.pipe.Close()
		_ = g.cmd.Wait()
	})
}

// containerGuard removes by label, since the container has no name yet when the
// guard starts, and may appear only after this process has died.
const containerGuard = `for try in 1 2 3; do
	for id in $(docker ps --all --quiet --filter "label=$1"); do
		docker rm --force --volumes "$id"
	done
	sleep 1
done
`

// guardContainer guards the container that carries a label. It needs Docker's
// command line; without it testcontainers' own reaper is what cleans up after a
// crash.
func guardContainer(name, value string) (*guard, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return &guard{}, nil //nolint:nilerr // no error, see above
	}
	return startGuard(containerGuard, nil, "/", name+"="+value)
}
