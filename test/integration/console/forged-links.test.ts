/** Links and notifications that strangers make up: refused, for a number of statements that does not grow with theirs. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { consoleApp } from "../../../apps/console/app";
import { createAuth } from "../../../apps/console/auth/auth";
import { type TestConsole, testConsole } from "../../support/console-support";
import { until } from "../../support/poll";

const FORGED = 200;

let made: TestConsole;
beforeAll(async () => {
  made = await testConsole();
});
afterAll(() => made?.[Symbol.asyncDispose]());

/** A console that counts its statements. */
function countingConsole() {
  const { ctx } = made.control;
  const counted = { statements: 0 };
  const db = new Proxy(ctx.db, {
    apply(target, self, words) {
      counted.statements++;
      return Reflect.apply(target as never, self, words);
    },
  });
  const counting = { ...ctx, db };
  return { counted, app: consoleApp(counting, createAuth(counting)) };
}

const hex = (length: number) => crypto.randomUUID().replaceAll("-", "").slice(0, length);
const id = () => `bas_${hex(20)}`;

const FORGERIES: Record<string, { table: string; status: number; request: () => [string, RequestInit?] }> = {
  "notifications with a made-up signature": {
    table: "live_feeds",
    status: 401,
    request: () => [
      `/hooks/airtable/${id()}`,
      { method: "POST", body: "{}", headers: { "x-airtable-content-mac": `hmac-sha256=${"0".repeat(64)}` } },
    ],
  },
  "attachment links": {
    table: "bases",
    status: 404,
    request: () => [`/attachments/${id()}/tbl1/rec1/fld1/att1?sig=${hex(22)}`],
  },
  "links to status pages": {
    table: "accounts",
    status: 404,
    request: () => [`/status/${hex(32)}${hex(11)}`],
  },
  invitations: {
    table: "invitations",
    status: 404,
    request: () => [`/invitation?token=${crypto.randomUUID()}`],
  },
  "links to set a password": {
    table: "verifications",
    status: 410,
    request: () => [`/reset-password?token=${crypto.randomUUID()}`],
  },
  "tokens of the API": {
    table: "api_tokens",
    status: 401,
    request: () => ["/api/v1/bases", { headers: { authorization: `Bearer bt_${hex(32)}${hex(11)}` } }],
  },
};

test.for(Object.entries(FORGERIES))("%s share look-ups", async ([, { table, status, request }]) => {
  const { counted, app } = countingConsole();
  const send = async () => {
    const [path, init] = request();
    return (await app.handle(new Request(`http://console${path}`, init))).status;
  };
  const { db } = made.control.ctx;
  const statuses: Promise<number>[] = [];
  await db.begin(async (tx) => {
    await tx.unsafe(`lock table ${table} in access exclusive mode`);
    statuses.push(send());
    await until(() => counted.statements > 0, { what: "the first look-up is under way" });
    for (let at = 1; at < FORGED; at++) statuses.push(send());
    // Each has come as far as it can while the table is locked.
    await tx`select pg_sleep(0.2)`;
  });
  expect(await Promise.all(statuses)).toEqual(Array(FORGED).fill(status));
  expect(counted.statements).toBeLessThan(10);
});

test("questions whether the process is ready share a statement", async () => {
  const { counted, app } = countingConsole();
  const asked = Array.from({ length: FORGED }, () => app.handle(new Request("http://console/readyz")));
  expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]));
  expect(counted.statements).toBeLessThan(10);
});

test("what is no id, token or signature of ours runs no statement", async () => {
  const { counted, app } = countingConsole();
  const paths = ["/status/x", "/attachments/bas_x/tbl1/rec1/fld1/att1?sig=x", "/attachments/bas_%00/t/r/f/a"];
  for (const path of paths) expect((await app.handle(new Request(`http://console${path}`))).status).toBe(404);
  for (const path of ["/hooks/airtable/bas_x", "/hooks/airtable/%00", `/hooks/elsewhere/${id()}`])
    expect(
      (await app.handle(new Request(`http://console${path}`, { method: "POST", body: "{}" }))).status,
    ).toBe(401);
  expect(counted.statements).toBe(0);
});
