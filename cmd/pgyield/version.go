package main

import (
	"fmt"
	"runtime/debug"
)

// version is the command's version as the build knows it: a release's number where it
// was installed by one, else the commit it was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "pgyield, version unknown"
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	number := info.Main.Version
	if number == "" {
		number = "(devel)"
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = ", commit " + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", changed since"
		}
	}
	if revision == "" {
		modified = ""
	}
	return fmt.Sprintf("pgyield %s%s%s, %s", number, revision, modified, info.GoVersion)
}
