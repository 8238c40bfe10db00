#!/usr/bin/env bash
# DBML made of pg_dump's SQL loses time zones: timestamp with time zone is timestamp.
#
# @dbml/core 10.2.0, on which sql2dbml and dbml2sql are built, with Postgres 18 (PGlite 0.5.14).
#
# Behavior: It keeps timestamptz. Of `timestamp with time zone`, which is how pg_dump writes the same type, the importer keeps `timestamp`. A generated column
# becomes one that is not. The SQL made of it runs: a time that is written with its zone loses it, and is another time next to one that has kept it.
#
# Who meets it: Teams that draw or keep their schema in DBML, made of a dump.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @dbml/core@10.2.0 @electric-sql/pglite@0.5.14 >/dev/null
cat >main.mjs <<'JS'
import { exporter, importer } from "@dbml/core";
import { PGlite } from "@electric-sql/pglite";

const dumped = `
CREATE TABLE public.visits (
    id text NOT NULL,
    began timestamp with time zone,
    ended timestamptz,
    hours numeric,
    fee numeric GENERATED ALWAYS AS ((hours * 80)) STORED
);
`;
const written = exporter.export(importer.import(dumped, "postgres"), "postgres");
/** The columns of the table, and what it makes of one time that is written twice. */
async function show(name, sql) {
  const db = await PGlite.create();
  await db.exec(sql);
  const { rows } = await db.query(`select attname || ' ' || format_type(atttypid, null) || case attgenerated when 's' then ' generated' else '' end as c
    from pg_attribute where attrelid = 'visits'::regclass and attnum > 0 order by attnum`);
  console.log(`${name}\n  ${rows.map(({ c }) => c).join(", ")}`);
  await db.exec("set timezone to 'America/New_York'; insert into visits (id, began, ended) values ('a', '2026-07-01 12:00Z', '2026-07-01 12:00Z')");
  const read = await db.query("select (ended - began)::text as time from visits");
  console.log(`  from began to ended: ${read.rows[0].time}`);
  await db.close();
}
await show("pg_dump", dumped);
await show("by DBML", written);
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
pg_dump
  id text, began timestamp with time zone, ended timestamp with time zone, hours numeric, fee numeric generated
  from began to ended: 00:00:00
by DBML
  id text, began timestamp without time zone, ended timestamp with time zone, hours numeric, fee numeric
  from began to ended: -04:00:00
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
