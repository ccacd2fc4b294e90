#!/bin/bash
# Runs every fuzz target of the modules in turn, each for FUZZTIME: the go command
# fuzzes one target at a time. Minimising is bounded by tries: by time, one long
# input would take all of it.
set -euo pipefail

for module in "$@"; do
    while read -r package; do
        while read -r target; do
            echo "fuzz $package $target"
            (cd "$module" && go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 10x "$package")
        done < <(cd "$module" && go test -list '^Fuzz' "$package" | grep '^Fuzz' || true)
    done < <(cd "$module" && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...)
done
