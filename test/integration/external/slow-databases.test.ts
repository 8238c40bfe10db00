/** Databases of other accounts, on servers that are slow or silent: a proxied write does not wait for them. */
import net from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { EXTERNAL_MS } from "../../../core/proxy/replica-breaker";
import { countRepairs } from "../../support/count-repairs";
import { faultProxy } from "../../support/fault-proxy";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack, type Replicated } from "../../support/proxy-stack";

const WRITES = 20;

let stack: ProxyStack;

beforeAll(async () => {
  stack = await proxyStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** A server that accepts connections and sends nothing. */
async function silentServer(): Promise<number> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as net.AddressInfo).port;
}

/** The owner's base, and writes to it. */
async function ownerOf() {
  const { control, key } = stack.sandbox;
  const baseId = control.createBase({
    name: "Notes",
    tables: [
      {
        name: "Notes",
        fields: [{ name: "Text", type: "singleLineText" }],
        records: [{ fields: { Text: "old" } }],
      },
    ],
  });
  const id = control.dump(baseId).tables[0]!.records[0]!.id;
  const replicated = await stack.connect(baseId);
  await replicated.sync();
  const patch = async (Text: string, writingKey = key) => {
    const from = performance.now();
    const answer = await fetch(`${stack.endpoint}/v0/${baseId}/Notes/${id}`, {
      method: "PATCH",
      headers: { authorization: `Bearer ${writingKey}`, "content-type": "application/json" },
      body: JSON.stringify({ fields: { Text } }),
    });
    await answer.text();
    const { status, headers } = answer;
    return { status, sql: headers.get("x-basetide-sql"), ms: performance.now() - from };
  };
  return { baseId, patch, replicated };
}

/** Another account connects the base, with a database at this port. @returns its id of the base */
async function connectStranger(baseId: string, port: number): Promise<string> {
  const { ctx } = stack;
  await stack.connectUnchecked(baseId);
  const [made] = await ctx.db<{ id: string; database_id: string }[]>`
    select id, database_id from bases where source_base_id = ${baseId} and name = 'Unmade'`;
  const encrypted = ctx.secrets.encrypt(
    `postgres://u:p@127.0.0.1:${port}/db`,
    `databases.url:${made!.database_id}`,
  );
  await ctx.db`update databases set encrypted_url = ${encrypted}, external_port = ${port} where id = ${made!.database_id}`;
  return made!.id;
}

async function write(owner: {
  patch: (text: string) => Promise<{ status: number; ms: number }>;
  replicated: Replicated;
}) {
  const took = [];
  for (let index = 0; index < WRITES; index++) {
    const { status, ms } = await owner.patch(`text ${index}`);
    expect(status).toBe(200);
    // I1, for a hosted replica, whatever the state of the others.
    expect((await owner.replicated.rows("notes")).map((row) => row.text)).toEqual([`text ${index}`]);
    took.push(ms);
  }
  return took;
}

/** The time that a customer's own server may take for each step: it never times out. */
const JUST_IN_TIME_MS = EXTERNAL_MS - 50;

/**
 * A write that waits for such a server waits for at least two answers; one that does not may still wait for a
 * permit.
 */
const WAITED_MS = JUST_IN_TIME_MS + 50;

/** Moves a base's replica to a server "of its customer", each of whose answers takes this long. */
async function makeExternal({ base, ownerUrl }: Replicated, answerMs: number) {
  const { db, secrets } = stack.ctx;
  const { hostname, port } = new URL(ownerUrl);
  const line = await faultProxy({ host: hostname, port: Number(port) }, { isPostgres: false });
  line.delayMs = answerMs / 2;
  const { id } = base.database;
  const [hosted] = await db<
    { cluster_id: string; encrypted_password: string; encrypted_console_password: string | null }[]
  >`
    select cluster_id, encrypted_password, encrypted_console_password from databases where id = ${id}`;
  await db`
    update databases set cluster_id = null, encrypted_password = null, encrypted_console_password = null,
      external_host = 'x', external_port = 1,
      encrypted_url = ${secrets.encrypt(line.over(ownerUrl), `databases.url:${id}`)} where id = ${id}`;
  onTestFinished(async () => {
    await line[Symbol.asyncDispose]();
    // Restored, so that it can be deleted.
    await db`
      update databases set cluster_id = ${hosted!.cluster_id}, encrypted_password = ${hosted!.encrypted_password},
        encrypted_console_password = ${hosted!.encrypted_console_password},
        encrypted_url = null, external_host = null, external_port = null where id = ${id}`;
  });
}

const newKey = (baseId: string) =>
  stack.sandbox.control.createKey({
    bases: { [baseId]: "create" },
    user: { id: `usr${crypto.randomUUID()}`, email: "x@example.com" },
  });

async function connectOther(baseId: string) {
  const key = newKey(baseId);
  const replicated = await stack.connect(baseId, key);
  await replicated.sync();
  return { ...replicated, key };
}

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

test("S13: another account's unresponsive database delays no write, and is no reason to answer pending", {
  timeout: 120_000,
}, async () => {
  const owner = await ownerOf();
  const before = await write(owner);
  const stranger = await connectStranger(owner.baseId, await silentServer());
  const took = await write(owner);
  // Other load on the machine delays single writes; waiting for the other account's server would delay the first few.
  expect(median(took)).toBeLessThan(median(before) + WAITED_MS);
  // And the other account's replica gets the records.
  expect(await countRepairs(stack.ctx.db, stranger)).toBe(1);
  expect((await owner.patch("last")).sql).toBeNull();
});

test("S13: neither does one that always answers just before the timeout", {
  timeout: 120_000,
}, async () => {
  const owner = await ownerOf();
  const before = await write(owner);
  const other = await connectOther(owner.baseId);
  await makeExternal(other, JUST_IN_TIME_MS);
  const took = await write(owner);
  expect(median(took)).toBeLessThan(median(before) + WAITED_MS);
  await owner.patch("last");
  await until(async () => (await other.rows("notes"))[0]?.text === "last", {
    what: "the other account sees it with its own key",
    timeoutMs: 30_000,
  });
});

test("I1: an account whose database is not waited for gets `pending` where the base may be its own, until SQL shows the write", {
  timeout: 120_000,
}, async () => {
  const owner = await ownerOf();
  const other = await connectOther(owner.baseId);
  await makeExternal(other, EXTERNAL_MS + 100);
  // A key that belongs to no base: the client may be the other account's.
  const unknown = await owner.patch("of an unknown key", newKey(owner.baseId));
  expect([unknown.status, unknown.sql]).toEqual([200, "pending"]);
  expect(await owner.replicated.rows("notes")).toMatchObject([{ text: "of an unknown key" }]);
  // Its own key: the write waits within the budget, which this server exceeds.
  const own = await owner.patch("of its own", other.key);
  expect([own.status, own.sql]).toEqual([200, "pending"]);
  expect((await owner.patch("of the owner")).sql).toBeNull();
  await until(async () => (await other.rows("notes"))[0]?.text === "of the owner", {
    what: "repaired",
    timeoutMs: 60_000,
  });
});

test("I1: an account that is the only one with the base sees writes in its own database, whichever key writes", {
  timeout: 120_000,
}, async () => {
  const owner = await ownerOf();
  await makeExternal(owner.replicated, 0);
  // The first one also covers the connections.
  await owner.patch("first");
  for (const key of [stack.sandbox.key, newKey(owner.baseId)]) {
    await until(
      async () => {
        const { status, sql } = await owner.patch(`by ${key}`, key);
        const isShown = (await owner.replicated.rows("notes"))[0]?.text === `by ${key}`;
        expect(status).toBe(200);
        // "Shown" is never reported wrongly.
        expect(sql === null && !isShown).toBe(false);
        return sql === null && isShown;
      },
      { what: "shown at once", timeoutMs: 45_000 },
    );
  }
});
