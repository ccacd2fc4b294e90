#!/bin/bash
# Names everything that `make check` needs and that is missing here.
set -uo pipefail

declare -a missing=()
lacks() { missing+=("$*"); }

command -v go > /dev/null || lacks "Go"
command -v "${CC:-gcc}" > /dev/null || lacks "a C compiler (the race detector and the SQL oracle need cgo)"
compgen -G '/usr/lib/postgresql/*/bin/initdb' > /dev/null || command -v initdb > /dev/null ||
    lacks "Postgres server programs (Debian: postgresql)"
command -v pgbouncer > /dev/null || [ -x /usr/sbin/pgbouncer ] || lacks "pgbouncer"
if docker version > /dev/null 2>&1; then
    for version in ${VERSIONS:-13 15 17 18}; do
        docker image inspect "postgres:$version-alpine" > /dev/null 2>&1 ||
            docker image inspect "pgyield-postgres:$version" > /dev/null 2>&1 ||
            lacks "an image of Postgres $version (make images)"
    done
else
    lacks "a Docker daemon"
fi

[ ${#missing[@]} -eq 0 ] && exit 0
echo "make check lacks:" >&2
printf '  %s\n' "${missing[@]}" >&2
exit 1
