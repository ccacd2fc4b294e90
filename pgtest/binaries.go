package pgtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// binaryFolders are patterns of the folders where distributions put the server
// programs, most of them outside PATH.
var binaryFolders = []string{
	"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                                   // Red Hat, from PostgreSQL's own packages
	"/usr/libexec/postgresql*",                           // Alpine
	"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew on ARM
	"/usr/local/opt/postgresql@*/bin",                    // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",    // Homebrew on Linux
	"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	"/usr/local/pgsql/bin",                               // built from source
}

// programs are what a folder must hold to count.
var programs = []string{"initdb", "pg_ctl", "postgres"}

// installation is one folder of server programs.
type installation struct {
	folder string
	major  int
}

func (i installation) program(name string) string { return filepath.Join(i.folder, name) }

var versionOutput = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// findInstallation returns the programs to use: those in PATH, else the newest,
// of the major version if one is named.
func findInstallation(ctx context.Context, version string) (installation, error) {
	var known []string
	inPath := pathFolder()
	if inPath != "" {
		found, err := inspect(ctx, inPath)
		if err == nil && fits(found, version) {
			return found, nil
		}
		known = append(known, describe(inPath, found, err))
	}
	var others []installation
	for _, pattern := range binaryFolders {
		folders, _ := filepath.Glob(pattern) // the only error is of a bad pattern
		for _, folder := range folders {
			if !complete(folder) {
				continue
			}
			found, err := inspect(ctx, folder)
			if err == nil && fits(found, version) {
				others = append(others, found)
				continue
			}
			known = append(known, describe(folder, found, err))
		}
	}
	if len(others) > 0 {
		return slices.MaxFunc(others, func(a, b installation) int { return cmp.Compare(a.major, b.major) }), nil
	}
	return installation{}, missing(version, known)
}

// fits reports whether an installation is of the wanted version.
func fits(found installation, version string) bool {
	return found.major >= minVersion && (version == "" || strconv.Itoa(found.major) == version)
}

// describe says in a word why an installation does not count.
func describe(folder string, found installation, err error) string {
	if err != nil {
		return fmt.Sprintf("%s: %v", folder, err)
	}
	return fmt.Sprintf("%s: version %d", folder, found.major)
}

func missing(version string, known []string) error {
	wanted := fmt.Sprintf("version %d or later", minVersion)
	if version != "" {
		wanted = "version " + version
	}
	text := fmt.Sprintf("no %s of %s in PATH or in the usual folders", strings.Join(programs, ", "), wanted)
	if len(known) > 0 {
		text += " (there is " + strings.Join(known, "; ") + ")"
	}
	return fmt.Errorf("%s", text)
}

// pathFolder returns the folder of the server programs in PATH, or "". A link,
// such as Homebrew sets, is followed, as the programs find each other by their
// folder.
func pathFolder() string {
	file, err := exec.LookPath("postgres")
	if err != nil {
		return ""
	}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil || !complete(folder) {
		return ""
	}
	return folder
}

func complete(folder string) bool {
	for _, name := range programs {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			return false
		}
	}
	return true
}

// inspect asks the programs in a folder for their version.
func inspect(ctx context.Context, folder string) (installation, error) {
	found := installation{folder: folder}
	output, err := exec.CommandContext(ctx, found.program("postgres"), "--version").Output()
	if err != nil {
		return found, fmt.Errorf("postgres --version: %w", err)
	}
	match := versionOutput.FindSubmatch(output)
	if match == nil {
		return found, fmt.Errorf("postgres --version says %q", strings.TrimSpace(string(output)))
	}
	found.major, err = strconv.Atoi(string(match[1]))
	return found, err
}
