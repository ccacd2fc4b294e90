package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// output is where a command's file goes.
type output struct {
	what string // what an error calls it
	path string
}

// part is where the file grows: beside its place, so that an older one is never half
// overwritten. A link, a device or a pipe that is there already is written to as it is; it
// must not be replaced by a file.
func (o output) part() (string, error) {
	info, err := os.Lstat(o.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() {
		return o.path + ".part", nil
	}
	if err == nil {
		if info, err = os.Stat(o.path); errors.Is(err, fs.ErrNotExist) {
			return o.path, nil // a link to what is not there yet
		}
	}
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder, must be a file", o.path)
	}
	return o.path, err
}

// try finds out before a long run what would else go wrong after it.
func (o output) try() error {
	if o.path == "" {
		return nil
	}
	part, err := o.part()
	if err != nil {
		return o.failed(err)
	}
	if part == o.path {
		return o.failed(tryLink(part))
	}
	file, err := os.Create(part)
	if err == nil {
		err = errors.Join(file.Close(), os.Remove(part))
	}
	return o.failed(err)
}

// tryLink finds out whether what a link leads to may be written, and leaves it as it is. A
// pipe or a device is not opened: somebody may take that for the report.
func tryLink(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666) //nolint:gosec // as os.Create: the umask decides
	if err != nil {
		return err
	}
	return file.Close()
}

func (o output) write(write func(io.Writer) error) error {
	part, err := o.part()
	if err != nil {
		return o.failed(err)
	}
	// A pipe that were opened to be read as well would not wait for its reader.
	file, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666) //nolint:gosec // as os.Create: the umask decides
	if err != nil {
		return o.failed(err)
	}
	err = errors.Join(write(file), file.Close())
	if part == o.path {
		return o.failed(err)
	}
	if err == nil {
		err = os.Rename(part, o.path)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return o.failed(err)
}

func (o output) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pgyield: %s: %w", o.what, err)
}
