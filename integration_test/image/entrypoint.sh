#!/bin/bash
# The start-up contract of the official image, as far as tests use it:
# POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB, POSTGRES_INITDB_ARGS,
# POSTGRES_HOST_AUTH_METHOD, PGDATA, scripts in /docker-entrypoint-initdb.d, and
# arguments that go to postgres. A server for the set-up listens on the unix
# socket alone and is stopped again, so "ready to accept connections" is logged
# twice; clients of the official image wait for the second one.
set -euo pipefail

export PGDATA=${PGDATA:-/var/lib/postgresql/data}
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}
method=${POSTGRES_HOST_AUTH_METHOD:-}

if [ "${1:-postgres}" != postgres ] && [ "${1#-}" = "${1:-}" ]; then
    exec "$@"
fi
if [ "${1:-}" = postgres ]; then shift; fi

if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -g postgres -m 0700 "$PGDATA"
    install -d -o postgres -g postgres -m 2775 /var/run/postgresql
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" postgres "$@"
fi

# run_scripts runs what the user mounted, in the order of the names.
run_scripts() {
    local file
    for file in /docker-entrypoint-initdb.d/*; do
        case $file in
            *.sh) if [ -x "$file" ]; then "$file"; else . "$file"; fi ;;
            *.sql) "${psql[@]}" --dbname "$database" --file "$file" ;;
            *.sql.gz) gunzip -c "$file" | "${psql[@]}" --dbname "$database" ;;
        esac
    done
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$method" != trust ]; then
        echo "POSTGRES_PASSWORD is not set and POSTGRES_HOST_AUTH_METHOD is not trust" >&2
        exit 1
    fi
    declare -a arguments=()
    if [ -n "${POSTGRES_INITDB_ARGS:-}" ]; then read -r -a arguments <<< "$POSTGRES_INITDB_ARGS"; fi
    if [ -n "${POSTGRES_PASSWORD:-}" ]; then
        secret=$(mktemp)
        printf '%s\n' "$POSTGRES_PASSWORD" > "$secret"
        arguments+=(--pwfile="$secret")
    fi
    initdb --username="$user" --encoding=UTF8 --locale=en_US.utf8 --auth-local=trust \
        --auth-host=scram-sha-256 "${arguments[@]}"
    rm -f "${secret:-}"
    printf '\nhost all all all %s\n' "${method:-scram-sha-256}" >> "$PGDATA/pg_hba.conf"
    # 13 still hashes with md5 unless told otherwise, but initdb above chose by
    # --auth-host; keep later CREATE ROLE in line with it.
    printf "\nlisten_addresses = '*'\npassword_encryption = 'scram-sha-256'\n" >> "$PGDATA/postgresql.conf"

    pg_ctl -w -D "$PGDATA" -o "-c listen_addresses= -p 5432" start
    psql=(psql --no-psqlrc --no-password --quiet --set ON_ERROR_STOP=1 --username "$user")
    if [ "$database" != postgres ]; then
        "${psql[@]}" --dbname postgres --set db="$database" <<< 'CREATE DATABASE :"db";'
    fi
    run_scripts
    pg_ctl -w -m fast -D "$PGDATA" stop
fi

exec postgres "$@"
