/** Shows what the columns of a table hold, by its first rows. One query, as the role that the console reads with. */
import { cutText } from "../cut-text";
import { quoteIdent, type ReaderTarget, type TableSpec, withReader } from "../replica";

/** Rows that are read. */
const SAMPLED_ROWS = 1000;
/** Two values per column, of the 1,664 that a result may have. */
const MOST_COLUMNS = 800;
const MOST_TEXT = 80;
const LIMITS = { timeoutMs: 4000, bytes: 2_000_000 };

export interface ColumnSample {
  /** Rows of the sample without a value. */
  empty: number;
  /** Text of a value, cut; null if all are empty. */
  example: string | null;
}

export interface TableSample {
  rows: number;
  /** By SQL name. */
  columns: Map<string, ColumnSample>;
}

/** @throws BasetideError `query_stopped`, `query_failed` if the table has just been renamed, `replica_unavailable` */
export async function sampleTable(target: ReaderTarget, spec: TableSpec): Promise<TableSample> {
  const names = ["id", "created_time", ...spec.columns.map(({ name }) => name)].slice(0, MOST_COLUMNS);
  const figures = names.map((name, at) => {
    const column = quoteIdent(name);
    return `, count(${column}) as c${at}, pg_catalog.min(pg_catalog.left(${column}::text, ${MOST_TEXT + 1})) as e${at}`;
  });
  const [row] = await withReader(target, LIMITS, ({ sql, schema }) =>
    sql.unsafe<Record<string, string | number | null>[]>(
      `select count(*) as rows${figures.join("")}
       from (select * from ${schema}.${quoteIdent(spec.name)} limit ${SAMPLED_ROWS}) as sample`,
    ),
  );
  const rows = Number(row!.rows);
  const columns = names.map((name, at): [string, ColumnSample] => {
    const example = row![`e${at}`] as string | null;
    const isLong = example !== null && example.length > MOST_TEXT;
    return [
      name,
      {
        empty: rows - Number(row![`c${at}`]),
        example: isLong ? `${cutText(example, MOST_TEXT)}…` : example,
      },
    ];
  });
  return { rows, columns: new Map(columns) };
}
