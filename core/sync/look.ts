/** Looks at the source's schema and brings the replica's shape in line, as far as that goes without reading records. */
import { isBasetideError } from "../errors";
import {
  type Catalog,
  changeShape,
  loadCatalog,
  planSchema,
  type Replica,
  type TableSpec,
  type TypeSettings,
} from "../replica";
import type { SourceSchema } from "../source/types";
import { wait } from "../wait";
import type { BaseMemory } from "./memory";
import { ask, type Reader } from "./reader";

const BUSY_PAUSE_MS = 250;

export interface Shape {
  schema: SourceSchema;
  catalog: Catalog;
  /** Tables that must be read anew before they have the shape that is wanted. */
  rebuild: TableSpec[];
}

export interface Look {
  replica: Replica;
  reader: Reader;
  epoch: number;
  memory: BaseMemory;
  settings: TypeSettings;
  schemaPollMs: number;
  signal: AbortSignal;
}

/**
 * The shape that the replica has now and what is missing from it. Asks the source at most once per
 * `schemaPollMs`; settings that changed are seen at once.
 */
export async function lookAtShape(look: Look): Promise<Shape> {
  const { replica, epoch, memory } = look;
  let schema = await currentSchema(look);
  let catalog = await loadCatalog(replica);
  let plan = planSchema(catalog, schema, look.settings);
  if (plan.drop.length > 0) {
    schema = await confirmDrops(look, catalog);
    plan = planSchema(catalog, schema, look.settings);
  }
  if (plan.inPlace.length > 0 || plan.drop.length > 0) {
    await untilNotBusy(look, () => changeShape(replica, epoch, catalog, plan));
    for (const { tableId } of plan.drop) memory.tables.delete(tableId);
    catalog = await loadCatalog(replica);
  }
  return { schema, catalog, rebuild: plan.rebuild };
}

async function currentSchema(look: Look): Promise<SourceSchema> {
  const { memory } = look;
  if (!memory.schema || performance.now() - memory.schemaSeenAt >= look.schemaPollMs) await lookAgain(look);
  return memory.schema!;
}

async function lookAgain({ reader, memory }: Look): Promise<SourceSchema> {
  const askedAt = performance.now();
  memory.schema = await ask(reader, (signal) => reader.connection.getSchema(reader.sourceBaseId, signal));
  memory.schemaSeenAt = askedAt;
  return memory.schema;
}

/**
 * A table is dropped only when a second look misses it too; a base without any table, only when that has lasted
 * for longer than the source's spells of empty answers.
 */
async function confirmDrops(look: Look, catalog: Catalog): Promise<SourceSchema> {
  const { emptySpellMs } = look.memory;
  let schema = await lookAgain(look);
  const until = performance.now() + emptySpellMs;
  while (schema.tables.length === 0 && catalog.size > 0 && performance.now() < until) {
    await wait(emptySpellMs / 10, look.signal);
    schema = await lookAgain(look);
  }
  return schema;
}

/** Tries again while queries hold a table: each try blocks new ones for no longer than its lock time-out. */
async function untilNotBusy(look: Look, work: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isBasetideError(error, "replica_busy")) throw error;
      await wait(BUSY_PAUSE_MS * (0.5 + Math.random()), look.signal);
    }
  }
}
