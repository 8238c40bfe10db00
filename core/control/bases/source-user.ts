/** Whose an API key is: the source limits each user over all bases, whichever of their keys is used. */
import type { Db } from "../../context";
import { platformById } from "../../source";
import type { ManagementContext } from "./bases";

/** Null where the source does not say; whoever syncs asks again. */
export async function findSourceUser(
  ctx: Pick<ManagementContext, "config" | "log" | "platforms">,
  platform: string,
  apiKey: string,
): Promise<string | null> {
  try {
    const signal = AbortSignal.timeout(ctx.config.upstreamTimeoutMs);
    return (await platformById(ctx.platforms, platform).connect(apiKey).whoami(signal)).id;
  } catch (error) {
    ctx.log.debug({ error }, "user of the key not known");
    return null;
  }
}

/** Notes whose the base's key is, unless somebody has. */
export async function recordSourceUser(db: Db, baseId: string, userId: string): Promise<void> {
  await db`update bases set source_user_id = coalesce(source_user_id, ${userId}) where id = ${baseId}`;
}
