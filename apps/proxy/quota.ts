/** A connected base's requests wait for their place in its quota, and its 429s make everybody rest. */
import { isBasetideError } from "../../core/errors";
import { bodyText } from "../../core/writes";
import type { Elsewhere, ProxyContext } from "./context";
import { failed, ownAnswer } from "./own-answers";

/** The source's own penalty, ms. */
const PENALTY_MS = 30_000;
/** The monthly cap: waiting half a minute is of no use, and the source's own answer says more than we could. */
const BILLING_LIMIT = "PUBLIC_API_BILLING_LIMIT_EXCEEDED";

/**
 * Waits until the base may be asked; the request must then be sent at once.
 *
 * @param signal the client's: its place goes to whoever is next
 * @returns an answer of our own where it comes to nothing
 */
export async function waitForQuota(
  ctx: ProxyContext,
  quotaKey: string,
  signal: AbortSignal,
  elsewhere: Elsewhere,
): Promise<Response | undefined> {
  const from = performance.now();
  try {
    await ctx.ledger.takeClient(quotaKey, { deadlineMs: ctx.config.upstreamTimeoutMs, signal });
  } catch (error) {
    if (isBasetideError(error, "quota_timeout")) return ownAnswer("QUOTA_TIMEOUT");
    if (signal.aborted) return failed(ctx.proxyMetrics, "aborted");
    throw error;
  } finally {
    elsewhere.ms += performance.now() - from;
  }
}

/** The source said 429. */
export async function noteRateLimit(
  ctx: ProxyContext,
  quotaKey: string,
  headers: Headers,
  body: Uint8Array,
): Promise<void> {
  const text = await bodyText(body, headers.get("content-encoding"));
  if (text?.includes(BILLING_LIMIT)) return;
  const retryAfterMs = Number(headers.get("retry-after") ?? 0) * 1000;
  await ctx.ledger.block(quotaKey, Math.max(PENALTY_MS, retryAfterMs || 0), "rate_limited");
}
