package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

func hello(w io.Writer) error {
	_, err := io.WriteString(w, "hello")
	return err
}

// TestOutputKeepsWhatIsNoFile: a link, a pipe and a device stay what they are.
func TestOutputKeepsWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	target, link, dangling, pipe := filepath.Join(folder, "target"), filepath.Join(folder, "link"), filepath.Join(folder, "dangling"), filepath.Join(folder, "pipe")
	err := errors.Join(os.WriteFile(target, []byte("something longer"), 0o600), os.Symlink(target, link),
		os.Symlink(filepath.Join(folder, "new"), dangling), syscall.Mkfifo(pipe, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		text, err := os.ReadFile(pipe)
		if err != nil {
			t.Error(err)
		}
		read <- string(text)
	}()
	for _, path := range []string{link, dangling, pipe} {
		out := reportAt(path)
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(out.try(), out.write(hello)); err != nil {
			t.Error(err)
		}
		after, err := os.Lstat(path)
		if err != nil || !os.SameFile(before, after) {
			t.Errorf("%s is now %v, %v", path, after, err)
		}
	}
	select {
	case text := <-read:
		if text != "hello" {
			t.Errorf("the pipe's reader got %q", text)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing was written to the pipe")
	}
	for _, path := range []string{target, filepath.Join(folder, "new")} {
		if text, err := os.ReadFile(path); err != nil || string(text) != "hello" {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*.part")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestOutputTriesLinks: one that leads nowhere is found out before, not after, hours of work.
func TestOutputTriesLinks(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(t.TempDir(), "none", "file"), link); err != nil {
		t.Fatal(err)
	}
	if err := reportAt(link).try(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestOutputRefusesFolders(t *testing.T) {
	folder := t.TempDir()
	for _, path := range []string{folder, folder + "/"} {
		for what, err := range map[string]error{"try": reportAt(path).try(), "write": reportAt(path).write(hello)} {
			if err == nil || !strings.HasSuffix(err.Error(), " is a folder, must be a file") {
				t.Errorf("%s %s: %v", what, path, err)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestOutputThatFails leaves what was there.
func TestOutputThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := reportAt(path).write(hello); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := reportAt(path).write(func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "hello" {
		t.Errorf("it holds %q, %v", text, err)
	}
}

// TestFiguresSurviveABadPlace: hours of work are not lost for one file that cannot be written.
func TestFiguresSurviveABadPlace(t *testing.T) {
	folder := t.TempDir()
	c := &benchCmd{JSON: folder, Report: filepath.Join(folder, "bench.html")}
	var table strings.Builder
	err := c.tell(&kong.Context{Kong: &kong.Kong{Stdout: &table}}, &benchResult{})
	if err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Error(err)
	}
	if info, err := os.Stat(c.Report); err != nil || info.Size() == 0 {
		t.Errorf("the report: %v, %v", info, err)
	}
}
