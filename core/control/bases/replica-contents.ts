/** What a base's replica has now, because the control plane does not store it: the columns of its tables, and a row. */
import type { Context } from "../../context";
import { conflict, notFound } from "../../errors";
import {
  type ColumnSlots,
  columnSlots,
  loadCatalog,
  loadViews,
  openReplica,
  quoteIdent,
  type ReplicaViews,
  replaceTable,
  requireOwn,
  type TableSpec,
} from "../../replica";
import type { Base } from "./base-row";
import { replicaTarget } from "./bases";

interface ReplicaShape extends ReplicaViews {
  /** All live tables, by name. */
  tables: TableSpec[];
  /** The columns that the tables have used. */
  slots: ColumnSlots[];
}

/** Reads the tables with their columns. @throws BasetideError `replica_unavailable` */
export async function replicaShape(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
): Promise<ReplicaShape> {
  await using replica = openReplica(await replicaTarget(ctx, base));
  const tables = [...(await loadCatalog(replica)).values()].map(({ spec }) => spec);
  tables.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { tables, slots: await columnSlots(replica), ...(await loadViews(replica)) };
}

/**
 * Has a table copied into a new one by the next sync.
 *
 * @param table its SQL name
 * @param isForced also if objects that customers have put on the table are lost
 * @throws BasetideError `not_found`, `conflict` naming these objects, `destination_invalid` if something needs the table,
 *   `replica_unavailable`
 */
export async function requestRebuild(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
  table: string,
  isForced: boolean,
): Promise<void> {
  await using replica = openReplica(await replicaTarget(ctx, base));
  const names = [...(await loadCatalog(replica)).values()].map(({ spec }) => spec.name);
  if (!names.includes(table))
    throw notFound(`There is no table ${table} in the database. It has: ${names.toSorted().join(", ")}`);
  const lost = await replaceTable(replica, table, isForced);
  if (lost.length > 0 && !isForced)
    throw conflict(`The new table would lack: ${lost.join(", ")}. To rebuild it all the same, add --force`);
}

const MAX_LENGTH = 1000;

/**
 * Reads one row, to show that a record has arrived. Returns JSON text, cut at 1,000 characters; null if the replica does
 * not have it.
 *
 * @param sourceTable the table's name in the source
 * @throws BasetideError `replica_unavailable`, `destination_invalid`
 */
export async function readRecordRow(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
  sourceTable: string,
  recordId: string,
): Promise<string | null> {
  await using replica = openReplica(await replicaTarget(ctx, base));
  const tables = [...(await loadCatalog(replica)).values()];
  const live = tables.find((table) => table.spec.sourceName === sourceTable);
  if (!live) return null;
  requireOwn(live);
  const { sql } = replica;
  const table = sql.unsafe(`${quoteIdent(base.database.schema)}.${quoteIdent(live.spec.name)}`);
  const [row] = await sql<{ row: string }[]>`
    select left(json_strip_nulls(to_json(t))::text, ${MAX_LENGTH}) as row from ${table} as t where id = ${recordId}`;
  return row?.row ?? null;
}
