/** What can be selected of each base, kept for a short time: every look at it costs a call. */
import { type Base, type ManagementContext, readSelectable } from "../../core/control/bases";
import type { SourceSchema } from "../../core/source";
import { TimedCache } from "./shape-cache";

/** What changes in the source shows this much later, ms. */
const KEPT_MS = 30_000;

const selectable = new TimedCache<SourceSchema>({ keptMs: KEPT_MS, most: 50 });

/** @throws as `readSelectable` */
export function cachedSelectable(ctx: ManagementContext, base: Base): Promise<SourceSchema> {
  return selectable.get(base.id, () => readSelectable(ctx, base));
}
