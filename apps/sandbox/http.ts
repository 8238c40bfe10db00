/**
 * Handles an HTTP request: log, throttle, faults and latency around the API's calls.
 *
 * H1. Every API request is in the log with the time of its arrival, before anything else is decided about it.
 */
import { answerApi, isListCall } from "./api";
import type { AccessKey } from "./auth";
import { SLOW_REQUESTS_PER_SECOND } from "./caps";
import { ApiError, billingLimit, rateLimited } from "./errors";
import { isReplacing, listFault, replacement, spoiled } from "./fault-answers";
import type { Fault } from "./faults";
import { isSandboxId } from "./random";
import { type ApiRequest, parseQuery, parseSegments } from "./request";
import type { LogEntry } from "./request-log";
import type { Sandbox } from "./sandbox";
import { send } from "./send";

/** The longest URL that a route accepts. */
const MAX_URL_LENGTH = 16_000;

/** Enough for everything except the ids of many records, characters. */
const MAX_LOGGED_BODY = 300;

const NO_BODY = new Uint8Array();

export interface RouteTarget {
  method: string;
  /** As received, with the query. */
  path: string;
  /** The first segment: `v0`, `_sandbox`… */
  root: string;
  /** The other segments. */
  segments: string[];
  queryText: string;
  baseId: string | undefined;
}

/** Splits a URL's path: doubled and trailing slashes are ignored, escapes are decoded per segment. */
export function targetOf(request: Request): RouteTarget {
  const path = request.url.slice(request.url.indexOf("/", 8));
  const question = path.indexOf("?");
  const segments = parseSegments(question < 0 ? path : path.slice(0, question));
  const root = segments.shift() ?? "";
  const baseId = root === "v0" ? baseIdOf(segments) : undefined;
  const queryText = question < 0 ? "" : path.slice(question + 1);
  return { method: request.method.toUpperCase(), path, root, segments, queryText, baseId };
}

function baseIdOf([first, second, third]: string[]): string | undefined {
  const id = first === "meta" && second === "bases" ? third : first === "bases" ? second : first;
  return isSandboxId("app", id) ? id : undefined;
}

/** Answers a request to `/v0/…`. */
export async function handleApi(
  sandbox: Sandbox,
  request: Request,
  target: RouteTarget,
  clientPort: number,
): Promise<Response> {
  const arrivalMs = performance.now();
  const entry: LogEntry = { arrivalMs, clientPort, method: target.method, path: target.path, status: 0 };
  if (target.baseId !== undefined) entry.baseId = target.baseId;
  sandbox.log.arrived(entry);
  const response = await respond(sandbox, request, target, entry);
  // Clients that follow the service's clock must see the clock of record times.
  response.headers.set("date", dateHeader(sandbox.store.now()));
  sandbox.log.answered(entry, response.status);
  return response;
}

/** All answers of a second have the same date. */
let shownSecond = Number.NaN;
let shownDate = "";

function dateHeader(nowMs: number): string {
  const second = Math.floor(nowMs / 1000);
  if (second !== shownSecond) [shownSecond, shownDate] = [second, new Date(nowMs).toUTCString()];
  return shownDate;
}

async function respond(
  sandbox: Sandbox,
  request: Request,
  target: RouteTarget,
  entry: LogEntry,
): Promise<Response> {
  if (target.method === "OPTIONS") return send(request, { status: 200, text: "" });
  try {
    // The throttle comes first: a request with a faulty answer counts towards the limit like any other.
    const key = admit(sandbox, request, target, entry);
    const body = await readBody(request, target.method);
    if (isListCall(target.method, target.segments)) entry.path = withBody(target.path, body);
    const fault = nextFault(sandbox, { ...target, path: entry.path }, entry);
    const isReplaced = fault !== undefined && isReplacing(fault);
    if (isReplaced && fault.when !== "after") return replacement(fault);
    await pause(sandbox, "before");
    const answer = answerApi(sandbox, apiRequest(request, target, key, body, fault));
    await pause(sandbox, "after");
    if (isReplaced) return replacement(fault);
    const isSpoiled = fault !== undefined && listFault(fault) === undefined;
    const response = send(request, answer, () => sandbox.attachments.token(), !isSpoiled);
    return isSpoiled ? await spoiled(fault, response, request.signal) : response;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return errorAnswer(request, error);
  }
}

/** @throws ApiError 401 for the key, 429 from the throttle or beyond the month's cap */
function admit(sandbox: Sandbox, request: Request, target: RouteTarget, entry: LogEntry): AccessKey {
  if (target.path.length > MAX_URL_LENGTH) throw new ApiError(414, { error: { type: "URI_TOO_LONG" } });
  const key = sandbox.keys.authenticate(request.headers.get("authorization"));
  entry.tokenId = key.tokenId;
  const { caps, limiter, settings } = sandbox;
  const { baseId } = target;
  const over = baseId === undefined ? undefined : caps.over(baseId);
  const perBase = over === "slow" ? SLOW_REQUESTS_PER_SECOND : settings.requestsPerSecondPerBase;
  if (!limiter.admits(settings, entry.arrivalMs, key.user.id, baseId, perBase))
    throw rateLimited(settings.rateLimitForm);
  if (baseId === undefined) return key;
  // The block was observed not to affect the meta API.
  if (over === "block" && target.segments[0] !== "meta") throw billingLimit(settings.billingLimitForm);
  caps.count(baseId);
  return key;
}

function nextFault(sandbox: Sandbox, target: RouteTarget, entry: LogEntry): Fault | undefined {
  const { method, path, baseId, segments } = target;
  const isList = isListCall(method, segments);
  const fault = sandbox.faults.next({ method, path, baseId, table: segments[1], isList });
  if (fault) entry.fault = fault.kind;
  return fault;
}

/** The log shows the parameters of a list, and faults match them, whether they are in the query or in the body. */
function withBody(path: string, body: Uint8Array): string {
  return body.length === 0 ? path : `${path} ${Buffer.from(body).toString().slice(0, MAX_LOGGED_BODY)}`;
}

async function readBody(request: Request, method: string): Promise<Uint8Array> {
  if (method === "GET" || method === "DELETE") return NO_BODY;
  const bytes = new Uint8Array(await request.arrayBuffer());
  return request.headers.get("content-encoding") === "gzip" ? Bun.gunzipSync(bytes) : bytes;
}

function apiRequest(
  request: Request,
  target: RouteTarget,
  key: AccessKey,
  body: Uint8Array,
  fault: Fault | undefined,
): ApiRequest {
  return {
    method: target.method,
    segments: target.segments,
    query: parseQuery(target.queryText),
    header: (name) => request.headers.get(name),
    body,
    key,
    listFault: listFault(fault),
  };
}

/** Without latency, there is no yield to the event loop in between. */
function pause(sandbox: Sandbox, when: "before" | "after"): Promise<void> | undefined {
  const waitMs = sandbox.latency.draw(sandbox.settings, when);
  return waitMs > 0 ? Bun.sleep(waitMs) : undefined;
}

function errorAnswer(request: Request, error: ApiError): Response {
  return send(request, { status: error.status, json: error.body });
}
