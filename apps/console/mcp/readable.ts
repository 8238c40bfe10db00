/** What an agent may read of a base, for descriptions as of a moment ago, and for statements as of now. */
import { agentTarget, changesFor, readableIn } from "../../../core/control/agents";
import type { Base } from "../../../core/control/bases";
import { BasetideError } from "../../../core/errors";
import type { ReaderLimits, ReaderTarget, TableSpec } from "../../../core/replica";
import { cachedShape } from "../shape-cache";
import type { ToolCall } from "./caller";

/** @throws BasetideError `replica_unavailable`, `not_found` */
export async function readableOf({ ctx, agent }: ToolCall, base: Base) {
  const reads = agent.bases.find(({ baseId }) => baseId === base.id)!;
  const shape = await cachedShape(ctx, base);
  return {
    ...readableIn(reads, shape),
    /** For one statement: what may be read is decided by what the agent and the base have then. */
    target: (): Promise<ReaderTarget> => agentTarget(ctx, agent, base),
    changes: (asked: Parameters<typeof changesFor>[3], limits: ReaderLimits) =>
      changesFor(ctx, agent, base, asked, limits),
  };
}

/**
 * Returns the table that an agent means: by its SQL name, Airtable's name, or Airtable's id.
 *
 * @throws BasetideError `not_found`
 */
export function findReadable(tables: readonly TableSpec[], asked: string): TableSpec {
  const wanted = asked
    .trim()
    .replace(/^"(.*)"$/, "$1")
    .toLowerCase();
  const found = tables.find(({ name, sourceName, tableId }) =>
    [name, sourceName, tableId].some((one) => one.toLowerCase() === wanted),
  );
  if (found) return found;
  throw new BasetideError("not_found", `There is no table ${asked} that you may read. See list_tables`);
}
