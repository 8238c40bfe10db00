/**
 * One sync of a base: a look at its shape, then every table read at the same time, until the replica is what the
 * source was.
 *
 * I3. A sync counts as completed only when every table has been read from end to end and nothing is held back.
 */
import type { Base, Progress, RunReport } from "../control";
import { asBasetideError, BasetideError, isBasetideError, type NextStep, nextStep } from "../errors";
import { markSyncCompleted, markSyncStarted, type Replica, readIssues, type TableSpec } from "../replica";
import type { SourceTable } from "../source/types";
import { lookAtShape, type Shape } from "./look";
import { type BaseMemory, tableMemory } from "./memory";
import { ProgressBoard } from "./progress";
import type { Reader } from "./reader";
import { rebuildTable } from "./rebuild";
import { sweepTable, type TableOutcome } from "./sweep";

export interface SyncInput {
  base: Base;
  replica: Replica;
  epoch: number;
  memory: BaseMemory;
  /** Everything of a Reader but what this sync makes itself. */
  reader: Omit<Reader, "counts" | "onFirstRequest">;
  schemaPollMs: number;
  /** Every live table is to be read into a new one, whatever is known of it. */
  isForced: boolean;
  /** Called whenever the progress of a first sync or a rebuild has changed: often. */
  onProgress: (progress: Progress) => void;
}

/** The report of a sync that starts now. */
export function newReport(): RunReport {
  return {
    kind: "sweep",
    startedAt: new Date(),
    completedAt: null,
    seen: 0,
    inserted: 0,
    updated: 0,
    deleted: 0,
    requests: 0,
    waitMs: 0,
  };
}

/**
 * Runs one sync. Failures end in the report, not in an exception.
 *
 * @throws BasetideError only `sync_stopped` and `lease_lost`: there is nobody to report to
 */
export async function syncBase(input: SyncInput): Promise<RunReport> {
  const { replica, epoch } = input;
  const report = newReport();
  let started: Promise<void> | undefined;
  const counts = { requests: 0, waitMs: 0 };
  const onFirstRequest = () => {
    report.startedAt = new Date();
    started = markSyncStarted(replica, epoch);
    started.catch(() => {});
  };
  try {
    await syncTables(input, { ...input.reader, counts, onFirstRequest }, report);
    // A base without tables may not have asked for anything.
    if (!started) onFirstRequest();
    await started;
    await markSyncCompleted(replica, epoch);
    report.completedAt = new Date();
    const issues = await readIssues(replica);
    report.issueCount = issues.total;
    report.issues = issues.latest;
  } catch (caught) {
    const error = asBasetideError(caught);
    if (nextStep[error.code] === "stop") throw error;
    if (nextStep[error.code] === "look_at_schema") input.memory.schemaSeenAt = Number.NEGATIVE_INFINITY;
    report.error = error;
  }
  report.requests = counts.requests;
  report.waitMs = Math.round(counts.waitMs);
  return report;
}

/** Passes over all tables until none is held. */
async function syncTables(input: SyncInput, reader: Reader, report: RunReport): Promise<void> {
  const { memory } = input;
  const from = performance.now();
  let forced = input.isForced;
  for (;;) {
    const shape = await lookAtShape({ ...input, reader, settings: input.base.settings, signal: reader.stop });
    const rebuild = new Map(shape.rebuild.map((spec) => [spec.tableId, spec]));
    if (forced) for (const [id, { spec }] of shape.catalog) if (!rebuild.has(id)) rebuild.set(id, spec);
    if (rebuild.size > 0) report.kind = input.base.sync ? "rebuild" : "first";
    const board = new ProgressBoard(report, rebuild, input.base.tables, input.onProgress);
    let outcomes: TableOutcome[];
    try {
      outcomes = await allTables(shape.schema.tables, reader, (table, shared) =>
        syncTable(input, shared, shape, table, rebuild.get(table.id), board),
      );
    } catch (error) {
      // The source says "forbidden" of a table that is gone, too: only a look of this sync can tell.
      const isOldLook = memory.schemaSeenAt < from;
      if (!isOldLook || !isBasetideError(error) || !mayMeanOldSchema(error)) throw error;
      memory.schemaSeenAt = Number.NEGATIVE_INFINITY;
      continue;
    }
    for (const outcome of outcomes) {
      report.inserted += outcome.inserted;
      report.updated += outcome.updated;
      report.deleted += outcome.deleted;
    }
    report.seen = outcomes.reduce((sum, outcome) => sum + outcome.seen, 0);
    report.tables = shape.schema.tables.map((table, index) => ({
      name: memory.tables.get(table.id)?.live.spec.name ?? rebuild.get(table.id)?.name ?? table.name,
      source_name: table.name,
      records: outcomes[index]!.seen,
    }));
    forced = false;
    if (!outcomes.some((outcome) => outcome.isHeld)) return;
    reader.log.warn(
      { tables: outcomes.filter((outcome) => outcome.isHeld).length },
      "mass deletion to be confirmed",
    );
  }
}

async function syncTable(
  input: SyncInput,
  reader: Reader,
  shape: Shape,
  table: SourceTable,
  spec: TableSpec | undefined,
  board: ProgressBoard,
): Promise<TableOutcome> {
  const { replica, epoch, memory } = input;
  const sweep = { replica, reader, epoch, onProgress: (records: number) => board.records(table.id, records) };
  const live = shape.catalog.get(table.id);
  const outcome =
    spec || !live
      ? await rebuildTable(sweep, table, spec!, memory, live)
      : await sweepTable(sweep, table, tableMemory(memory, live));
  board.done(table.id);
  return outcome;
}

/**
 * Works on all tables at the same time, so that the quota and not the latency is the limit. One that fails does not
 * keep the others from being brought up to date, unless its failure is the whole base's.
 *
 * @throws BasetideError the gravest of the failures, when all have ended
 */
async function allTables(
  tables: SourceTable[],
  reader: Reader,
  work: (table: SourceTable, reader: Reader) => Promise<TableOutcome>,
): Promise<TableOutcome[]> {
  const over = new AbortController();
  const shared = { ...reader, stop: AbortSignal.any([reader.stop, over.signal]) };
  const errors: BasetideError[] = [];
  const outcomes = await Promise.all(
    tables.map(async (table) => {
      try {
        return await work(table, shared);
      } catch (caught) {
        const error = asBasetideError(caught);
        reader.log.debug({ error, tableId: table.id }, "table not synced");
        errors.push(error);
        if (gravity(error) >= gravityOf.needs_attention) over.abort(new BasetideError("sync_stopped"));
      }
    }),
  );
  if (reader.stop.aborted) throw new BasetideError("sync_stopped");
  // Those that were stopped because of a graver one say nothing.
  const [gravest] = errors
    .filter((error) => error.code !== "sync_stopped")
    .toSorted((a, b) => gravity(b) - gravity(a));
  if (gravest) throw gravest;
  return outcomes as TableOutcome[];
}

/** Could it be that the table or a field is not there any more? */
function mayMeanOldSchema({ code }: BasetideError): boolean {
  return code === "source_forbidden" || nextStep[code] === "look_at_schema";
}

const gravityOf: Record<NextStep, number> = {
  wait: 0,
  retry: 0,
  restart_table: 0,
  look_at_schema: 1,
  needs_attention: 2,
  stop: 3,
};

function gravity(error: BasetideError): number {
  return gravityOf[nextStep[error.code]];
}
