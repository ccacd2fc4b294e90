package integration_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	pgxModule     = "github.com/jackc/pgx/v5"
	pgxpoolImport = `"github.com/jackc/pgx/v5/pgxpool"`
	pgyieldImport = `pgxpool "github.com/pgyield/pgyield"`
	trackedImport = `pgxpool "suite/tracked"`
)

// TestPgxpoolSuite runs pgxpool's own tests over our Pool, with the one import
// line changed, as a program would change it. The required version of pgx brings
// them; nothing of them is kept here. What passes on pgxpool must pass here.
func TestPgxpoolSuite(t *testing.T) {
	dsn := newDatabase(t)
	baseline := runSuite(t, suiteModule(t, pgxpoolImport), dsn)
	for _, test := range []struct{ name, replacement, environment string }{
		{"import line", pgyieldImport, ""},
		// The suite again with every pool watched, so that at the end each can be
		// asked for permits that nobody holds; and with room for a single read.
		{"no permit left", trackedImport, ""},
		{"one read at a time", trackedImport, "SUITE_ONE_READ=1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			results := runSuite(t, suiteModule(t, test.replacement), dsn, test.environment)
			compareSuites(t, baseline, results)
		})
	}
}

// compareSuites wants every test of the baseline with the same outcome.
func compareSuites(t *testing.T, baseline, results map[string]string) {
	t.Helper()
	passed := 0
	for _, name := range slices.Sorted(maps.Keys(baseline)) {
		if results[name] != baseline[name] {
			t.Errorf("%s: %q on pgxpool, %q here", name, baseline[name], results[name])
		}
		if results[name] == "pass" {
			passed++
		}
	}
	t.Logf("%d of %d tests of pgxpool pass", passed, len(baseline))
	if passed != len(baseline) {
		t.Errorf("%d of %d tests of pgxpool pass", passed, len(baseline))
	}
}

// suiteModule lays pgxpool's tests into a module of their own, with their import
// of pgxpool replaced, and returns its folder.
func suiteModule(t *testing.T, replacement string) string {
	t.Helper()
	folder := t.TempDir()
	pgx := moduleFolder(t, pgxModule)
	root := moduleFolder(t, "github.com/pgyield/pgyield")
	copyGo(t, filepath.Join(pgx, "internal", "pgmock"), filepath.Join(folder, "internal", "pgmock"), func(name string) bool {
		return !strings.HasSuffix(name, "_test.go")
	})
	copyGo(t, filepath.Join(pgx, "pgxpool"), filepath.Join(folder, "pgxpool"), func(name string) bool {
		return strings.HasSuffix(name, "_test.go")
	})
	rewriteImports(t, filepath.Join(folder, "pgxpool"), strings.NewReplacer(
		pgxpoolImport, replacement,
		`"`+pgxModule+`/internal/pgmock"`, `"suite/internal/pgmock"`,
	))
	if replacement == trackedImport {
		writeFile(t, filepath.Join(folder, "tracked", "tracked.go"), trackedSource)
		writeFile(t, filepath.Join(folder, "pgxpool", "main_test.go"), trackedMainSource)
	}
	// This module's requirements hold all that the suite needs, with their sums.
	requirements, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(requirements), "\n")
	if !found {
		t.Fatal("go.mod has one line")
	}
	writeFile(t, filepath.Join(folder, "go.mod"), "module suite\n"+rest+
		"\nreplace github.com/pgyield/pgyield => "+root+
		"\nreplace github.com/pgyield/pgyield/pgtest => "+filepath.Join(root, "pgtest")+"\n")
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "go.sum"), string(sums))
	return folder
}

// moduleFolder returns where the go command has a required module.
func moduleFolder(t *testing.T, module string) string {
	t.Helper()
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list -m %s: %v", module, err)
	}
	return strings.TrimSpace(string(output))
}

// copyGo copies the Go files of a folder that are wanted.
func copyGo(t *testing.T, from, to string, wanted func(name string) bool) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	copied := 0
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") || !wanted(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(to, entry.Name()), string(text))
		copied++
	}
	if copied == 0 {
		t.Fatalf("%s has no Go file that is wanted", from)
	}
}

// rewriteImports changes import lines, and makes sure that no file keeps the old
// import of pgxpool where it is to be replaced.
func rewriteImports(t *testing.T, folder string, replacer *strings.Replacer) {
	t.Helper()
	err := filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(file, []byte(replacer.Replace(string(text))), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runSuite runs the tests of a suite module and returns the outcome of each test
// function: pass, fail or skip. The run itself must end well.
func runSuite(t *testing.T, folder, dsn string, environment ...string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "test", "-mod=mod", "-json", "-count=1", "-timeout=10m", "./pgxpool")
	cmd.Dir = folder
	cmd.Env = slices.Concat(os.Environ(), environment, []string{"GOWORK=off", "GOFLAGS=", "PGX_TEST_DATABASE=" + dsn})
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	output, runErr := cmd.Output()
	results, log := readResults(t, output)
	if len(results) == 0 {
		t.Fatalf("the suite did not run: %v\n%s%s", runErr, complaint.String(), log)
	}
	if runErr != nil {
		t.Errorf("the suite failed: %v\n%s%s", runErr, complaint.String(), log)
	}
	return results
}

// readResults reads the events of `go test -json`: the outcome of each test
// function, and what the failed ones and the program printed.
func readResults(t *testing.T, output []byte) (results map[string]string, log string) {
	t.Helper()
	results = map[string]string{}
	printed := map[string]*strings.Builder{}
	scanner := bufio.NewScanner(bytes.NewReader(output))
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			t.Fatalf("an event of go test: %v: %s", err, scanner.Bytes())
		}
		function, _, _ := strings.Cut(event.Test, "/")
		if printed[function] == nil {
			printed[function] = &strings.Builder{}
		}
		printed[function].WriteString(event.Output)
		if event.Test == "" || event.Test != function {
			continue
		}
		if event.Action == "pass" || event.Action == "fail" || event.Action == "skip" {
			results[function] = event.Action
		}
	}
	if err := errors.Join(scanner.Err()); err != nil {
		t.Fatal(err)
	}
	for _, function := range slices.Sorted(maps.Keys(printed)) {
		if results[function] != "pass" {
			log += fmt.Sprintf("--- %s\n%s", function, printed[function].String())
		}
	}
	return results, log
}
