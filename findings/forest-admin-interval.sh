#!/usr/bin/env bash
# Forest Admin's datasource takes an interval for a whole number, because the name of its type begins with INT.
#
# @forestadmin/datasource-sql 1.17.10, Postgres 18 (PGlite 0.5.14).
#
# Behavior: Columns of the types interval and int4range are fields of the type Number, with the filters of numbers. Their values are objects and lists, the
# filters and the average of a range are refused by Postgres, and a sum of intervals is an object, too. It warns of columns that it skips, not of these.
#
# Who meets it: Teams that look at a view of a copy in Forest Admin, if it casts Airtable's durations to intervals or has the difference of two times.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --ignore-scripts @electric-sql/pglite@0.5.14 @electric-sql/pglite-socket@0.2.17 \
  @forestadmin/datasource-sql@1.17.10 pg@8.23.1 >/dev/null
cat >main.mjs <<'JS'
import { PGlite } from "@electric-sql/pglite";
import { PGLiteSocketServer } from "@electric-sql/pglite-socket";
import { createSqlDataSource } from "@forestadmin/datasource-sql";
import toolkit from "@forestadmin/datasource-toolkit";

const { Aggregation, ConditionTreeLeaf, Filter, PaginatedFilter, Projection } = toolkit;
const db = await PGlite.create();
await db.exec(`create table calls (id text primary key, took interval, weeks int4range, at point);
  insert into calls values ('rec1', '90 minutes', '[1,3)'), ('rec2', '2 days 01:00', '[7,8)')`);
const server = new PGLiteSocketServer({ db, host: "127.0.0.1", port: 0, maxConnections: 20 });
await server.start();
const uri = `postgres://postgres:x@127.0.0.1:${server.getServerConn().split(":").pop()}/postgres`;
const log = (level, text) => level !== "Debug" && console.log(`${level}: ${text}`);
const calls = (await createSqlDataSource({ uri, sslMode: "disabled" })(log, () => {})).getCollection("calls");
for (const [name, { columnType, filterOperators }] of Object.entries(calls.schema.fields)) {
  console.log(`${name}: ${columnType}${filterOperators.has("GreaterThan") ? ", with GreaterThan" : ""}`);
}
const show = async (name, answer) => console.log(`${name}:`, JSON.stringify(await answer.catch(({ message }) => message)));
const user = { timezone: "UTC" };
await show("list", calls.list(user, new PaginatedFilter({}), new Projection("id", "took", "weeks")));
const longer = new ConditionTreeLeaf("took", "GreaterThan", 3600);
await show("took > 3600", calls.list(user, new PaginatedFilter({ conditionTree: longer }), new Projection("id")));
for (const [operation, field] of [["Sum", "took"], ["Avg", "weeks"]]) {
  await show(`${operation} of ${field}`, calls.aggregate(user, new Filter({}), new Aggregation({ operation, field })));
}
process.exit();
JS
seen=$(node main.mjs)
expected=$(
  cat <<'END'
Warn: Skipping column calls.at (Unsupported type: POINT)
id: String, with GreaterThan
took: Number, with GreaterThan
weeks: Number, with GreaterThan
list: [{"id":"rec1","took":{"hours":1,"minutes":30},"weeks":[{"value":1,"inclusive":true},{"value":3,"inclusive":false}]},{"id":"rec2","took":{"days":2,"hours":1},"weeks":[{"value":7,"inclusive":true},{"value":8,"inclusive":false}]}]
took > 3600: "operator does not exist: interval > integer"
Sum of took: [{"value":{"days":2,"hours":2,"minutes":30},"group":{}}]
Avg of weeks: "function avg(int4range) does not exist"
END
)
printf '%s\n' "$seen"
[ "$seen" = "$expected" ] || {
  printf 'Changed. Expected:\n%s\n' "$expected" >&2
  exit 1
}
