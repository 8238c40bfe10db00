/** Beside rapid turns and live rounds, tables are rebuilt where their shape asks for it. */
import { asBasetideError, type BasetideError } from "../errors";
import type { TableSpec } from "../replica";
import { wait } from "../wait";
import { failurePauseMs } from "./pauses";
import { ProgressBoard } from "./progress";
import { rebuildTable } from "./rebuild";
import type { TableOutcome } from "./sweep";
import { isWholeBases, mayMeanOldSchema } from "./sync-base";
import { type Together, whileReading } from "./together";

const TICK_MS = 250;

export interface RebuildWatch {
  /** Told when a rebuild begins; what is returned is told when it is live. */
  onBegin(tableId: string): (outcome: TableOutcome) => Promise<void> | void;
  onFailure(tableId: string, error: BasetideError): void;
}

/** Rebuilds what is to be rebuilt, one table after the other, with half of the requests. */
export async function keepRebuilding(together: Together, watch: RebuildWatch): Promise<void> {
  const { input, shapes, split, stop } = together;
  let board: ProgressBoard | undefined;
  for (let failures = 0; ; ) {
    const [spec] = shapes.rebuild;
    split.hurry("rebuild", spec !== undefined);
    if (!spec) {
      board = undefined;
      await wait(TICK_MS, stop);
      continue;
    }
    board ??= boardOf(together, shapes.rebuild);
    board.begin(spec);
    try {
      await rebuild(together, spec, board, watch);
      failures = 0;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (mayMeanOldSchema(error)) await shapes.lookAgain();
      else if (isWholeBases(error)) throw error;
      input.reader.log.warn({ error, tableId: spec.tableId }, "table not rebuilt");
      watch.onFailure(spec.tableId, error);
      await wait(failurePauseMs(++failures, error), stop);
    }
  }
}

async function rebuild(
  together: Together,
  spec: TableSpec,
  board: ProgressBoard,
  watch: RebuildWatch,
): Promise<void> {
  const { tableId } = spec;
  const { source } = together.shapes.table(tableId);
  if (!source) return;
  const done = watch.onBegin(tableId);
  const onProgress = (records: number) => board.records(tableId, records);
  const outcome = await whileReading(together, tableId, () =>
    rebuildTable({ ...together.beside, onProgress }, source, spec),
  );
  if (outcome.isHeld) return;
  board.done(tableId);
  await done(outcome);
}

function boardOf({ input }: Together, specs: TableSpec[]): ProgressBoard {
  const rebuilt = new Map(specs.map((spec) => [spec.tableId, spec]));
  const report = { kind: "rebuild" as const, startedAt: new Date() };
  return new ProgressBoard(report, rebuilt, input.base.tables, input.onProgress);
}
