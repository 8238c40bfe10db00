/**
 * Checks whether an API key is sufficient for syncing. The source is asked before anything is created, so that a
 * missing permission is reported, by name, where the key is entered.
 */
import { BasetideError, type ErrorCode, errorCodes, invalid, isBasetideError } from "../../errors";
import { MeteredSource, neverRetry, rateLimiterOf } from "../../limiter";
import { platformById, type SourceBase } from "../../source";
import { listSourceBases, type ManagementContext } from "../bases";
import { quotaKeyOf } from "../budgets";
import { type BaseSize, measureBase, OPTIONAL_PATIENCE_MS } from "./base-size";

/** How the calls appear in the usage of a base that is connected. */
const SHOWN_AS = "console";

type SourceContext = Pick<ManagementContext, "config" | "platforms">;
type ReadingContext = SourceContext & Pick<ManagementContext, "db" | "log" | "metrics">;

/**
 * Returns the bases that a key can read.
 *
 * @throws BasetideError `invalid_request` for what cannot be a key, `source_key_refused` for an invalid one, `source_forbidden` naming the scope that it lacks,
 *   other `source_…` if the source fails
 */
export async function checkKey(ctx: SourceContext, platform: string, apiKey: string): Promise<SourceBase[]> {
  const { keyScopes, keyProblem } = platformById(ctx.platforms, platform);
  const problem = keyProblem?.(apiKey);
  if (problem) throw invalid(problem);
  try {
    return await listSourceBases(ctx, platform, apiKey);
  } catch (error) {
    if (isBasetideError(error, "source_key_refused")) {
      const message =
        "Airtable rejected this token. Check that you copied all of it and that it has not been revoked.";
      throw new BasetideError("source_key_refused", message, { cause: error });
    }
    throw failedCall(error, keyScopes?.schema, "list your bases");
  }
}

/** Returns whose key it is: the address, or the id if the key may not read it; null if that cannot be determined now. */
export async function keyOwner(
  ctx: ReadingContext,
  platform: string,
  apiKey: string,
): Promise<string | null> {
  const signal = AbortSignal.timeout(Math.min(ctx.config.upstreamTimeoutMs, OPTIONAL_PATIENCE_MS));
  try {
    const { id, email } = await platformById(ctx.platforms, platform).connect(apiKey).whoami(signal);
    return email ?? id;
  } catch (error) {
    ctx.log.debug({ error }, "the key's owner could not be read");
    return null;
  }
}

/**
 * Returns whether the key may read the feed of changes, by one call for one of its bases; null if that cannot be
 * determined now. A key may list webhooks only with the scope for them, in a base in which its owner is a creator.
 */
export async function checkChanges(
  ctx: ReadingContext,
  platform: string,
  apiKey: string,
  bases: SourceBase[],
): Promise<boolean | null> {
  const source = platformById(ctx.platforms, platform);
  const connection = source.connect(apiKey);
  const base = bases.find(({ permission }) => permission === "create");
  if (!base || !connection.changeFeed || !source.keyScopes?.changes) return null;
  const deadlineMs = Math.min(ctx.config.upstreamTimeoutMs, OPTIONAL_PATIENCE_MS);
  const signal = AbortSignal.timeout(deadlineMs);
  const limiter = rateLimiterOf(ctx);
  const quotaKey = quotaKeyOf({ platform, sourceBaseId: base.id });
  // The source has just listed the base for this key, so the key is proven.
  const queue = { priority: "client", deadlineMs, signal, shownAs: SHOWN_AS } as const;
  const metered = new MeteredSource({
    connection,
    sourceBaseId: base.id,
    limiter,
    quotaKey,
    signal,
    queue,
    retry: neverRetry,
  });
  try {
    await metered.send(async ({ changeFeed }) => changeFeed?.listWebhooks(base.id, signal));
    return true;
  } catch (error) {
    if (isBasetideError(error, "source_forbidden")) return false;
    ctx.log.debug({ error }, "the key's right to read changes could not be checked");
    return null;
  }
}

/**
 * Checks whether the key can read records, with one call for the tables and one for a page of each of the first
 * tables, and returns the size of the base. All wait for a permit of the base (I4), since another account may be
 * syncing it; the first one after all other requests, because the key is unproven.
 *
 * @throws BasetideError as `checkKey`, `quota_timeout`
 */
export async function checkReading(
  ctx: ReadingContext,
  platform: string,
  apiKey: string,
  sourceBaseId: string,
): Promise<BaseSize> {
  const source = platformById(ctx.platforms, platform);
  const signal = AbortSignal.timeout(ctx.config.upstreamTimeoutMs);
  const limiter = rateLimiterOf(ctx);
  const quotaKey = quotaKeyOf({ platform, sourceBaseId });
  const asked = { connection: source.connect(apiKey), sourceBaseId, limiter, quotaKey, signal };
  const waiting = { deadlineMs: ctx.config.upstreamTimeoutMs, signal, shownAs: SHOWN_AS };
  const unproven = new MeteredSource({ ...asked, queue: { priority: "unproven", ...waiting } });
  const accepted = new MeteredSource({ ...asked, queue: { priority: "client", ...waiting } });
  const { schema, records } = source.keyScopes ?? {};
  const { tables } = await unproven
    .send((connection) => connection.getSchema(sourceBaseId, signal))
    .catch((error: unknown) => {
      throw failedCall(error, schema, "read the tables of this base");
    });
  try {
    limiter.countServed(quotaKey, SHOWN_AS);
    const { sample } = source;
    return await measureBase({ source: accepted, sourceBaseId, sample, signal }, tables);
  } catch (error) {
    throw failedCall(error, records, "read the records of this base");
  }
}

const AT_SOURCE = "Airtable has a problem. Try again in a minute.";
/** What to do about an answer, for someone who waits for it. */
const REMEDIES: Partial<Record<ErrorCode, string>> = {
  source_unavailable: AT_SOURCE,
  source_timeout: AT_SOURCE,
  source_bad_answer: AT_SOURCE,
  source_rate_limited:
    "Too many requests reach Airtable for this base, or with this key. Wait 30 seconds and try again.",
  source_billing_limit:
    "Its workspace has no API calls left this month. Upgrade its plan in Airtable, or try again next month.",
  source_not_found: "The base may have been deleted. Choose another one.",
  source_key_refused: "The token may have been revoked. Enter another one.",
  quota_timeout:
    "Syncs and apps use all requests that Airtable allows for this base. Wait 30 seconds and try again.",
};

/**
 * Names the call that failed, and what to do. Of a missing right, the source does not say which one it is: the call
 * determines it.
 *
 * @param scope what the key needs for the call
 */
function failedCall(error: unknown, scope: string | undefined, call: string): unknown {
  if (!isBasetideError(error)) return error;
  if (error.code === "source_forbidden") {
    const remedy = scope
      ? `it lacks the scope ${scope}. Add the scope, save the token, and try again.`
      : error.message;
    return new BasetideError("source_forbidden", `The key cannot ${call}: ${remedy}`, { cause: error });
  }
  // The only signal of a check is its deadline.
  const code = error.code === "sync_stopped" ? "source_timeout" : error.code;
  const said = error.code === code ? error.message.replace(errorCodes[code], "").trim() : "";
  const answer = said || "Airtable did not answer in time.";
  return new BasetideError(
    code,
    `The request to ${call} failed: ${answer} ${REMEDIES[code] ?? "Try again in a minute."}`,
    { cause: error },
  );
}
