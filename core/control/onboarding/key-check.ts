/**
 * Checks whether an API key is sufficient for syncing. The source is asked before anything is created, so that a
 * missing permission is reported, by name, where the key is entered.
 */
import { BasetideError, isBasetideError } from "../../errors";
import { createRateLimiter, MeteredSource } from "../../limiter";
import { platformById, type SourceBase } from "../../source";
import { listSourceBases, type ManagementContext } from "../bases";
import { quotaKeyOf } from "../budgets";

type SourceContext = Pick<ManagementContext, "config" | "platforms">;
type ReadingContext = SourceContext & Pick<ManagementContext, "db" | "log" | "metrics">;

/**
 * Returns the bases that a key can read.
 *
 * @throws BasetideError `source_key_refused` for an invalid key, `source_forbidden` naming the scope that it lacks,
 *   other `source_…` if the source fails
 */
export async function checkKey(ctx: SourceContext, platform: string, apiKey: string): Promise<SourceBase[]> {
  const { keyScopes } = platformById(ctx.platforms, platform);
  try {
    return await listSourceBases(ctx, platform, apiKey);
  } catch (error) {
    if (isBasetideError(error, "source_key_refused")) {
      const message =
        "Airtable rejected this token. Check that you copied all of it and that it has not been revoked.";
      throw new BasetideError("source_key_refused", message, { cause: error });
    }
    throw lacking(error, keyScopes?.schema, "cannot list your bases");
  }
}

/**
 * Checks whether the key can read records, with one call for the tables and one for a page of the first table. Both
 * wait for a reservation of the base (I4), since another account may be syncing it; the first one after all other
 * requests, because the key is unproven.
 *
 * @throws BasetideError as `checkKey`, `quota_timeout`
 */
export async function checkReading(
  ctx: ReadingContext,
  platform: string,
  apiKey: string,
  sourceBaseId: string,
): Promise<void> {
  const source = platformById(ctx.platforms, platform);
  const signal = AbortSignal.timeout(ctx.config.upstreamTimeoutMs);
  const limiter = createRateLimiter(ctx);
  const quotaKey = quotaKeyOf({ platform, sourceBaseId });
  const asked = { connection: source.connect(apiKey), sourceBaseId, limiter, quotaKey, signal };
  const waiting = { deadlineMs: ctx.config.upstreamTimeoutMs, signal };
  const unproven = new MeteredSource({ ...asked, queue: { priority: "unproven", ...waiting } });
  const accepted = new MeteredSource({ ...asked, queue: { priority: "client", ...waiting } });
  try {
    const { tables } = await unproven.send((connection) => connection.getSchema(sourceBaseId, signal));
    await limiter.countServed(quotaKey);
    const [table] = tables;
    if (table) await accepted.send((connection) => connection.listPage(sourceBaseId, table, {}, signal));
  } catch (error) {
    throw lacking(error, source.keyScopes?.records, "cannot read the records of this base");
  }
}

/** The source only says that something is missing; which call it was determines what. */
function lacking(error: unknown, scope: string | undefined, what: string): unknown {
  if (!isBasetideError(error, "source_forbidden")) return error;
  const remedy = scope
    ? `it lacks the scope ${scope}. Add the scope, save the token, and try again.`
    : error.message;
  return new BasetideError("source_forbidden", `The key ${what}: ${remedy}`, { cause: error });
}
