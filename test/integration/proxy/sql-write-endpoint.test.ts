/** The endpoint of SQL writes: what its clients have of its connections and its memory. */
import type net from "node:net";
import pg from "pg";
import pino from "pino";
import { expect, onTestFinished, test } from "vitest";
import { openWriteEndpoint } from "../../../apps/proxy/sql-writes/endpoint";
import { SharedBudget } from "../../../core/http";
import { freePort } from "../../support/free-port";
import { until } from "../../support/poll";

/** Opens one whose bases have names of two letters: that of the account, and another one. */
async function endpoint(
  shared: { connections: SharedBudget<"base">; memory: SharedBudget<never> },
  smallBytes = 0,
) {
  const { memory } = shared;
  const slow = Promise.withResolvers<void>();
  const port = await freePort();
  const server = await openWriteEndpoint({
    port,
    host: "127.0.0.1",
    tls: undefined,
    log: pino({ level: "silent" }),
    accessOf: async (baseId) => ({ accountId: baseId[0]!, secret: "secret" }),
    answer: async (_, request) => {
      if ("slow" in (request as object)) await slow.promise;
      return { answer: "made" };
    },
    budgets: { ...shared, smallBytes },
  });
  onTestFinished(() => server.stop());
  return {
    answerSlow: slow.resolve,
    async connect(user: string) {
      const client = new pg.Client({ host: "127.0.0.1", port, user, password: "secret", database: "writes" });
      const lost = new Promise<string | undefined>((resolve) => {
        client.on("error", (error: Error & { code?: string }) => resolve(error.code));
      });
      await client.connect();
      onTestFinished(() => client.end().catch(() => {}));
      const { stream } = (client as unknown as { connection: { stream: net.Socket } }).connection;
      return {
        lost,
        /** Returns the answer, or the SQLSTATE. */
        ask: (length: number, key = "fast") =>
          client.query<{ answer: string }>(JSON.stringify({ [key]: "x".repeat(length) })).then(
            ({ rows }) => rows[0]!.answer,
            (error: { code?: string }) => error.code,
          ),
        /** Sends a part of a request. */
        async begin(length: number) {
          const before = memory.total;
          const part = Buffer.alloc(length, " ");
          part.write("Q");
          part.writeUInt32BE(10_000, 1);
          stream.write(part);
          await until(() => memory.total === before + length, { what: "the part has arrived" });
        },
      };
    },
  };
}

const MADE = '"made"';

test("I8: requests of one account leave memory for those of others", async () => {
  const memory = new SharedBudget<never>({ most: 4000, mostPer: { network: 3000 } });
  const connections = new SharedBudget<"base">({ most: 9, mostPer: { base: 9, network: 9 } });
  const { connect, answerSlow } = await endpoint({ connections, memory });
  const [a1, a2, b1] = [await connect("a1"), await connect("a2"), await connect("b1")];
  await a1.begin(1400);
  await a2.begin(1400);
  expect(await (await connect("a1")).ask(1000)).toBe("BT001");
  // What has not arrived completely gives way.
  expect(await b1.ask(1500)).toBe(MADE);
  expect(await a2.lost).toBe("BT001");
  // What is being answered counts, and does not.
  const answer = (await connect("a2")).ask(1500, "slow");
  await until(() => memory.total > 2900, { what: "it has arrived" });
  expect(await b1.ask(1500)).toBe(MADE);
  expect(await a1.lost).toBe("BT001");
  answerSlow();
  expect(await answer).toBe(MADE);
  expect(memory.total).toBe(0);
});

test("I8: while large requests of other accounts are answered, small ones are", async () => {
  const memory = new SharedBudget<never>({ most: 4000, mostPer: { network: 2000 } });
  const connections = new SharedBudget<"base">({ most: 9, mostPer: { base: 9, network: 9 } });
  const { connect, answerSlow } = await endpoint({ connections, memory }, 500);
  const large = await Promise.all(
    ["a1", "b1"].map(async (user) => (await connect(user)).ask(2400, "slow")).map((asked) => ({ asked })),
  );
  await until(() => memory.total > 3700, { what: "both have arrived" });
  const other = await connect("c1");
  expect(await other.ask(400)).toBe(MADE);
  expect(await other.ask(1500)).toBe("BT001");
  answerSlow();
  for (const { asked } of large) expect(await asked).toBe(MADE);
  expect(memory.total).toBe(0);
});

test("I8: connections of one account leave some for others, and idle ones give way", async () => {
  const memory = new SharedBudget<never>({ most: 4000, mostPer: { network: 4000 } });
  const connections = new SharedBudget<"base">({ most: 5, mostPer: { base: 3, network: 4 } });
  const { connect, answerSlow } = await endpoint({ connections, memory });
  const [, , third] = [await connect("a1"), await connect("a1"), await connect("a1")];
  await expect(connect("a1")).rejects.toMatchObject({ code: "53300" });
  const fourth = await connect("a2");
  await expect(connect("a2")).rejects.toMatchObject({ code: "53300" });
  const answer = fourth.ask(10, "slow");
  await until(() => memory.total > 0, { what: "it has arrived" });
  await connect("b1");
  expect(await (await connect("c1")).ask(10)).toBe(MADE);
  expect(await third!.lost).toBeUndefined();
  answerSlow();
  expect(await answer).toBe(MADE);
});
