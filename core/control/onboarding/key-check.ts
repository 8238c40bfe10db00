/**
 * Is an API key good for syncing? Asked of the source before anything is made, so that what is missing is said where
 * the key is typed in, and by its name.
 */
import { BasetideError, isBasetideError } from "../../errors";
import type { HeldConnection } from "../../http/connections";
import { createRateLimiter } from "../../limiter";
import { platformById, retryIfStale, type SourceBase } from "../../source";
import { listSourceBases, type ManagementContext } from "../bases";
import { quotaKeyOf } from "../budgets";

type SourceContext = Pick<ManagementContext, "config" | "platforms">;
type ReadingContext = SourceContext & Pick<ManagementContext, "db" | "log" | "metrics">;

/**
 * The bases that a key opens.
 *
 * @throws BasetideError `source_key_refused` for a key that is none, `source_forbidden` naming the scope that it lacks,
 *   other `source_…` when the source does not answer as it should
 */
export async function checkKey(ctx: SourceContext, platform: string, apiKey: string): Promise<SourceBase[]> {
  const { keyScopes } = platformById(ctx.platforms, platform);
  try {
    return await listSourceBases(ctx, platform, apiKey);
  } catch (error) {
    if (isBasetideError(error, "source_key_refused")) {
      const message = "The source does not accept this key: it is not whole, or was revoked.";
      throw new BasetideError("source_key_refused", message, { cause: error });
    }
    throw lacking(error, keyScopes?.schema, "may not see your bases");
  }
}

/**
 * Can the key read records there? One call for the tables, one for a page of the first. Both wait for their place in the
 * base's quota (I4), since another account may be syncing it; the first behind everybody else, as nobody knows the key yet.
 *
 * @throws BasetideError as `checkKey`, `quota_timeout`
 */
export async function checkReading(
  ctx: ReadingContext,
  platform: string,
  apiKey: string,
  sourceBaseId: string,
): Promise<void> {
  const { keyScopes, ...source } = platformById(ctx.platforms, platform);
  const connection = source.connect(apiKey);
  const signal = AbortSignal.timeout(ctx.config.upstreamTimeoutMs);
  const limiter = createRateLimiter(ctx);
  const quotaKey = quotaKeyOf({ platform, sourceBaseId });
  const { connections } = connection;
  const options = { deadlineMs: ctx.config.upstreamTimeoutMs, signal, connections };
  const over = (held: HeldConnection | undefined) => (held ? connection.over(held) : connection);
  let isAccepted = false;
  try {
    const { tables } = await retryIfStale(async () => {
      using held = await limiter.acquireUnproven(quotaKey, options);
      return await over(held).getSchema(sourceBaseId, signal);
    });
    isAccepted = true;
    await limiter.countServed(quotaKey);
    if (!tables[0]) return;
    const table = tables[0];
    await retryIfStale(async () => {
      using held = await limiter.acquireClient(quotaKey, options);
      return await over(held).listPage(sourceBaseId, table, {}, signal);
    });
  } catch (error) {
    if (isAccepted && isBasetideError(error, "source_rate_limited")) {
      await limiter.block(quotaKey, source.limits.penaltyMs, "rate_limited", { isOwn: false });
    }
    throw lacking(error, keyScopes?.records, "may not read the records of this base");
  }
}

/** The source says no more than that something is missing; what was asked tells what. */
function lacking(error: unknown, scope: string | undefined, what: string): unknown {
  if (!isBasetideError(error, "source_forbidden")) return error;
  const remedy = scope
    ? `it lacks the scope ${scope}. Tick it, save the token, and try again.`
    : error.message;
  return new BasetideError("source_forbidden", `The key ${what}: ${remedy}`, { cause: error });
}
