package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	out, err := pgyieldCommand(t, "--version").Output()
	if err != nil || !strings.HasPrefix(string(out), "pgyield ") || !strings.HasSuffix(string(out), ", "+runtime.Version()+"\n") {
		t.Errorf("%v, %q", err, out)
	}
	built := &debug.BuildInfo{GoVersion: "go1.26.0", Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got, want := versionOf(built), "pgyield (devel), commit 0123456789ab, changed since, go1.26.0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	installed := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.1.0"}}
	if got, want := versionOf(installed), "pgyield v0.1.0, go1.26.0"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
