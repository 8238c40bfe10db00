/** What of a base can be selected, also before it is connected. */
import type { Context } from "../../context";
import { MeteredSource, rateLimiterOf } from "../../limiter";
import {
  checkSelection,
  copiesEverything,
  type Platform,
  platformById,
  type SourceSchema,
  type SourceSelection,
} from "../../source";
import { quotaKeyOf } from "../budgets";

export type SelectableContext = Pick<Context, "config" | "db" | "log" | "metrics" | "secrets"> & {
  platforms: Platform[];
};

/** A base of the source, and a key for it. */
interface KeyedBase {
  platform: string;
  sourceBaseId: string;
  apiKey: string;
}

/**
 * Returns the source's tables with all fields and views, by one call.
 *
 * @param priority of the call; a key that the source may refuse waits until all others are served
 * @throws BasetideError `source_…`, `quota_timeout`; `invalid_request` for an unknown platform
 */
export function readSelectableWith(
  ctx: SelectableContext,
  { platform, sourceBaseId, apiKey }: KeyedBase,
  priority: "client" | "unproven" = "unproven",
): Promise<SourceSchema> {
  const deadlineMs = ctx.config.upstreamTimeoutMs;
  const signal = AbortSignal.timeout(deadlineMs);
  const source = new MeteredSource({
    connection: platformById(ctx.platforms, platform).connect(apiKey),
    sourceBaseId,
    limiter: rateLimiterOf(ctx),
    quotaKey: quotaKeyOf({ platform, sourceBaseId }),
    queue: { priority, deadlineMs, signal, isOwnKey: priority === "client", shownAs: "console" },
    signal,
  });
  return source.send((at) => at.getSchema(sourceBaseId, signal, { withViews: true }));
}

/** A selection as it is stored. */
interface CheckedChoice {
  checked: SourceSelection;
  /** Null: everything is copied. */
  selection: SourceSelection | null;
  /** The tables that wait for a decision. */
  unanswered: { id: string; name: string }[];
}

/** @throws BasetideError `invalid_request`, as `checkSelection` */
export function checkChoice(
  asked: SourceSelection,
  schema: SourceSchema,
  before: SourceSelection | null,
): CheckedChoice {
  const checked = checkSelection(asked, schema, before);
  const isOpen = ({ id }: { id: string }) => checked.newTables === "ask" && !checked.tables[id];
  return {
    checked,
    selection: copiesEverything(checked) ? null : checked,
    unanswered: schema.tables.filter(isOpen).map(({ id, name }) => ({ id, name })),
  };
}
