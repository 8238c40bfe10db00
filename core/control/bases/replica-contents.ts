/** What a base's replica has now, because the control plane does not store it: the columns of its tables, and a row. */
import type { Context } from "../../context";
import {
  loadCatalog,
  loadViews,
  openReplica,
  quoteIdent,
  type ReplicaViews,
  type TableSpec,
} from "../../replica";
import type { Base } from "./base-row";
import { replicaTarget } from "./bases";

interface ReplicaShape extends ReplicaViews {
  /** All live tables, by name. */
  tables: TableSpec[];
}

/** Reads the tables with their columns. @throws BasetideError `replica_unavailable` */
export async function replicaShape(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
): Promise<ReplicaShape> {
  const replica = openReplica(await replicaTarget(ctx, base));
  try {
    const tables = [...(await loadCatalog(replica)).values()].map(({ spec }) => spec);
    tables.sort((a, b) => (a.name < b.name ? -1 : 1));
    return { tables, ...(await loadViews(replica)) };
  } finally {
    await replica.close();
  }
}

const MAX_LENGTH = 1000;

/**
 * Reads one row, to show that a record has arrived. Returns JSON text, cut at 1,000 characters; null if the replica does
 * not have it.
 *
 * @param sourceTable the table's name in the source
 * @throws BasetideError `replica_unavailable`
 */
export async function readRecordRow(
  ctx: Pick<Context, "config" | "db" | "secrets" | "log">,
  base: Pick<Base, "database">,
  sourceTable: string,
  recordId: string,
): Promise<string | null> {
  const replica = openReplica(await replicaTarget(ctx, base));
  try {
    const tables = [...(await loadCatalog(replica)).values()];
    const spec = tables.find((table) => table.spec.sourceName === sourceTable)?.spec;
    if (!spec) return null;
    const { sql } = replica;
    const table = sql.unsafe(`${quoteIdent(base.database.schema)}.${quoteIdent(spec.name)}`);
    const [row] = await sql<{ row: string }[]>`
      select left(json_strip_nulls(to_json(t))::text, ${MAX_LENGTH}) as row from ${table} as t where id = ${recordId}`;
    return row?.row ?? null;
  } finally {
    await replica.close();
  }
}
