/**
 * Everything that is sealed in the control plane, found by the names of its columns: `sealed_…` of a table with an id
 * is sealed for the context `<table>.<…>:<id>`. So a rotation of SECRET_KEY forgets none.
 */
import type { Context } from "../../context";
import { isBasetideError } from "../../errors";
import { noteChange } from "../audit";

type SealContext = Pick<Context, "db" | "secrets" | "actor">;

/** Rows looked at in one go: none is locked for longer than it takes to write it. */
const BATCH = 100;

export interface SealedColumn {
  table: string;
  column: string;
  /** The table's primary key, of one column. */
  key: string;
}

/** In the order of their names. @throws Error for one in a table without a primary key of one column */
export async function sealedColumns({ db }: Pick<Context, "db">): Promise<SealedColumn[]> {
  const columns = await db<(Omit<SealedColumn, "key"> & { keys: string[] | null })[]>`
    select c.relname as "table", a.attname as "column",
      (select array_agg(k.attname::text) from pg_index as i
        join pg_attribute as k on k.attrelid = c.oid and k.attnum = any (i.indkey)
        where i.indrelid = c.oid and i.indisprimary) as keys
    from pg_attribute as a join pg_class as c on c.oid = a.attrelid
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and starts_with(a.attname, 'sealed_')
      and not a.attisdropped
    order by 1, 2`;
  return columns.map(({ table, column, keys }) => {
    const [key, ...others] = keys ?? [];
    if (key === undefined || others.length > 0)
      throw new Error(`${table}.${column} has no id to be sealed for`);
    return { table, column, key };
  });
}

/** Where a sealed value is bound to. */
export function contextOf({ table, column }: SealedColumn, id: string): string {
  return `${table}.${column.slice("sealed_".length)}:${id}`;
}

export interface SealCount {
  /** Can be read. */
  readable: number;
  /** Of those: sealed with a key of SECRET_KEY_PREVIOUS. */
  previous: number;
  unreadable: number;
}

/** Opens everything. */
export async function examineSeals(ctx: SealContext): Promise<SealCount> {
  const count: SealCount = { readable: 0, previous: 0, unreadable: 0 };
  for (const column of await sealedColumns(ctx)) {
    for await (const { id, sealed } of rowsOf(ctx, column, "")) {
      if (opened(ctx, column, id, sealed) === null) count.unreadable += 1;
      else {
        count.readable += 1;
        if (!ctx.secrets.isCurrent(sealed)) count.previous += 1;
      }
    }
  }
  return count;
}

export interface Rotation {
  /** Sealed anew with the current key. */
  resealed: number;
  /** Sealed with a key that is not there, and left as they are. */
  unreadable: number;
}

/**
 * Seals again, with the current key, whatever another one has sealed. May be stopped and started again, and run while
 * services do: what is changed meanwhile stays as it was changed.
 */
export async function rotateSeals(ctx: SealContext): Promise<Rotation> {
  const done: Rotation = { resealed: 0, unreadable: 0 };
  for (const column of await sealedColumns(ctx)) {
    const { table, column: name, key } = column;
    for await (const { id, sealed } of rowsOf(ctx, column, ctx.secrets.currentPrefix)) {
      const plain = opened(ctx, column, id, sealed);
      if (plain === null) {
        done.unreadable += 1;
        continue;
      }
      const { count } = await ctx.db`
        update ${ctx.db(table)} set ${ctx.db(name)} = ${ctx.secrets.seal(plain, contextOf(column, id))}
        where ${ctx.db(key)} = ${id} and ${ctx.db(name)} = ${sealed}`;
      done.resealed += count;
    }
  }
  if (done.resealed > 0) {
    await noteChange(ctx.db, ctx.actor, { accountId: null, action: "secrets.rotated", details: { ...done } });
  }
  return done;
}

/** Sealed values that do not begin with `except`, unless it is empty; a batch at a time, by their ids. */
async function* rowsOf({ db }: Pick<Context, "db">, { table, column, key }: SealedColumn, except: string) {
  for (let after = ""; ; ) {
    const rows: { id: string; sealed: string }[] = await db`
      select ${db(key)} as id, ${db(column)} as sealed from ${db(table)}
      where ${db(column)} is not null and ${db(key)} > ${after}
        and (${except === ""} or not starts_with(${db(column)}, ${except}))
      order by ${db(key)} limit ${BATCH}`;
    yield* rows;
    if (rows.length < BATCH) return;
    after = rows.at(-1)!.id;
  }
}

function opened({ secrets }: SealContext, column: SealedColumn, id: string, sealed: string): string | null {
  try {
    return secrets.open(sealed, contextOf(column, id));
  } catch (error) {
    if (isBasetideError(error, "secret_unreadable")) return null;
    throw error;
  }
}
