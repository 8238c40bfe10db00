/** What can be selected of each base, kept for a short time: every look at it costs a call. */
import { type Base, type ManagementContext, readSelectable } from "../../core/control/bases";
import type { SourceSchema } from "../../core/source";
import { TimedCache } from "./timed-cache";

const selectable = new TimedCache<SourceSchema>({ most: 50 });

/** @throws as `readSelectable` */
export function cachedSelectable(ctx: ManagementContext, base: Base): Promise<SourceSchema> {
  return selectable.get(base.id, () => readSelectable(ctx, base));
}
