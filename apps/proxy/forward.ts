/**
 * Handles a client's request up to its answer.
 *
 * P2. An answer of the upstream is returned unchanged, byte for byte; an answer of our own says `sender: "proxy"`.
 * P3. If a client disconnects, its read is aborted, but never a write that may already be on its way.
 */
import { allowLongAnswer, clientNetwork, forwarded } from "../../core/http";
import { withRequestId } from "../../core/request-id";
import { span, withRemoteParent } from "../../core/trace";
import { AnswerPlace, type OpenShare } from "./answer-place";
import { hasBody, RequestBody } from "./body";
import { openShare, ownersOf } from "./budgets";
import { admit, type Caller } from "./caller";
import type { Elsewhere, ProxyContext } from "./context";
import { allowReadHeader } from "./cors";
import { requestHeaders } from "./headers";
import type { CallClass } from "./metrics";
import { failed, ownAnswer } from "./own-answers";
import { recordRateLimit, waitForQuota } from "./quota";
import { recordOf } from "./recorded-first";
import { replicaRead, sayFromSource } from "./replica-read";
import { type ProxyTarget, parseTarget } from "./target";
import { askUpstream, type UpstreamRequest } from "./upstream";

/** Answers a request; never fails. */
export async function forward(ctx: ProxyContext, request: Request): Promise<Response> {
  const startedAt = performance.now();
  const elsewhere: Elsewhere = { ms: 0 };
  const target = parseTarget(request.method.toUpperCase(), request.url, {
    upstreams: ctx.config.upstreams,
    ownHosts: ctx.ownHosts,
  });
  if (target === "host_not_allowed") return ownAnswer("PROXY_HOST_NOT_ALLOWED", { told: howToAddress(ctx) });
  if (target === "path_not_allowed") return ownAnswer("PROXY_PATH_NOT_ALLOWED");
  if (target === "path_ambiguous") return ownAnswer("PATH_AMBIGUOUS");
  const { headers } = request;
  const work = () =>
    span("proxy", { "basetide.call": target.call.kind }, () => answer(ctx, request, target, elsewhere));
  // All errors are handled inside, with the request's id.
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

/** For a request without an upstream's host, such as one of a browser that opens the proxy's address. */
function howToAddress({ config }: Pick<ProxyContext, "config">): string {
  const [host] = Object.keys(config.upstreams);
  const example = `${config.proxyUrl.replace(/\/$/, "")}/${host}/v0/{base id}/{table}`;
  return `This is a proxy for the API of Airtable. Put its host before the path: ${example} (or send the request with a Host header that is the host of PROXY_URL or of an API).`;
}

async function answer(
  ctx: ProxyContext,
  request: Request,
  target: ProxyTarget,
  elsewhere: Elsewhere,
): Promise<Response> {
  const { baseId } = target;
  using body = new RequestBody(request);
  const authorization = request.headers.get("authorization");
  if (request.method === "OPTIONS") return await preflight(ctx, request, body, target, elsewhere);
  // As the source does; also for bases that are not connected, so that the answer does not reveal which are.
  if (authorization === null && (baseId !== undefined || hasBody(request)))
    return ownAnswer("PROXY_KEY_MISSING");
  if (baseId === undefined || authorization === null)
    return await withBody(ctx, request, body, target, elsewhere, undefined);
  const from = performance.now();
  const admitted = await admit(ctx, request, body, baseId, authorization);
  elsewhere.ms += performance.now() - from;
  if (admitted instanceof Response) return admitted;
  using caller = admitted;
  return await withBody(ctx, request, body, target, elsewhere, caller);
}

/** Browsers send no key with a preflight, so it is neither counted nor queued. */
async function preflight(
  ctx: ProxyContext,
  request: Request,
  body: RequestBody,
  target: ProxyTarget,
  elsewhere: Elsewhere,
): Promise<Response> {
  const network = clientNetwork(request, ctx.config.clientIpHeader, target.baseId ?? "");
  const retryAfterMs = ctx.preflights.take(network);
  if (retryAfterMs > 0) return ownAnswer("PROXY_TOO_MANY_REQUESTS", { retryAfterMs });
  return allowReadHeader(request, await withBody(ctx, request, body, target, elsewhere, undefined));
}

/** @param caller undefined for a request that names no base */
async function withBody(
  ctx: ProxyContext,
  request: Request,
  incoming: RequestBody,
  target: ProxyTarget,
  elsewhere: Elsewhere,
  caller: Caller | undefined,
): Promise<Response> {
  const body = await incoming.read(ctx.bodies, () => ownersOf(ctx, request, target, caller));
  if (typeof body === "string") return ownAnswer(body);
  incoming.keep();
  allowLongAnswer(request);
  const { baseId, call, method, address, path } = target;
  const upstreamRequest = { method, address, path, headers: requestHeaders(request.headers), body };
  const open = (giveWay?: () => void) =>
    openShare(ctx.connections, ownersOf(ctx, request, target, caller), giveWay);
  if (baseId === undefined || call.kind === "read" || !caller) {
    return await forwardRead(
      ctx,
      upstreamRequest,
      target,
      caller,
      { signal: request.signal, open },
      elsewhere,
    );
  }
  const writing = ctx.coalescer.forward(
    ctx,
    upstreamRequest,
    { baseId, call, caller, open, isRecorded: recordOf(request) },
    request.signal,
    elsewhere,
  );
  ctx.underWay.add(writing);
  try {
    return await writing;
  } finally {
    ctx.underWay.delete(writing);
  }
}

/** Forwards a request that changes no record of a base, as a stream. */
async function forwardRead(
  ctx: ProxyContext,
  upstreamRequest: UpstreamRequest,
  target: ProxyTarget,
  caller: Caller | undefined,
  { signal, open }: { signal: AbortSignal; open: OpenShare },
  elsewhere: Elsewhere,
): Promise<Response> {
  const { call } = target;
  const read = caller && (await replicaRead(ctx, upstreamRequest, target, caller));
  if (read?.answer) return read.answer;
  const isCounted = caller?.quotaKey !== undefined;
  const place = new AnswerPlace(open);
  const ask = async () => {
    const granted = caller && (await waitForQuota(ctx, caller, upstreamRequest.address, signal, elsewhere));
    if (granted instanceof Response) return { refused: granted };
    if (call.kind !== "read" && !place.keep()) {
      granted?.[Symbol.dispose]();
      return { refused: ownAnswer("WRITES_FULL") };
    }
    const sentAt = performance.now();
    const answered = await askUpstream(upstreamRequest, ctx.config.upstreamTimeoutMs, signal, place, granted);
    elsewhere.ms += performance.now() - sentAt;
    return { answered };
  };
  let asking = await ask();
  // The source may have counted the request that broke off: this is one more request of the quota.
  if (asking.answered === "stale" && call.kind === "read") asking = await ask();
  if (asking.refused) return asking.refused;
  const response = asking.answered;
  if (typeof response === "string") return failed(ctx.proxyMetrics, response);
  caller?.answered(upstreamRequest.method, response.status, read?.isCandidate);
  if (response.status === 429 && isCounted) return rateLimited(ctx, caller, response);
  if (read?.isCandidate) sayFromSource(response);
  // The same Response object: a copy would lose the body's length.
  return forwarded(response);
}

async function rateLimited(ctx: ProxyContext, caller: Caller, response: Response): Promise<Response> {
  const { status, statusText, headers } = response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  await recordRateLimit(ctx, caller, headers, bytes);
  return forwarded(new Response(bytes, { status, statusText, headers }));
}

function classOf({ call, baseId }: ProxyTarget): CallClass {
  if (call.kind === "read") return "read";
  return baseId !== undefined && (call.kind === "write" || call.kind === "upload") ? "write" : "other";
}
