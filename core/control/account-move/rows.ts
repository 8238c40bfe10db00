/** Takes an account's rows out of one control plane, and inserts rows into the other. */
import type { Sql, TransactionSql } from "postgres";
import { jsonParameter } from "../../postgres";
import type { AccountScope } from "./scope";
import { belongs, type MovedTable } from "./tables";

/** Rows in one statement. */
const BATCH = 500;

/** Postgres needs the type of every parameter, also of one that a condition does not use. */
const TYPED = "$1::text is not null and $2::text[] is not null and $3::text[] is not null";

/** Tables of people: those of someone who also belongs to another account are copied. */
const PEOPLE = new Set(["users", "user_logins", "two_factors"]);

type Value = string | number | boolean | null | Value[] | { [name: string]: Value };

export interface MovedRow {
  /** As Postgres wrote it: no number, time or array passes through JavaScript. */
  text: string;
  values: Record<string, Value>;
}

export type MovedRows = Map<string, MovedRow[]>;

/** Reads the account's rows, by table. */
export function readAccountRows(
  db: Sql | TransactionSql,
  shapes: MovedTable[],
  scope: AccountScope,
): Promise<MovedRows> {
  const everyone = [...scope.leaving, ...scope.copied];
  return eachTable(shapes, (shape, condition) =>
    select(
      db,
      `select to_jsonb(t)::text as text from ${shape.name} as t where ${condition}`,
      scope,
      everyone,
    ),
  );
}

/**
 * Deletes the account's rows, and returns them: what is deleted is exactly what was read, whatever others write at the
 * same time. Rows of people who belong to other accounts are copied.
 */
export function takeRows(tx: TransactionSql, shapes: MovedTable[], scope: AccountScope): Promise<MovedRows> {
  return eachTable(shapes, async (shape, condition) => {
    const copied = PEOPLE.has(shape.name)
      ? await select(
          tx,
          `select to_jsonb(t)::text as text from ${shape.name} as t where ${condition}`,
          scope,
          scope.copied,
        )
      : [];
    const sql = `delete from ${shape.name} as t where ${condition} returning to_jsonb(t)::text as text`;
    return [...copied, ...(await select(tx, sql, scope, scope.leaving))];
  });
}

/** Children first: no row is deleted by another one's foreign key. */
async function eachTable(
  shapes: MovedTable[],
  read: (shape: MovedTable, condition: string) => Promise<string[]>,
): Promise<MovedRows> {
  const byName = new Map(shapes.map((shape) => [shape.name, shape]));
  const rows: MovedRows = new Map();
  for (const shape of shapes.toReversed()) {
    const texts = await read(shape, `${TYPED} and ${belongs(shape.name, byName)}`);
    const parsed = texts.map((text) => ({ text, values: JSON.parse(text) as MovedRow["values"] }));
    const { identity } = shape;
    if (identity !== null) parsed.sort((a, b) => Number(a.values[identity]) - Number(b.values[identity]));
    rows.set(shape.name, parsed);
  }
  return rows;
}

async function select(
  db: Sql | TransactionSql,
  sql: string,
  { accountId, quotaKeys }: AccountScope,
  users: string[],
): Promise<string[]> {
  const rows = await db.unsafe<{ text: string }[]>(sql, [accountId, users, quotaKeys] as never[]);
  return rows.map(({ text }) => text);
}

/**
 * Inserts rows of a table, each with the columns of its patch replaced.
 *
 * @returns the new numbers of the rows, in their order, if the table has numbers; else nothing
 */
export async function insertRows(
  tx: TransactionSql,
  { name, columns, identity, keys }: MovedTable,
  rows: { text: string; patch: Record<string, Value> }[],
): Promise<number[]> {
  const inserted = columns.filter((column) => column !== identity);
  const list = inserted.map((column) => `"${column}"`).join(", ");
  const values = inserted.map((column) => `p."${column}"`).join(", ");
  const sql = `
    insert into ${name} (${list})
    select ${values} from unnest($1::text[], $2::text[]) with ordinality as r(text, patch, n)
      cross join lateral jsonb_populate_record(null::${name}, r.text::jsonb || r.patch::jsonb) as p
    order by r.n ${identity === null ? "" : `returning "${identity}" as number`}`;
  const numbers: number[] = [];
  // A row may refer to any other of its own table.
  const size = keys.some(({ parent }) => parent === name) ? rows.length : BATCH;
  for (let from = 0; from < rows.length; from += size) {
    const batch = rows.slice(from, from + size);
    const parameters = [batch.map(({ text }) => text), batch.map(({ patch }) => jsonParameter(patch))];
    const answer = await tx.unsafe<{ number: string }[]>(sql, parameters as never[]);
    numbers.push(...answer.map(({ number }) => Number(number)));
  }
  return numbers;
}
