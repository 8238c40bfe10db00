/** Reads each CSV file with DuckDB. Prints, by file: the names of the columns, the number of empty cells, and all lists. */
import { DuckDBInstance } from "@duckdb/node-api";

const files = JSON.parse(process.argv[2]);
const connection = await (await DuckDBInstance.create(":memory:")).connect();
const rowsOf = async (sql) => (await connection.runAndReadAll(sql)).getRowsJson();

const found = [];
for (const { path, lists } of files) {
  await connection.run(
    `create or replace table t as from read_csv('${path}', header = true, allow_quoted_nulls = false)`,
  );
  const columns = (await rowsOf("describe t")).map(([name]) => name);
  const empty = columns.map((name) => `count(*) filter ("${name}" is null)`).join(" + ");
  const [[rows, nulls]] = await rowsOf(`select count(*), ${empty} from t`);
  const cells = lists.map((name) => `"${name}"::varchar[]`);
  const values = cells.length > 0 ? await rowsOf(`select ${cells.join(", ")} from t order by id`) : [];
  found.push({ rows: Number(rows), columns, nulls: Number(nulls), values });
}
console.log(JSON.stringify(found));
