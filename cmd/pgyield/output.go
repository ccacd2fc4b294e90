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

func reportAt(path string) output { return output{"report", path} }

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
	if info, err := os.Stat(part); part == o.path && err == nil && !info.Mode().IsRegular() {
		return nil // a pipe or a device is not opened: somebody may take that for the report
	}
	file, err := create(part, 0)
	if err != nil {
		return o.failed(err)
	}
	err = file.Close()
	if part != o.path {
		err = errors.Join(err, os.Remove(part))
	}
	return o.failed(err)
}

// create opens a file as os.Create does, but only to write: a pipe that were opened to be read
// as well would not wait for its reader.
func create(path string, flags int) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flags, 0o666) //nolint:gosec // the umask decides
}

func (o output) write(write func(io.Writer) error) error {
	part, err := o.part()
	if err != nil {
		return o.failed(err)
	}
	file, err := create(part, os.O_TRUNC)
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
