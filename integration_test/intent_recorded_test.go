package integration_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pgyield/pgyield/integration_test/oracle"
	"github.com/pgyield/pgyield/intent"
	"github.com/pgyield/pgyield/internal/statements"
)

// TestRecorded judges what real programs send to a real server. The texts are
// recorded as they are sent; none is kept here.
func TestRecorded(t *testing.T) {
	dsn := newDatabase(t)
	if _, err := connectTo(t, dsn).Exec(context.Background(), statements.Schema); err != nil {
		t.Fatal(err)
	}
	r := newRecorder(t, dsn)
	t.Run("pgbench", func(t *testing.T) {
		run(t, program(t, "pgbench"), "--initialize", "--scale=1", "--foreign-keys", r.dsn)
		for _, mode := range []string{"simple", "extended", "prepared"} {
			for _, script := range []string{"tpcb-like", "simple-update", "select-only"} {
				run(t, program(t, "pgbench"), "--protocol="+mode, "--builtin="+script, "--transactions=20", "--no-vacuum", r.dsn)
			}
		}
		judge(t, r.take(), 20)
	})
	t.Run("psql", func(t *testing.T) {
		// From its input, for there it goes on where a command finds nothing.
		psql := exec.Command(program(t, "psql"), "--no-psqlrc", "--dbname="+r.dsn)
		psql.Stdin = strings.NewReader(strings.Join([]string{
			`\d`, `\d+`, `\d t`, `\d+ t`, `\d+ v`, `\d s`, `\d+ "update"`, `\d+ pg_class`, `\dt+ *.*`, `\di+`, `\dv`, `\dm`, `\ds`, `\df+`, `\dfS`,
			`\da`, `\db+`, `\dc`, `\dC+`, `\dd`, `\dD+`, `\ddp`, `\des+`, `\det`, `\deu`, `\dew`, `\dF+`, `\dFd`, `\dFp`, `\dFt`, `\dg+`, `\dL+`,
			`\dn+`, `\do+`, `\dO`, `\dp`, `\dP+`, `\drds`, `\dRp+`, `\dRs`, `\dT+`, `\du+`, `\dx+`, `\dX`, `\dy`, `\l+`, `\z`, `\sf app.charge`, `\sv v`,
		}, "\n"))
		if output, err := psql.CombinedOutput(); err != nil {
			t.Fatalf("psql: %v\n%s", err, output)
		}
		judge(t, r.take(), 60)
	})
	t.Run("pg_dump", func(t *testing.T) {
		run(t, program(t, "pg_dump"), "--dbname="+r.dsn)
		run(t, program(t, "pg_dump"), "--inserts", "--dbname="+r.dsn)
		judge(t, r.take(), 40)
	})
	t.Run("pgx", func(t *testing.T) {
		// What its tests expect of a database; roles are left alone, for the server may
		// be somebody's, and the few tests that want them fail.
		_, err := connectTo(t, dsn).Exec(context.Background(),
			"create extension hstore; create extension ltree; create domain uint64 as numeric(20,0)")
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command("go", "test", "-count=1", ".", "./pgconn", "./pgtype", "./pgxpool", "./stdlib", "./tracelog")
		command.Dir = moduleFolder(t, pgxModule)
		command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly",
			"PGX_TEST_DATABASE="+r.dsn, "PGX_TEST_TCP_CONN_STRING="+r.dsn)
		output, err := command.CombinedOutput()
		texts := r.take()
		if len(texts) < 600 {
			t.Fatalf("pgx's tests (go test in its module) sent only %d texts: %v\n%s", len(texts), err, output)
		}
		judge(t, texts, 400)
	})
}

// judge holds the texts to the oracle: no write may be called a read, and few
// reads a write. At least so many must be reads.
func judge(t *testing.T, texts []string, least int) {
	t.Helper()
	var reads, writes, refused int
	lost := map[string]int{}
	for _, text := range texts {
		got := intent.Of(text)
		want, err := oracle.Judge(text)
		switch {
		case err != nil:
			refused++
		case want.Write:
			writes++
			if got != intent.Write {
				t.Errorf("a write (%s) is called %v:\n%q", want.Why, got, text)
			}
		case got == intent.Write:
			lost[new(intent.Classifier).Explain(text).Reason]++
		default:
			reads++
			if got == intent.Trivial && !want.Trivial {
				t.Errorf("called trivial, and is not:\n%q", text)
			}
		}
	}
	missed := 0
	for _, reason := range slices.Sorted(maps.Keys(lost)) {
		missed += lost[reason]
		t.Logf("%d reads are called writes: %s", lost[reason], reason)
	}
	t.Logf("%d texts: %d writes, %d reads, %d reads called writes, %d do not parse", len(texts), writes, reads, missed, refused)
	if reads < least {
		t.Errorf("only %d reads were recorded, want %d", reads, least)
	}
	if missed*50 > reads {
		t.Errorf("%d of %d reads are called writes", missed, reads+missed)
	}
}

// program finds a client program of PostgreSQL, which Debian keeps out of PATH.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob(filepath.Join("/usr/lib/postgresql/*/bin", name))
	if err != nil || len(found) == 0 {
		t.Fatalf("this test needs %s (PostgreSQL's client programs), in PATH or under /usr/lib/postgresql", name)
	}
	return found[len(found)-1]
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	command := exec.Command(name, args...)
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, output.String())
	}
}
