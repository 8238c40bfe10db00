/** Requests for a connected base wait for a permit of its quota; after a 429 all requests of the base pause. */
import { isBasetideError } from "../../core/errors";
import { ConnectFailure, type HeldConnection, poolOf } from "../../core/http/connections";
import { bodyText } from "../../core/proxy";
import { proxied } from "../../core/source";
import type { Caller } from "./caller";
import type { Elsewhere, ProxyContext } from "./context";
import { failed, ownAnswer } from "./own-answers";

/**
 * Waits until a request to the base may be sent; it must then be sent at once, on the connection that is returned.
 *
 * @param address of the upstream
 * @param signal the client's: if it aborts, the next waiter gets the permit
 * @param prepare called when the request's turn is near; returns the proxy's own answer if it must not be sent
 * @returns the proxy's own answer if the wait failed; nothing for a base whose requests need no permit
 */
export async function waitForQuota(
  ctx: ProxyContext,
  caller: Caller,
  address: string,
  signal: AbortSignal,
  elsewhere: Elsewhere,
  prepare?: () => Promise<Response | undefined>,
): Promise<Response | HeldConnection | undefined> {
  const { quotaKey, keyHash, isProven, found, isOwnKeyOf } = caller;
  if (quotaKey === undefined) return prepare?.();
  let refusal: Response | undefined;
  const from = performance.now();
  // Twice the time-out: a pause of the source may use one, and the queue that has formed meanwhile the other. A request that
  // cannot be served by then is told at once when to come back; no other limit applies to those of a proven key.
  const deadlineMs = 2 * ctx.config.upstreamTimeoutMs;
  const options = {
    deadlineMs,
    signal,
    connections: poolOf(address),
    prepare:
      prepare &&
      (async () => {
        refusal = await prepare();
        if (refusal) throw new Error("the request must not be sent");
      }),
  };
  try {
    if (!isProven) return await ctx.limiter.acquireUnproven(quotaKey, options);
    const isOwnKey = found.bases.some(isOwnKeyOf);
    return await ctx.limiter.acquireClient(quotaKey, {
      ...options,
      caller: keyHash,
      isOwnKey,
      shownAs: isOwnKey ? "own" : caller.shownAs,
    });
  } catch (error) {
    if (refusal) return refusal;
    if (error instanceof ConnectFailure)
      return failed(ctx.proxyMetrics, error.code === "ETIMEDOUT" ? "timeout" : "unreachable");
    if (isBasetideError(error, "quota_timeout")) {
      return ownAnswer("RATE_LIMITED", { retryAfterMs: Number(error.details.retryAfterSeconds) * 1000 });
    }
    if (signal.aborted) return failed(ctx.proxyMetrics, "aborted");
    throw error;
  } finally {
    elsewhere.ms += performance.now() - from;
  }
}

/**
 * Records the source's 429. With an unproven key it says nothing about the base: it may be the limit of the key's
 * owner. The pause is the source's documented one: `Retry-After` of one client's call must not stop all others for longer.
 */
export async function recordRateLimit(
  ctx: ProxyContext,
  caller: Caller,
  headers: Headers,
  body: Uint8Array,
): Promise<void> {
  if (caller.quotaKey === undefined || !caller.isProven) return;
  const text = await bodyText(body, headers.get("content-encoding"));
  // The source's own answer says more than ours could.
  if (text !== null && proxied.dialect.saysCapSpent(text)) return;
  const isOwn = caller.found.bases.some(caller.isOwnKeyOf);
  await ctx.limiter.block(caller.quotaKey, proxied.limits.penaltyMs, "rate_limited", { isOwn });
}
