/**
 * From a client's request to its answer.
 *
 * P2. Whatever the upstream answers comes back unchanged, bytes and all; an answer of our own says `sender: "proxy"`.
 * P3. A client that goes away ends its read, and never a write that may be on its way.
 */
import { withRequestId } from "../../core/request-id";
import { span, withRemoteParent } from "../../core/trace";
import { readBody } from "./body";
import type { Elsewhere, ProxyContext } from "./context";
import { cleanAnswer, requestHeaders } from "./headers";
import type { CallClass } from "./metrics";
import { failed, ownAnswer } from "./own-answers";
import { noteRateLimit, waitForQuota } from "./quota";
import { replicaRead } from "./replica-read";
import { parseTarget, type Target } from "./target";
import { askUpstream, type UpstreamRequest } from "./upstream";
import { forwardWrite } from "./write";

/** Answers a request; never fails. */
export async function forward(ctx: ProxyContext, request: Request): Promise<Response> {
  const startedAt = performance.now();
  const elsewhere: Elsewhere = { ms: 0 };
  const target = parseTarget(request.method.toUpperCase(), request.url, ctx.config.upstreams);
  if (target === "host_not_allowed") return ownAnswer("PROXY_HOST_NOT_ALLOWED");
  if (target === "path_not_allowed") return ownAnswer("PROXY_PATH_NOT_ALLOWED");
  const { headers } = request;
  const work = () =>
    span("proxy", { "basetide.call": target.call.kind }, () => answer(ctx, request, target, elsewhere));
  // Whatever goes wrong is told within: in the request's name.
  return withRequestId(headers.get("x-request-id"), async () => {
    try {
      return await withRemoteParent(headers, work);
    } catch (error) {
      ctx.log.error({ error, method: request.method, call: target.call.kind }, "request failed");
      return ownAnswer("PROXY_ERROR");
    } finally {
      const totalMs = performance.now() - startedAt;
      ctx.proxyMetrics.answered(classOf(target), totalMs, Math.max(0, totalMs - elsewhere.ms));
    }
  });
}

async function answer(
  ctx: ProxyContext,
  request: Request,
  target: Target,
  elsewhere: Elsewhere,
): Promise<Response> {
  const body = await readBody(request);
  if (typeof body === "string") return ownAnswer(body);
  const { baseId, call, url } = target;
  const asked = { method: request.method, url, headers: requestHeaders(request.headers), body };
  if (baseId === undefined || call.kind === "read") {
    return forwardRead(ctx, asked, target, request.signal, elsewhere);
  }
  const writing = forwardWrite(ctx, asked, baseId, call, request.signal, elsewhere);
  ctx.underWay.add(writing);
  try {
    return await writing;
  } finally {
    ctx.underWay.delete(writing);
  }
}

/** Forwards what changes no record of a base, as a stream. */
async function forwardRead(
  ctx: ProxyContext,
  asked: UpstreamRequest,
  { baseId, call }: Target,
  signal: AbortSignal,
  elsewhere: Elsewhere,
): Promise<Response> {
  const found = baseId === undefined ? undefined : await ctx.writes.bases.recent(baseId);
  const quotaKey = found?.mayBeConnected ? ctx.writes.quotaKey(baseId!) : undefined;
  const read = found?.bases.length ? await replicaRead(ctx, asked, baseId!, found.bases) : undefined;
  if (read?.answer) return read.answer;
  const isCounted = quotaKey !== undefined;
  const turn = async () => isCounted && (await waitForQuota(ctx, quotaKey, signal, elsewhere));
  const ask = async (isFresh: boolean) => {
    const sentAt = performance.now();
    const answered = await askUpstream(asked, ctx.config.upstreamTimeoutMs, signal, {
      isCounted,
      isFresh,
    });
    elsewhere.ms += performance.now() - sentAt;
    return answered;
  };
  const refused = await turn();
  if (refused) return refused;
  let response = await ask(false);
  if (response === "stale" && call.kind === "read") {
    // The source may have counted the one that broke off: this is one more of the quota.
    const refusedAgain = await turn();
    if (refusedAgain) return refusedAgain;
    response = await ask(true);
  }
  if (typeof response === "string") return failed(ctx.proxyMetrics, response);
  if (response.status === 429 && quotaKey !== undefined) return rateLimited(ctx, quotaKey, response);
  cleanAnswer(response.headers);
  read?.noteSource(response);
  // The very Response: one made of its parts would lose the body's length.
  return response;
}

async function rateLimited(ctx: ProxyContext, quotaKey: string, response: Response): Promise<Response> {
  const { status, statusText, headers } = response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  await noteRateLimit(ctx, quotaKey, headers, bytes);
  return new Response(bytes, { status, statusText, headers: cleanAnswer(headers) });
}

function classOf({ call, baseId }: Target): CallClass {
  if (call.kind === "read") return "read";
  return baseId !== undefined && (call.kind === "write" || call.kind === "upload") ? "write" : "other";
}
