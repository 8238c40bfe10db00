#!/usr/bin/env bash
# psqlODBC loses years of five digits, and the era.
#
# Debian's odbc-postgresql 13.02.0000 and unixodbc 2.3.11, with Postgres 18 (PGlite 0.5.14). Needs Debian 12 on x86-64.
#
# Behavior: the time 10000-01-01 is 0000-00-00 00:00:00, and 44 BC is a day of the year 44, without an error or a warning.
#
# Who meets it: Power BI and Excel on a copy of Airtable, which accepts such years: a date that was mistyped there is another one here.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 >/dev/null
apt-get download -qq odbc-postgresql=1:13.02.0000-2+b1 unixodbc=2.3.11-2+deb12u1 libodbc2=2.3.11-2+deb12u1 \
  libodbcinst2=2.3.11-2+deb12u1 libpq5 2>/dev/null
for package in *.deb; do dpkg -x "$package" .; done
libraries="$folder/usr/lib/x86_64-linux-gnu"
printf '[PostgreSQL]\nDriver = %s/odbc/psqlodbcw.so\n' "$libraries" >odbcinst.ini
cat >main.mjs <<'JS'
import { spawn } from "node:child_process";
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";

const db = await PGlite.create();
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const port = server.getServerConn().split(":").pop();
const at = `DRIVER=PostgreSQL;SERVER=127.0.0.1;PORT=${port};DATABASE=postgres;UID=postgres;PWD=x`;
const query = "select '9999-12-31'::timestamp, '10000-01-01'::timestamp, '0044-03-15 BC'::date\n\n";
const child = spawn("usr/bin/isql", ["-k", at, "-b", "-d|"], { stdio: ["pipe", "inherit", "inherit"] });
child.stdin.end(query);
await new Promise((resolve) => child.on("exit", resolve));
await server.stop();
await db.close();
JS
seen=$(ODBCSYSINI="$folder" LD_LIBRARY_PATH="$libraries" node main.mjs)
expected=$(
  cat <<'END'
9999-12-31 00:00:00|0000-00-00 00:00:00|0044-03-15
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
