//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// serverCredential returns the user to run the server as: nil for the present
// one; under root, which PostgreSQL refuses, the account of an installed server,
// else nobody.
func serverCredential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "_postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(account.Uid, 10, 32)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and no account postgres or nobody exists")
}

// temporaryFolder makes a folder that belongs to the server's user. Under root
// TMPDIR may lie where that user cannot go; then /tmp is taken.
func temporaryFolder(credential *syscall.Credential) (string, error) {
	parent := os.TempDir()
	if credential != nil && !open(parent) {
		parent = "/tmp"
	}
	folder, err := os.MkdirTemp(parent, "pgtest-")
	if err != nil {
		return "", err
	}
	if err := own(folder, credential); err != nil {
		_ = os.Remove(folder)
		return "", err
	}
	return folder, nil
}

// open reports whether everybody may go into a folder.
func open(folder string) bool {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	for {
		info, err := os.Stat(folder)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if folder == filepath.Dir(folder) {
			return true
		}
		folder = filepath.Dir(folder)
	}
}

// own gives a file to the server's user.
func own(file string, credential *syscall.Credential) error {
	if credential == nil {
		return nil
	}
	if err := os.Chown(file, int(credential.Uid), int(credential.Gid)); err != nil {
		return fmt.Errorf("giving %s to the server's user: %w", file, err)
	}
	return nil
}
