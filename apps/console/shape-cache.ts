/**
 * The columns of bases and what their tables hold, kept for a short time: a page that shows them would otherwise log in
 * to a database for each request. Callers check first that the base is the account's.
 */
import { type Base, readerTarget, replicaShape } from "../../core/control/bases";
import type { TableSpec } from "../../core/replica";
import { sampleTable, type TableSample } from "../../core/sql-editor";
import type { ConsoleContext } from "./page-kit";
import { TimedCache } from "./timed-cache";

type Shape = Awaited<ReturnType<typeof replicaShape>>;

/** Changes show this much later, ms. */
const KEPT_MS = 30_000;

const shapes = new TimedCache<Shape>({ keptMs: KEPT_MS, most: 100 });
const samples = new TimedCache<TableSample>({ keptMs: KEPT_MS, most: 200 });

/** @throws BasetideError `replica_unavailable` */
export function cachedShape(ctx: ConsoleContext, base: Base): Promise<Shape> {
  const key = JSON.stringify([base.id, base.database.id, base.tables.map(({ name }) => name)]);
  return shapes.get(key, () => replicaShape(ctx, base));
}

/** @throws as `sampleTable` */
export function cachedSample(ctx: ConsoleContext, base: Base, spec: TableSpec): Promise<TableSample> {
  const key = JSON.stringify([base.id, base.database.id, spec.name, spec.columns.map(({ name }) => name)]);
  return samples.get(key, async () => sampleTable(await readerTarget(ctx, base), spec));
}
