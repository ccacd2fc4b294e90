#!/bin/bash
# Makes the Postgres images that the tests run, where the official ones cannot be
# pulled: `build.sh 13 17`, or without arguments every version that is tested.
#
# An official image that is here or can be pulled is left to be used. Otherwise
# pgyield-postgres:VERSION is built from Debian's packages by debootstrap, which
# needs root, and keeps the official image's contract (see entrypoint.sh). A
# second run finds the image and does nothing; PGYIELD_IMAGE_REBUILD=1 builds
# anew.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf 'image: %s\n' "$*"; }
die() { printf 'image: %s\n' "$*" >&2; exit 1; }

# suite_of names the Debian release whose own archive carries a Postgres version.
suite_of() {
    case $1 in
        13) echo bullseye ;;
        15) echo bookworm ;;
        17) echo trixie ;;
        18) echo sid ;;
        *) die "no Debian release known for Postgres $1 (13, 15, 17 and 18 are)" ;;
    esac
}

# retry runs a command up to three times: mirrors fail in passing.
retry() {
    local attempt
    for attempt in 1 2 3; do
        if "$@"; then return 0; fi
        say "attempt $attempt failed: $1"
        sleep $((attempt * 5))
    done
    return 1
}

present() { docker image inspect "$1" > /dev/null 2>&1; }

# bootstrap lays a Debian with the server into an empty folder.
bootstrap() {
    local root=$1 version=$2 suite=$3
    rm -rf "${root:?}"/*
    debootstrap --variant=minbase --include="postgresql-$version,locales" "$suite" "$root" \
        > "$root.log" 2>&1 || { tail -n 5 "$root.log"; return 1; }
}

build() {
    local version=$1 suite root base
    suite=$(suite_of "$version")
    base="pgyield-base:$version"
    root="$work/$version"
    mkdir "$root"
    say "Postgres $version: building from Debian $suite"
    retry bootstrap "$root" "$version" "$suite" || die "debootstrap of $suite failed; last lines above"
    rm -rf "$root"/var/lib/postgresql/* "$root"/etc/postgresql/*
    chroot "$root" localedef -i en_US -c -f UTF-8 en_US.UTF-8
    tar -C "$root" --numeric-owner \
        --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' \
        --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
        --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' \
        -cf - . | docker import - "$base" > /dev/null
    rm -rf "$root"
    # Its standard error is shown only with a failure: without buildx the client
    # prints a notice each time.
    docker build --quiet --tag "pgyield-postgres:$version" \
        --build-arg BASE="$base" --build-arg VERSION="$version" . > "$work/build.log" 2>&1 \
        || { cat "$work/build.log"; die "docker build failed for Postgres $version"; }
    docker rmi "$base" > /dev/null 2>&1 || true
    say "Postgres $version: pgyield-postgres:$version is ready"
}

command -v docker > /dev/null || die "docker is not installed"
docker version > /dev/null || die "no Docker daemon answers"

declare -a missing=()
for version in "${@:-13 15 17 18}"; do
    for each in $version; do
        if [ "${PGYIELD_IMAGE_REBUILD:-}" != 1 ]; then
            if present "postgres:$each-alpine" || present "pgyield-postgres:$each"; then
                say "Postgres $each: present"
                continue
            fi
            if timeout 300 docker pull --quiet "postgres:$each-alpine" > /dev/null 2>&1; then
                say "Postgres $each: pulled postgres:$each-alpine"
                continue
            fi
        fi
        missing+=("$each")
    done
done
[ ${#missing[@]} -gt 0 ] || exit 0

command -v debootstrap > /dev/null || die "no image can be pulled, and debootstrap, which builds one, is not installed"
[ "$(id -u)" = 0 ] || die "no image can be pulled, and building one needs root for debootstrap"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
for version in "${missing[@]}"; do build "$version"; done
