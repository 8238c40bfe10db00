/**
 * Looks at the schema when the feed tells of a change of it, or when it is time; tables that may have another shape are
 * not worked on before.
 */
import { asBasetideError } from "../../errors";
import type { SourceField, SourceSchema } from "../../source/types";
import { wait } from "../../wait";
import { failurePauseMs } from "../pauses";
import { isWholeBases } from "../sync-base";
import type { Live } from "./live";

const TICK_MS = 250;

/** Looks for ever. */
export async function keepLooking(live: Live): Promise<void> {
  const { shapes, pending, schemaBell, stop, rounds, wake } = live;
  let known = live.input.memory.schema;
  for (let failures = 0; ; ) {
    const { mark } = pending;
    const doubted = pending.doubted();
    try {
      if (doubted.length > 0) await shapes.lookAgain();
      else await shapes.tend();
      failures = 0;
    } catch (caught) {
      const error = asBasetideError(caught);
      if (isWholeBases(error)) throw error;
      await rounds.failed(error);
      await wait(failurePauseMs(++failures, error), stop);
      continue;
    }
    const { schema } = live.input.memory;
    if (known && schema && schema !== known) nameRecomputed(live, known, schema);
    known = schema;
    if (doubted.length > 0) {
      pending.settleDoubts(mark);
      for (const id of doubted) if (!shapes.table(id).source) pending.forgetTable(id);
      live.settled();
      wake.ring();
    }
    await schemaBell.wait(TICK_MS, stop);
  }
}

/**
 * A field that has another type or computes something else now, or a choice with another name, changes cells that no
 * feed may tell of: its table is swept, and those whose cells hang on it.
 */
function nameRecomputed(live: Live, before: SourceSchema, after: SourceSchema): void {
  const { pending, dependants } = live;
  for (const table of after.tables) {
    const old = before.tables.find(({ id }) => id === table.id);
    for (const field of table.fields) {
      const was = old?.fields.find(({ id }) => id === field.id);
      if (!was || !mayChangeCells(was, field)) continue;
      const hops = dependants.graph?.hops(table.id, field.id) ?? [];
      for (const tableId of new Set([table.id, ...hops.map((hop) => hop.tableId)]))
        pending.nameTable(tableId, pending.durableCursor);
      live.wake.ring();
    }
  }
}

const COMPUTED: ReadonlySet<SourceField["type"]> = new Set(["formula", "rollup", "lookup", "count"]);

function mayChangeCells(was: SourceField, is: SourceField): boolean {
  if (was.sourceType !== is.sourceType) return true;
  if (COMPUTED.has(is.type)) return !Bun.deepEquals(was.options, is.options);
  const choices = choicesOf(is);
  return choicesOf(was).some(({ id, name }) => choices.find((choice) => choice.id === id)?.name !== name);
}

function choicesOf({ options }: SourceField): { id?: unknown; name?: unknown }[] {
  return Array.isArray(options?.choices) ? options.choices : [];
}
