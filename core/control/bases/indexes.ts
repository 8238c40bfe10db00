/** The setting `indexes`: the columns of a base's tables that have an index in its replica. */
import type { Context, Db } from "../../context";
import { invalid } from "../../errors";
import { hasTrigrams, type IndexKind, loadCatalog, openReplica, type TableSpec } from "../../replica";
import type { IndexSetting } from "../../sync/host";
import type { Base } from "./base-row";
import { replicaTarget } from "./bases";

/** An index as requested, by SQL names. */
export interface AskedIndex {
  table: string;
  column: string;
  kind?: IndexKind | undefined;
}

/** Each index makes every write to its table more expensive. */
export const MOST_INDEXES = 100;

/**
 * Returns the setting for these indexes, for a base whose tables exist.
 *
 * @throws BasetideError `invalid_request` naming what does not exist or is not possible, `replica_unavailable`
 */
export async function resolveIndexes(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
  asked: readonly AskedIndex[],
): Promise<IndexSetting[]> {
  if (asked.length === 0) return [];
  await using replica = openReplica(await replicaTarget(ctx, base));
  const tables = [...(await loadCatalog(replica)).values()].map(({ spec }) => spec);
  const found = asked.map((one) => resolve(tables, one));
  const names = found.map(({ tableId, fieldId }) => `${tableId} ${fieldId}`);
  const twice = found.find((_, index) => names.indexOf(names[index]!) !== index);
  if (twice) throw invalid(`The index on ${twice.table}.${twice.column} is listed twice. Remove one`);
  if (found.some(({ kind }) => kind === "trigram") && !(await hasTrigrams(replica))) {
    throw invalid(
      "A trigram index needs the extension pg_trgm, which the database does not have. Run create extension pg_trgm in it",
    );
  }
  return found;
}

function resolve(tables: TableSpec[], { table, column, kind = "default" }: AskedIndex): IndexSetting {
  const spec = tables.find(({ name }) => name === table);
  if (!spec) {
    const names = tables.map(({ name }) => name).toSorted();
    throw invalid(
      names.length === 0
        ? `There is no table ${table} yet. Indexes can be set after the first sync`
        : `There is no table ${table}: the base has ${listed(names)}`,
    );
  }
  if (column === "id")
    throw invalid(`Column id of ${table} already has an index, its primary key. Remove it from the list`);
  const known = spec.columns.find(({ name }) => name === column);
  if (!known && column !== "created_time") {
    throw invalid(
      `Table ${table} has no column ${column}: it has ${listed(spec.columns.map(({ name }) => name))}`,
    );
  }
  if (kind === "trigram" && known?.columnType !== "text") {
    throw invalid(
      `Column ${column} of ${table} does not contain text. A trigram index requires a column of type text`,
    );
  }
  return { tableId: spec.tableId, fieldId: known?.fieldId ?? column, table, column, kind };
}

function listed(names: string[]): string {
  const shown = names.slice(0, 20).join(", ");
  return names.length > 20 ? `${shown} and ${names.length - 20} more` : shown;
}

/** Applies new names of tables or columns, unless the setting was changed meanwhile. */
export async function renameIndexes(
  db: Db,
  baseId: string,
  before: IndexSetting[],
  now: IndexSetting[],
): Promise<void> {
  await db`
    update bases set indexes = ${JSON.stringify(now)}::text::jsonb
    where id = ${baseId} and indexes = ${JSON.stringify(before)}::text::jsonb`;
}
