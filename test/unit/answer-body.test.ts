/** The body of an answer, passed on whole or as a stream: every byte, in order, whatever arrived before it was asked for. */
import { expect, test } from "vitest";
import { firstOf } from "../../apps/proxy/answer-body";
import { AnswerPlace } from "../../apps/proxy/answer-place";
import { MB } from "../../core/byte-units";
import { SharedBudget } from "../../core/http";
import { StreamedAnswer } from "../../core/http/connections/answer-stream";

const HEAD = { status: 200, statusText: "OK", headers: new Map<string, string>(), lines: [] };
const LINE = { pause() {}, resume() {}, destroy() {} };
const places = new SharedBudget<never>({ most: 10, mostPer: { network: 10 } });

test.for([
  ["all of it, and its end", 12, 12],
  ["a part of it, more than is held for a client", 8, 12],
  ["little", 2, 12],
  ["nothing", 0, 12],
  ["all of a small one", 2, 2],
])("%s has arrived before", async ([, before, all]) => {
  const pieces = Array.from({ length: all as number }, (_, index) => Buffer.alloc(MB / 16, index + 1));
  const answer = new StreamedAnswer(HEAD, LINE);
  const arrive = (some: Buffer[]) => {
    for (const piece of some) answer.push(piece);
  };
  arrive(pieces.slice(0, before as number));
  if (before === all) answer.finish({});
  const body = firstOf(answer, new AnswerPlace(() => places.open({ network: "192.0.2.1" })));
  if (before !== all) {
    arrive(pieces.slice(before as number));
    answer.finish({});
  }
  const received = Buffer.from(await new Response(await body).arrayBuffer());
  expect(received.equals(Buffer.concat(pieces))).toBe(true);
  expect(places.total).toBe(0);
});
