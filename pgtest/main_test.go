package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// envHelper makes the test binary a program that uses the package; its value says
// what the program does once its server runs.
const envHelper = "PGTEST_HELPER"

func TestMain(m *testing.M) {
	if task := os.Getenv(envHelper); task != "" {
		os.Exit(helper(task))
	}
	os.Exit(m.Run())
}

// helper is that program. It never stops its server.
func helper(task string) int {
	way := Local
	switch os.Getenv("PGTEST_WAY") {
	case "docker":
		way = Docker
	case "auto":
		way = Auto
	}
	if task == "nothing-usual" {
		binaryFolders = nil
	}
	server, err := Start(context.Background(), Options{Way: way})
	if err != nil {
		fmt.Println(err)
		if errors.Is(err, ErrNotFound) {
			return 3
		}
		return 1
	}
	folder, err := dataFolder(server.DSN())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(server.DSN(), folder)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is told to end, or a signal ends it
	if task == "panic" {
		go panic("on a goroutine that no test recovers")
		select {}
	}
	return 7
}

// dataFolder asks a server where its files are.
func dataFolder(dsn string) (string, error) {
	answer, err := ask(context.Background(), dsn)
	return answer.folder, err
}

// program is a helper that runs.
type program struct {
	cmd    *exec.Cmd
	input  io.Closer
	output *bufio.Reader
}

// startProgram runs this test binary as the helper, with more environment.
func startProgram(t *testing.T, binary, task string, environment ...string) *program {
	t.Helper()
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), append(environment, envHelper+"="+task)...)
	cmd.Dir = "/"
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	return &program{cmd: cmd, input: input, output: bufio.NewReader(output)}
}

// run starts the helper and returns the first line that it prints.
func (p *program) run(t *testing.T) string {
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := p.output.ReadString('\n')
	if err != nil {
		t.Fatalf("the helper printed no line: %v", err)
	}
	return strings.TrimSpace(line)
}

// server runs the helper and returns its server's DSN and data folder.
func (p *program) server(t *testing.T) (dsn, folder string) {
	t.Helper()
	line := p.run(t)
	dsn, folder, ok := strings.Cut(line, " ")
	if !ok || !strings.HasPrefix(dsn, "postgres://") {
		t.Fatalf("the helper has no server: %s", line)
	}
	return dsn, folder
}

// image returns an image that is here, the official one first.
func image(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"postgres:17-alpine", "pgyield-postgres:17"} {
		if exec.Command("docker", "image", "inspect", name).Run() == nil {
			return name
		}
	}
	if os.Getenv("PGYIELD_VERSIONS") != "" {
		t.Fatal("there is no image of Postgres 17; `make images` pulls or builds it")
	}
	if exec.Command("docker", "version").Run() != nil {
		t.Skip("there is no Docker daemon")
	}
	return "postgres:17-alpine"
}

// query returns the single value of a query.
func query[T any](t *testing.T, dsn, sql string) T {
	t.Helper()
	ctx := context.Background()
	conn, err := connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	var value T
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

// eventually polls, since other processes say nothing when they are done.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after 20 s still not: %s", what)
		}
	}
}

func answers(dsn string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := connect(ctx, dsn)
	if err != nil {
		return false
	}
	closeConn(conn)
	return true
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
