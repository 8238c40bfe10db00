/**
 * What the proxy refuses over HTTP, by key, by network, and by the memory that bodies use; and which headers are the
 * same key.
 */
import net from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../support/poll";
import { type ProxyStack, proxyStack } from "../../support/proxy-stack";

let stack: ProxyStack;
beforeAll(async () => {
  stack = await proxyStack({ CLIENT_IP_HEADER: "x-client" });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

async function connected(): Promise<string> {
  const baseId = stack.sandbox.control.createBase({
    name: "Tasks",
    tables: [{ name: "Tasks", fields: [{ name: "Name", type: "singleLineText" }] }],
  });
  await stack.connect(baseId);
  return baseId;
}

const keyOf = (baseId: string) =>
  stack.sandbox.control.createKey({
    bases: { [baseId]: "create" },
    user: { id: `usr${crypto.randomUUID()}`, email: "x@example.com" },
  });

const errorOf = async (answer: Response) => {
  const { error } = (await answer.json()) as { error: { type: string } };
  return [answer.status, error.type, Number(answer.headers.get("retry-after")) > 0];
};

const ask = (
  baseId: string,
  init: RequestInit & { headers?: Record<string, string> },
  endpoint = stack.endpoint,
) => fetch(`${endpoint}/v0/${baseId}/Tasks`, init);

test("eighty calls of a key at once are all answered by the source, and those of another key do not wait for them", {
  timeout: 90_000,
}, async () => {
  const baseId = await connected();
  const authorization = `Bearer ${stack.sandbox.key}`;
  let left = 80;
  const calls = Array.from({ length: left }, () =>
    ask(baseId, { headers: { authorization } }).then(({ status }) => {
      left--;
      return status;
    }),
  );
  const another = await ask(baseId, { headers: { authorization: `Bearer ${keyOf(baseId)}` } });
  expect(another.status).toBe(200);
  expect(left).toBeGreaterThan(40);
  expect(new Set(await Promise.all(calls))).toEqual(new Set([200]));
});

test("bodies beyond the budget are refused with 503 while the source is slow, and accepted again afterwards", async () => {
  const baseId = await connected();
  const authorization = `Bearer ${stack.sandbox.key}`;
  const stop = new AbortController();
  const body = new Uint8Array(15 << 20);
  const statuses: number[] = [];
  const busy = Promise.withResolvers<Response>();
  // 18 × 15 MB are more than 256 MB; each waits for its permit, five a second.
  const all = Array.from({ length: 24 }, () =>
    ask(baseId, { method: "POST", headers: { authorization }, body, signal: stop.signal })
      .then((answer) => {
        statuses.push(answer.status);
        if (answer.status === 503) busy.resolve(answer);
      })
      .catch(() => {}),
  );
  expect(await errorOf(await busy.promise)).toEqual([503, "PROXY_BUSY", true]);
  stop.abort();
  await Promise.all(all);
  await until(
    async () =>
      (await ask(baseId, { method: "POST", headers: { authorization }, body: new Uint8Array(1 << 20) }))
        .status !== 503,
    { what: "the held records are released", timeoutMs: 40_000 },
  );
}, 90_000);

describe("half-sent bodies", () => {
  const BODY_BYTES = 16 * 1024 * 1024;
  /** For each kind of client: where it sends to, and its key. */
  const kinds = {
    "a key accepted for a connected base": async () => {
      const baseId = await connected();
      const key = keyOf(baseId);
      await (await ask(baseId, { headers: { authorization: `Bearer ${key}` } })).arrayBuffer();
      return { path: `${baseId}/Tasks`, key };
    },
    "a new key for a connected base": async () => {
      const baseId = await connected();
      return { path: `${baseId}/Tasks`, key: keyOf(baseId) };
    },
    "a made-up key for a connected base": async () => ({
      path: `${await connected()}/Tasks`,
      key: "patNobody",
    }),
    "a key for a base that is not connected": async () => {
      const baseId = stack.sandbox.control.createBase({
        name: "Own",
        tables: [{ name: "Tasks", fields: [{ name: "Name", type: "singleLineText" }] }],
      });
      const key = keyOf(baseId);
      await (await ask(baseId, { headers: { authorization: `Bearer ${key}` } })).arrayBuffer();
      return { path: `${baseId}/Tasks`, key };
    },
    "a key without a base": async () => ({ path: "meta/bases", key: "patNobody" }),
  };

  /** Sends `bytes` of a request whose body is announced as the largest that is taken. */
  function begin(path: string, key: string, from: string, bytes: number): Promise<net.Socket> {
    return new Promise((resolve) => {
      const socket = net.connect(stack.proxy.port, "127.0.0.1", () => {
        const head = `POST /api.airtable.com/v0/${path} HTTP/1.1\r\nHost: localhost\r\nX-Client: ${from}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`;
        socket.write(head);
        socket.write(Buffer.alloc(bytes, "{"), () => resolve(socket));
      });
      socket.on("error", () => resolve(socket));
    });
  }

  test.for(Object.keys(kinds) as (keyof typeof kinds)[])(
    "of %s, a byte each from one address or most of it from many, stop no client of any kind",
    { timeout: 120_000 },
    async (attacker) => {
      const { path, key } = await kinds[attacker]();
      const victims = await Promise.all(
        Object.entries(kinds).map(async ([kind, make]) => ({ kind, ...(await make()) })),
      );
      const sockets = await Promise.all([
        ...Array.from({ length: 40 }, () => begin(path, key, "192.0.2.1", 1)),
        ...Array.from({ length: 30 }, (_, at) => begin(path, key, `198.51.100.${at}`, BODY_BYTES / 4)),
      ]);
      onTestFinished(() => {
        for (const socket of sockets) socket.destroy();
      });
      const answers = await Promise.all(
        victims.map(async ({ kind, path, key }, at) => {
          const { status } = await fetch(`${stack.endpoint}/v0/${path}`, {
            method: "POST",
            headers: {
              authorization: `Bearer ${key}`,
              "content-type": "application/json",
              "x-client": `203.0.113.${at}`,
            },
            body: JSON.stringify({ fields: { Name: "mine" } }),
          });
          return [kind, status];
        }),
      );
      expect(Object.fromEntries(answers)).toEqual({
        "a key accepted for a connected base": 200,
        "a new key for a connected base": 200,
        "a made-up key for a connected base": 401,
        "a key for a base that is not connected": 200,
        "a key without a base": 401,
      });
    },
  );
});

test("preflights are limited by network, an IPv6 /64 counting as one, at no cost to others", async () => {
  const baseId = await connected();
  const preflight = async (address: string) =>
    (await ask(baseId, { method: "OPTIONS", headers: { "x-client": address } })).status;
  const statuses: number[] = [];
  for (let batch = 0; batch < 13; batch++) {
    const some = Array.from({ length: 50 }, (_, index) =>
      preflight(`2001:db8:1:2::${(batch * 50 + index).toString(16)}`),
    );
    statuses.push(...(await Promise.all(some)));
  }
  expect(statuses.filter((status) => status === 429)).toHaveLength(50);
  expect(await preflight("2001:db8:1:3::1")).not.toBe(429);
  expect(await stack.ctx.db`select from accepted_keys where source_base_id = ${baseId}`).toHaveLength(0);
}, 60_000);

test("a second proxy accepts a key that the first one has stored, without the queue of unproven keys", async () => {
  const baseId = await connected();
  const key = keyOf(baseId);
  const headers = { authorization: `Bearer ${key}` };
  expect((await ask(baseId, { headers })).status).toBe(200);
  await until(
    async () => (await stack.ctx.db`select from accepted_keys where source_base_id = ${baseId}`).length === 1,
    { what: "the key is stored" },
  );
  await using another = await stack.startAnother();
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  // All at once: for an unproven key one at a time is served, and more than ten of a network are refused.
  const all = Array.from({ length: 25 }, () =>
    ask(baseId, { headers, signal: stop.signal }, another.endpoint),
  );
  expect(new Set((await Promise.all(all)).map(({ status }) => status))).toEqual(new Set([200]));
}, 60_000);

test("odd Authorization headers: surrounding spaces are ignored, very long ones leave nothing behind, two are one unknown key", {
  // Keys that the source has not accepted get a request in five seconds.
  timeout: 120_000,
}, async () => {
  const baseId = await connected();
  const key = keyOf(baseId);
  const stored = async () =>
    (await stack.ctx.db`select from accepted_keys where source_base_id = ${baseId}`).length;
  for (const authorization of [`Bearer ${key}`, `Bearer ${key}   `, `  Bearer ${key}`]) {
    expect((await ask(baseId, { headers: { authorization } })).status).toBe(200);
  }
  await until(async () => (await stored()) === 1, { what: "one key is stored" });
  const odd = new Headers({ authorization: `Bearer ${key}` });
  odd.append("authorization", "Bearer patOther.key");
  const twice = await fetch(`${stack.endpoint}/v0/${baseId}/Tasks`, { headers: odd });
  const alone = await fetch(`${stack.sandbox.url}/v0/${baseId}/Tasks`, { headers: odd });
  // Whatever the source answers, and never the standing of the first key.
  expect(twice.status).toBe(alone.status);
  for (let index = 0; index < 2; index++) {
    const long = await ask(baseId, { headers: { authorization: `Bearer ${"x".repeat(14_000)}${index}` } });
    expect([401, 431]).toContain(long.status);
  }
  expect(await stored()).toBe(twice.status === 200 ? 2 : 1);
});
