package pgtest

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// recorder is a test that notes that it was to fail.
type recorder struct {
	testing.TB
	fatal bool
}

func (r *recorder) Fatal(...any) {
	r.fatal = true
	runtime.Goexit()
}

func itoa(n int) string { return strconv.Itoa(n) }

func TestBadOptions(t *testing.T) {
	t.Setenv(EnvDSN, "")
	for _, test := range []struct {
		options Options
		want    string
	}{
		{Options{Way: -1}, "Options.Way -1"},
		{Options{Way: 4}, "Options.Way 4"},
		{Options{Way: Given}, EnvDSN},
		{Options{Version: "17.2"}, "Options.Version"},
		{Options{Version: "12"}, "below 13"},
		{Options{StartTimeout: -time.Second}, "Options.StartTimeout"},
		{Options{Settings: map[string]string{"a=b -c": "1"}}, "Options.Settings"},
	} {
		_, err := Start(context.Background(), test.options)
		if err == nil || !strings.HasPrefix(err.Error(), "pgyield: ") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q in it", test.options, err, test.want)
		}
	}
}

func TestImageDefault(t *testing.T) {
	for _, test := range []struct{ environment, option, version, want string }{
		{"", "", "", "postgres:17-alpine"},
		{"", "", "15", "postgres:15-alpine"},
		{"mine:1", "", "15", "mine:1"},
		{"mine:1", "yours:2", "", "yours:2"},
	} {
		t.Setenv(EnvImage, test.environment)
		options, err := Options{Image: test.option, Version: test.version}.withDefaults()
		if err != nil || options.Image != test.want {
			t.Errorf("%+v: %s, %v", test, options.Image, err)
		}
	}
}

func TestArguments(t *testing.T) {
	options := Options{Fast: true, Settings: map[string]string{"fsync": "on", "work_mem": "64MB", "a.b": "x y"}}
	want := []string{
		"-c", "a.b=x y", "-c", "fsync=on", "-c", "full_page_writes=off",
		"-c", "synchronous_commit=off", "-c", "work_mem=64MB",
	}
	if got := options.arguments(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWithDatabase(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u:p@h:1/old?sslmode=disable":          "postgres://u:p@h:1/new?sslmode=disable",
		"postgresql://h":                                  "postgresql://h/new",
		"postgres:///?host=%2Ftmp&dbname=old&database=ol": "postgres:///new?host=%2Ftmp",
		"postgres://h/old?options=-c%20a%3Db%2Bc":         "postgres://h/new?options=-c%20a%3Db%2Bc",
		"postgres://u:p%2F@h/a%2Fb":                       "postgres://u:p%2F@h/new",
		"host=h dbname=old":                               "host=h dbname=old dbname=new",
	} {
		if got, err := withDatabase(dsn, "new"); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", dsn, got, err, want)
		}
	}
	if _, err := withDatabase("postgres://u:secret@h:bad port/", "new"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a DSN that is no URL: %v", err)
	}
}

func TestWayString(t *testing.T) {
	for way, want := range map[Way]string{Auto: "auto", Given: "given", Local: "local", Docker: "docker", 9: "Way(9)"} {
		if way.String() != want {
			t.Errorf("%d is %q, want %q", int(way), way, want)
		}
	}
}

func TestTail(t *testing.T) {
	if got := tail([]byte("1\n2\n3\n4\n5\n6\n7\n8\n")); got != "3 | 4 | 5 | 6 | 7 | 8" {
		t.Errorf("got %q", got)
	}
	if got := tail(nil); got != "" {
		t.Errorf("got %q", got)
	}
}

// fakePrograms lays programs that only tell a version into a folder.
func fakePrograms(t *testing.T, folder, version string) string {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		script := "#!/bin/sh\necho '" + name + " (PostgreSQL) " + version + "'\n"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestFindInstallation(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the fake programs are shell scripts")
	}
	root := t.TempDir()
	inPath := fakePrograms(t, filepath.Join(root, "path"), "14.3")
	linked := filepath.Join(root, "links")
	if err := os.Mkdir(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(inPath, "postgres"), filepath.Join(linked, "postgres")); err != nil {
		t.Fatal(err)
	}
	fakePrograms(t, filepath.Join(root, "lib", "9.6", "bin"), "9.6.24")
	fifteen := fakePrograms(t, filepath.Join(root, "lib", "15", "bin"), "15.1 (Debian)")
	eighteen := fakePrograms(t, filepath.Join(root, "lib", "18", "bin"), "18beta1")
	if err := os.MkdirAll(filepath.Join(root, "lib", "19", "bin"), 0o755); err != nil { // a client alone
		t.Fatal(err)
	}
	usual := binaryFolders
	t.Cleanup(func() { binaryFolders = usual })
	binaryFolders = []string{filepath.Join(root, "lib", "*", "bin")}

	for _, test := range []struct{ name, path, version, want string }{
		{"PATH first", inPath, "", inPath},
		{"a link in PATH", linked, "", inPath},
		{"the newest", "/nonexistent", "", eighteen},
		{"the version in PATH does not fit", inPath, "15", fifteen},
		{"by version", "/nonexistent", "15", fifteen},
		{"too old", "/nonexistent", "96", ""},
		{"none", "/nonexistent", "17", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("PATH", test.path)
			found, err := findInstallation(context.Background(), test.version)
			if found.folder != test.want || (err == nil) != (test.want != "") {
				t.Errorf("found %q, want %q: %v", found.folder, test.want, err)
			}
			if err != nil && !strings.Contains(err.Error(), "9.6/bin: version 9") {
				t.Errorf("the error does not tell what is there: %v", err)
			}
		})
	}
}
