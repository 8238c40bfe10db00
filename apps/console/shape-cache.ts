/**
 * The columns of bases and what their tables hold, kept for a short time: a page that shows them would otherwise log in
 * to a database for each request. Callers check first that the base is the account's.
 */
import {
  type Base,
  listSchemaChanges,
  type ManagementContext,
  readerTarget,
  replicaShape,
} from "../../core/control/bases";
import { isBasetideError } from "../../core/errors";
import type { TableSpec } from "../../core/replica";
import {
  inSampleTurn,
  type OldNames,
  type OldNameUse,
  oldNames,
  sampleTable,
  type TableSample,
  textsThatName,
} from "../../core/sql-editor";
import type { ConsoleContext } from "./page-kit";
import { TimedCache } from "./timed-cache";

type Shape = Awaited<ReturnType<typeof replicaShape>>;

const shapes = new TimedCache<Shape>({ most: 100 });
const names = new TimedCache<{ shape: Shape; old: OldNames }>({ most: 100 });
const texts = new TimedCache<OldNameUse[]>({ most: 100 });
const samples = new TimedCache<TableSample>({ most: 200 });

/** @throws BasetideError `replica_unavailable` */
export function cachedShape(ctx: ManagementContext, base: Base): Promise<Shape> {
  const key = JSON.stringify([base.id, base.database.id, base.tables.map(({ name }) => name)]);
  return shapes.get(key, () => replicaShape(ctx, base));
}

/** The tables with their columns, for pages that are of use without them: none while the database cannot be reached. */
export async function cachedTables(ctx: ConsoleContext, base: Base): Promise<TableSpec[]> {
  try {
    return (await cachedShape(ctx, base)).tables;
  } catch (error) {
    if (isBasetideError(error, "replica_unavailable")) return [];
    throw error;
  }
}

/**
 * The columns, and the old names that still work. A name that a sync changes shows at once; what uses an old name is
 * read each time.
 *
 * @throws BasetideError `replica_unavailable`
 */
export async function currentNames(
  ctx: ConsoleContext,
  base: Base,
): Promise<{ shape: Shape; old: OldNames }> {
  const [latest] = await listSchemaChanges(ctx.db, base.id, 1);
  const key = JSON.stringify([base.id, base.database.id, latest?.id ?? null]);
  const known = await names.get(key, async () => {
    const [shape, old] = await Promise.all([replicaShape(ctx, base), oldNames(ctx, base)]);
    return { shape, old };
  });
  return known.old.aliases.length + known.old.lost.length === 0
    ? known
    : { ...known, old: await oldNames(ctx, base) };
}

/** @throws BasetideError `replica_unavailable` */
export function cachedTexts(ctx: ConsoleContext, base: Base, spec: TableSpec): Promise<OldNameUse[]> {
  const names = [spec, ...spec.columns].map(({ name }) => name);
  const key = JSON.stringify([base.id, base.database.id, spec.tableId, names]);
  return texts.get(key, () => textsThatName(ctx, base, spec));
}

/** @throws as `sampleTable` and `inSampleTurn` */
export function cachedSample(ctx: ConsoleContext, base: Base, spec: TableSpec): Promise<TableSample> {
  const key = JSON.stringify([base.id, base.database.id, spec.name, spec.columns.map(({ name }) => name)]);
  return samples.get(key, () =>
    inSampleTurn(base.accountId, async () => sampleTable(await readerTarget(ctx, base), spec)),
  );
}
