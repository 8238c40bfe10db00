/**
 * Sends a batch of writes to the source, and gives each of them its outcome.
 *
 * P7. Each client gets the answer that its write would have had alone. If the source rejects the content of a request,
 *     it has changed nothing, and the two halves are sent, down to each client's own request. A request that may have
 *     changed something is never repeated.
 */
import type { ProxyContext } from "../context";
import { failed } from "../own-answers";
import type { UpstreamRequest } from "../upstream";
import { answerWrite, isSuccess, type SentWrite, sendWrite, type WriteTarget } from "../write";
import { type BatchMember, WriteBatch } from "./batch";
import { copyOf, divideAnswer } from "./batch-answer";

/** One record may be the reason. */
const REJECTED = new Set([400, 413, 422]);
/** What the source refuses for one record, it most likely refuses for all: halves would only cost more requests. */
const NOT_ALLOWED = new Set([403, 404]);

/** @param gathered resolves when the batch may be sent; others may join until it is. Never fails. */
export async function sendBatch(
  ctx: ProxyContext,
  batch: WriteBatch,
  target: WriteTarget,
  gathered?: Promise<void>,
): Promise<void> {
  let request: UpstreamRequest | undefined;
  const compose = () => {
    request = batch.compose();
    return request;
  };
  try {
    const outgoing = { address: batch.members[0]!.request.address, compose, isComplete: gathered };
    const sending = sendWrite(ctx, outgoing, target, batch.signal, { ms: 0 });
    // A batch that was refused before it was composed must not be joined while its members get their outcome.
    const sent = await sending.finally(() => batch.close());
    if (sent instanceof Response) return await refuse(batch, sent);
    const { members } = batch;
    const { status } = sent.answer;
    const isOne = members.length === 1;
    if (!isOne) ctx.proxyMetrics.coalesced(members.length);
    if (!isOne && isSuccess(status)) await divide(ctx, batch, target, sent, request!);
    else if (!isOne && REJECTED.has(status)) await sendHalves(ctx, members, target);
    else if (!isOne && NOT_ALLOWED.has(status)) for (const { resolve } of members) resolve("alone");
    else for (const { resolve } of members) resolve({ ...sent, answer: copyOf(sent.answer) });
  } catch (error) {
    for (const { reject } of batch.members) reject(error);
  }
}

/** The proxy's own answer to all members. */
async function refuse({ members }: WriteBatch, refusal: Response): Promise<void> {
  const text = await refusal.text();
  for (const { resolve } of members) resolve({ refusal, text });
}

/** Gives each member its own record of the answer. */
async function divide(
  ctx: ProxyContext,
  batch: WriteBatch,
  target: WriteTarget,
  sent: SentWrite,
  request: UpstreamRequest,
): Promise<void> {
  const { members } = batch;
  const answers = await divideAnswer(
    sent.answer,
    members.map(({ write }) => write),
  );
  if (answers) {
    members.forEach(({ resolve }, index) => {
      resolve({ ...sent, answer: answers[index]! });
    });
    return;
  }
  // The records are written, but it is unknown which is whose.
  ctx.log.warn(
    { status: sent.answer.status, records: members.length },
    "response to several writes not understood",
  );
  await answerWrite(ctx, sent, target.call, request);
  await refuse(batch, failed(ctx.proxyMetrics, "unreachable"));
}

async function sendHalves(
  ctx: ProxyContext,
  members: readonly BatchMember[],
  target: WriteTarget,
): Promise<void> {
  const middle = Math.ceil(members.length / 2);
  const halves = [members.slice(0, middle), members.slice(middle)];
  await Promise.all(
    halves.map(async (half) => {
      if (half.length === 1) return half[0]!.resolve("alone");
      // Where the records of the other half are says nothing about these.
      const call = { ...target.call, ids: half.flatMap(({ write }) => write.recordId ?? []) };
      await sendBatch(ctx, new WriteBatch(half), { ...target, call });
    }),
  );
}
