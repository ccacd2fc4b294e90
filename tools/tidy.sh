#!/bin/bash
# go mod tidy for modules that require one another at versions which no tag has
# yet. A go.mod must not keep a replace, or `go install ...@latest` breaks; so
# tidy runs on a copy that has the replaces, and the result goes back without.
set -euo pipefail

root=$(pwd)
for module in "$@"; do
    echo "tidy $module"
    cd "$root/$module"
    copy=$(mktemp -d)
    cp go.mod "$copy/go.mod"
    [ ! -f go.sum ] || cp go.sum "$copy/go.sum"
    if [ "$module" != . ]; then
        go mod edit -replace "github.com/pgyield/pgyield=$root" \
            -replace "github.com/pgyield/pgyield/pgtest=$root/pgtest" "$copy/go.mod"
    fi
    GOWORK=off GOFLAGS=-mod=mod go mod tidy -modfile="$copy/go.mod"
    go mod edit -dropreplace github.com/pgyield/pgyield -dropreplace github.com/pgyield/pgyield/pgtest "$copy/go.mod"
    cp "$copy/go.mod" go.mod
    [ ! -f "$copy/go.sum" ] || cp "$copy/go.sum" go.sum
    rm -rf "$copy"
done
# No `go work sync`: it would raise the root module, and with it every user's
# graph, to the versions that the nested modules need.
