/** The user of an API key: the source limits each user over all bases, whichever of their keys is used. */
import type { Db } from "../../context";
import { platformById } from "../../source";
import type { ManagementContext } from "./bases";

/** Returns null if the source does not say; the next sync asks again. */
export async function findSourceUser(
  ctx: Pick<ManagementContext, "config" | "log" | "platforms">,
  platform: string,
  apiKey: string,
): Promise<string | null> {
  try {
    const signal = AbortSignal.timeout(ctx.config.upstreamTimeoutMs);
    return (await platformById(ctx.platforms, platform).connect(apiKey).whoami(signal)).id;
  } catch (error) {
    ctx.log.debug({ error }, "user of the API key could not be read");
    return null;
  }
}

/** Records the user of the base's key, unless it is known. */
export async function recordSourceUser(db: Db, baseId: string, userId: string): Promise<void> {
  await db`update bases set source_user_id = coalesce(source_user_id, ${userId}) where id = ${baseId}`;
}
