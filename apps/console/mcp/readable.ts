/** What an agent may read of a base, with its role's grants brought up to date. */
import { applyReads, readableIn } from "../../../core/control/agents";
import type { Base } from "../../../core/control/bases";
import type { ReaderTarget } from "../../../core/replica";
import { cachedShape } from "../shape-cache";
import type { ToolCall } from "./caller";

/** @throws BasetideError `replica_unavailable`, `not_found` */
export async function readableOf({ ctx, agent }: ToolCall, base: Base) {
  const reads = agent.bases.find(({ baseId }) => baseId === base.id)!;
  const shape = await cachedShape(ctx, base);
  return {
    ...readableIn(reads, shape),
    /** @param isForced a table was made again, and the new one lacks the grants */
    target: (isForced = false): Promise<ReaderTarget> => applyReads(ctx, agent, base, shape, { isForced }),
  };
}
