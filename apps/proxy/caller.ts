/**
 * Tells whether a client's key has been accepted by the source for the base, or is unproven.
 *
 * P5. A request with an unproven key waits in a queue of its own, takes nothing that the owner's clients need, is
 *     counted only if the source has served it, and its 429s are ignored.
 */
import { clientNetwork } from "../../core/http";
import { firstLetters } from "../../core/keys";
import { type BaseLookup, type ConnectedBase, isKeyFresh, isSyncing } from "../../core/proxy";
import type { RequestBody } from "./body";
import type { ProxyContext } from "./context";
import { failed, type OwnAnswer, ownAnswer, servedElsewhere } from "./own-answers";

/** Statuses with which the source says that it has not served a request. */
const NOT_SERVED = new Set([401, 403, 404, 429]);
/** Longest wait of an unproven key in the queue, ms: its client is told to try again rather than hold a place. */
const UNPROVEN_WAIT_MS = 5000;

export interface Caller extends Disposable {
  /** Identifies key and base. */
  keyHash: string;
  /** The first letters of the key. */
  shownAs: string;
  /** Undefined: a base that is not connected, whose requests need no permit. */
  quotaKey: string | undefined;
  found: BaseLookup;
  isProven: boolean;
  isOwnKeyOf(base: ConnectedBase): boolean;
  /** Records the source's answer. @param isRead a success shows that the key may read records */
  answered(method: string, status: number, isRead?: boolean): void;
}

/**
 * Resolves when the request may proceed: at once for a proven key.
 *
 * The body of an unproven one is read before it enters the queue, where a slow client would delay others.
 *
 * @returns an answer if it may not proceed
 */
export async function admit(
  ctx: ProxyContext,
  request: Request,
  body: RequestBody,
  sourceBaseId: string,
  authorization: string,
): Promise<Caller | Response> {
  const keyHash = ctx.keys.hash(sourceBaseId, authorization);
  // Created only for requests that wait: the signals cost more than everything else done here for a proven key.
  let signal: AbortSignal | undefined;
  const waiting = () =>
    (signal ??= AbortSignal.any([request.signal, body.gaveWay, AbortSignal.timeout(UNPROVEN_WAIT_MS)]));
  let hasArrived = false;
  for (;;) {
    const refusedMs = ctx.keys.refusedForMs(keyHash);
    if (refusedMs > 0) return ownAnswer("PROXY_KEY_REFUSED", { retryAfterMs: refusedMs });
    const found = await ctx.writes.bases.recent(sourceBaseId);
    if (found.elsewhere) return servedElsewhere(found.elsewhere);
    const make = (isProven: boolean, leave?: Admitted["leave"]) =>
      callerOf(ctx, { sourceBaseId, keyHash, authorization, found, isProven, leave });
    if (!found.mayBeConnected) return make(ctx.keys.isKnown(keyHash));
    if (await isProven(ctx, found, sourceBaseId, keyHash)) return make(true);
    const network = clientNetwork(request, ctx.config.clientIpHeader, keyHash);
    if (!hasArrived && !ctx.unproven.arrive(network)) return tooMany();
    hasArrived = true;
    const of = { key: keyHash, base: sourceBaseId, network };
    const received = await body.read(ctx.bodies, () => ({ isProven: false, of }));
    if (typeof received === "string") return ownAnswer(received);
    if (body.hasGivenWay) return ownAnswer("PROXY_BUSY");
    try {
      const entrance = await ctx.unproven.enter({ sourceBaseId, keyHash, network }, waiting);
      if (entrance.kind === "full") return tooMany();
      if (entrance.kind === "served") return make(false, entrance.leave);
    } catch {
      if (request.signal.aborted) return failed(ctx.proxyMetrics, "aborted");
      return body.hasGivenWay ? ownAnswer("PROXY_BUSY") : tooMany();
    }
  }
}

async function isProven(
  ctx: ProxyContext,
  { bases }: BaseLookup,
  sourceBaseId: string,
  keyHash: string,
): Promise<boolean> {
  if (ctx.keys.isKnown(keyHash)) return true;
  // Includes a paused base, as long as the source accepted the key within the last minutes.
  const standsForKey = (base: ConnectedBase) => isSyncing(base) || isKeyFresh(base);
  if (bases.some((base) => standsForKey(base) && ctx.isOwnKey(base, keyHash))) return true;
  return ctx.keys.isAccepted(sourceBaseId, keyHash);
}

interface Admitted {
  sourceBaseId: string;
  keyHash: string;
  authorization: string;
  found: BaseLookup;
  isProven: boolean;
  leave?: ((isRefused: boolean) => void) | undefined;
}

function callerOf(ctx: ProxyContext, admitted: Admitted): Caller {
  const { sourceBaseId, keyHash, authorization, found, isProven, leave } = admitted;
  const quotaKey = found.mayBeConnected ? ctx.writes.quotaKey(sourceBaseId) : undefined;
  return {
    keyHash,
    shownAs: firstLetters(authorization),
    quotaKey,
    found,
    isProven,
    isOwnKeyOf: (base) => ctx.isOwnKey(base, keyHash),
    answered(method, status, isRead = false) {
      ctx.keys.record(sourceBaseId, keyHash, { method, status, isRead, isConnected: quotaKey !== undefined });
      if (isProven || quotaKey === undefined) return;
      if (!NOT_SERVED.has(status) && status < 500)
        ctx.limiter.countServed(quotaKey, firstLetters(authorization));
      if (ctx.keys.isKnown(keyHash) || ctx.keys.refusedForMs(keyHash) > 0)
        ctx.unproven.decided(sourceBaseId, keyHash);
    },
    [Symbol.dispose]: () => leave?.(ctx.keys.refusedForMs(keyHash) > 0),
  };
}

function tooMany(): Response {
  const name: OwnAnswer = "PROXY_TOO_MANY_REQUESTS";
  return ownAnswer(name, { retryAfterMs: 5000 });
}
