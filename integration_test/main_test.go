// Package integration_test holds the tests that need a server, a container, an
// oracle or a peer. It has no code of its own.
package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

// TestMain ends every server that the tests had started. They start with the
// first test that asks for one, so that a test that needs none costs none.
func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(shared.stop(), stopVersions()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// TestSharedServer holds the promise of newDatabase: an own database each.
func TestSharedServer(t *testing.T) {
	ctx := context.Background()
	first, second := connectTo(t, newDatabase(t)), connectTo(t, newDatabase(t))
	if _, err := first.Exec(ctx, "create table only_here ()"); err != nil {
		t.Fatal(err)
	}
	var seen bool
	if err := second.QueryRow(ctx, "select to_regclass('only_here') is not null").Scan(&seen); err != nil {
		t.Fatal(err)
	}
	if seen {
		t.Error("two tests were given one database")
	}
}

// TestVersions proves that each container runs the version that it stands for.
func TestVersions(t *testing.T) {
	for _, version := range postgresVersions {
		t.Run(version, func(t *testing.T) {
			conn := connectTo(t, versionDSN(t, version))
			var major string
			err := conn.QueryRow(context.Background(),
				"select current_setting('server_version_num')::int / 10000 || ''").Scan(&major)
			if err != nil {
				t.Fatal(err)
			}
			if major != version {
				t.Errorf("version %s was asked for, %s runs", version, major)
			}
		})
	}
}
