/**
 * Forwards requests that may change records: holds the answer until every replica shows the write, or marks it as
 * pending.
 */

import { forwarded } from "../../core/http";
import {
  bodyText,
  idsInRequest,
  isRecordId,
  type PreparedWrite,
  readWriteAnswer,
  type Write,
} from "../../core/proxy";
import { type Call, proxied } from "../../core/source";
import { span } from "../../core/trace";
import type { OpenShare } from "./answer-place";
import type { Caller } from "./caller";
import type { Elsewhere, ProxyContext } from "./context";
import { setExposed } from "./cors";
import { failed, ownAnswer, servedElsewhere } from "./own-answers";
import { recordRateLimit, waitForQuota } from "./quota";
import { askWhole, type UpstreamRequest, type WholeAnswer } from "./upstream";

/** Maximum number of records of one write that are handled individually: ten times what the source accepts at once. */
const maxIds = 10 * proxied.limits.writeSize;
/** `x-basetide-sql: pending`: the source has made the write, and SQL does not show it yet. */
export const SQL_HEADER = "x-basetide-sql";

/** Where a write goes, and whose it is. */
export interface WriteTarget {
  baseId: string;
  call: Call;
  caller: Caller;
  /** Opens its share of the requests that hold a connection to the source. */
  open: OpenShare;
  /** The write is sent once this has resolved, and not at all if it is false. */
  isRecorded?: Promise<boolean> | undefined;
}

/** A write that the source has answered. */
export interface SentWrite {
  prepared: PreparedWrite;
  answer: WholeAnswer;
}

/** @param signal the client's: aborts the wait for the quota, but not a request that was sent */
export async function forwardWrite(
  ctx: ProxyContext,
  request: UpstreamRequest,
  target: WriteTarget,
  signal: AbortSignal,
  elsewhere: Elsewhere,
): Promise<Response> {
  const outgoing = { address: request.address, compose: () => request };
  const sent = await sendWrite(ctx, outgoing, target, signal, elsewhere);
  return sent instanceof Response ? sent : answerWrite(ctx, sent, target.call, request);
}

/** A request that is complete only when it may be sent. */
interface OutgoingWrite {
  address: string;
  /** Called right before it is sent. */
  compose(): UpstreamRequest;
  /** The wait for the quota begins when this has resolved. */
  isComplete?: Promise<unknown>;
}

/** @returns the proxy's own answer if the source has not answered */
export async function sendWrite(
  ctx: ProxyContext,
  { address, compose, isComplete }: OutgoingWrite,
  { baseId, call, caller, open, isRecorded }: WriteTarget,
  signal: AbortSignal,
  elsewhere: Elsewhere,
): Promise<SentWrite | Response> {
  // The base may have been connected since the caller was admitted.
  const isConnected =
    caller.quotaKey !== undefined || (await ctx.writes.bases.current(baseId)).mayBeConnected;
  const quotaKey = isConnected ? ctx.writes.quotaKey(baseId) : undefined;
  await isComplete;
  if (signal.aborted) return failed(ctx.proxyMetrics, "aborted");
  // It never gives way: what was sent may have changed something.
  using share = open();
  let prepared = undefined as PreparedWrite | undefined;
  const prepare = async () => {
    if (!share.take(1)) return ownAnswer("WRITES_FULL");
    // Not before: a write that is refused, or leaves the queue, costs no statement.
    const writer = { isWriters: caller.isOwnKeyOf, caller: caller.keyHash };
    const preparing = ctx.writes.prepare(baseId, call, writer);
    // Awaited below, unless the write is not sent.
    preparing.catch(() => {});
    if ((await isRecorded) === false) return failed(ctx.proxyMetrics, "aborted");
    prepared = await preparing;
    return prepared.elsewhere && servedElsewhere(prepared.elsewhere);
  };
  const held = await waitForQuota(ctx, { ...caller, quotaKey }, address, signal, elsewhere, prepare);
  if (held instanceof Response) return held;
  const sentAt = performance.now();
  const request = compose();
  const answer = await span("source", {}, () => askWhole(request, ctx.config.upstreamTimeoutMs, held));
  elsewhere.ms += performance.now() - sentAt;
  if (answer.status !== undefined) caller.answered(request.method, answer.status);
  if ("failure" in answer) {
    // The source has made the write, and its answer broke off.
    if (isSuccess(answer.status)) await showInReplicas(ctx, prepared!, call, request, undefined);
    return failed(ctx.proxyMetrics, answer.failure);
  }
  if (answer.status === 429) await recordRateLimit(ctx, caller, answer.headers, answer.bytes);
  return { prepared: prepared!, answer };
}

/** Returns the source's answer when every replica shows the write, or marks it as pending. */
export async function answerWrite(
  ctx: ProxyContext,
  { prepared, answer }: SentWrite,
  call: Call,
  request: UpstreamRequest,
): Promise<Response> {
  const isInSql = !isSuccess(answer.status) || (await showInReplicas(ctx, prepared, call, request, answer));
  const { bytes, status, statusText, headers } = answer;
  if (!isInSql) setExposed(headers, SQL_HEADER, "pending");
  return forwarded(new Response(bytes.length > 0 ? bytes : null, { status, statusText, headers }));
}

/**
 * The source has made the write: replicas and syncs are updated.
 *
 * @returns false if the SQL of a connected base may not show the write yet
 */
async function showInReplicas(
  ctx: ProxyContext,
  prepared: PreparedWrite,
  call: Call,
  request: UpstreamRequest,
  answer: WholeAnswer | undefined,
): Promise<boolean> {
  const { writes } = ctx;
  const { bases } = prepared;
  const isUnconnected = !prepared.mayBeConnected;
  if (call.kind === "schema") {
    writes.schemaChanged(bases);
    return isUnconnected;
  }
  if (call.kind === "sync_csv") {
    writes.catchUp(bases);
    return isUnconnected;
  }
  const write = await whatWasWritten(call, request, answer);
  if (!write) return true;
  if ((write.ids.length === 0 && !write.answer) || write.ids.length > maxIds) {
    ctx.log.warn({ status: answer?.status, records: write.ids.length }, "response to a write not understood");
    writes.catchUp(bases);
    return isUnconnected;
  }
  return span("show in replicas", { "basetide.records": write.ids.length }, () => prepared.settle(write));
}

async function whatWasWritten(
  call: Call,
  request: UpstreamRequest,
  answer: WholeAnswer | undefined,
): Promise<Write | null> {
  if (call.kind === "upload") {
    const text = answer && (await bodyText(answer.bytes, answer.headers.get("content-encoding")));
    const said = text ? readWriteAnswer(text)?.records[0] : undefined;
    // The answer has one cell of the record, under its field's id: only this tells the record's table.
    const fieldId = said && Object.keys(said.fields)[0];
    return { tableRef: fieldId ?? call.fieldRef, ids: [call.recordId].filter(isRecordId), answer: null };
  }
  if (call.kind !== "write") return null;
  const text = answer && (await bodyText(answer.bytes, answer.headers.get("content-encoding")));
  const said = text ? readWriteAnswer(text) : null;
  if (said) {
    const ids = [...said.records.map((record) => record.id), ...said.gone];
    return { tableRef: call.tableRef, ids, answer: said, isCreation: request.method === "POST" };
  }
  const requested = request.body
    ? await bodyText(request.body, request.headers.get("content-encoding") ?? null)
    : null;
  const ids = new Set([...call.ids.filter(isRecordId), ...(requested ? idsInRequest(requested) : [])]);
  return { tableRef: call.tableRef, ids: [...ids], answer: null };
}

export function isSuccess(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status < 300;
}
