/** What one proxy learns of a key's refusal, the others know, too. Each proxy is its own memory over one control plane. */
import pino from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AcceptedKeys } from "../../../core/keys";
import { type TestControl, testControl } from "../../support/control-support";

/** Longer than what a proxy has read of the control plane is used. */
const LATER_MS = 4000;

let control: TestControl;
beforeAll(async () => {
  control = await testControl();
});
afterAll(() => control?.[Symbol.asyncDispose]());

/** Two proxies at which the key has read the base. */
async function twoProxies(base: string) {
  let now = 0;
  const { db, config } = control.ctx;
  const make = () => new AcceptedKeys({ db, log: pino({ level: "silent" }), config }, () => now);
  const proxies = [make(), make()] as const;
  const hash = proxies[0].hash(base, "Bearer patX.y");
  const answer = async (proxy: AcceptedKeys, status: number) => {
    proxy.record(base, hash, { method: "GET", status, isRead: true, isConnected: true });
    await proxy.close();
  };
  for (const proxy of proxies) await answer(proxy, 200);
  const mayRead = async () => {
    now += LATER_MS;
    return [await proxies[0].mayRead(base, hash), await proxies[1].mayRead(base, hash)];
  };
  return { proxies, hash, answer, mayRead };
}

test("a key that Airtable has refused at one proxy reads a replica at none, until it is accepted again", async () => {
  const { proxies, answer, mayRead } = await twoProxies("appRefused");
  expect(await mayRead()).toEqual([true, true]);
  await answer(proxies[0], 401);
  expect(await mayRead()).toEqual([false, false]);
  await answer(proxies[0], 200);
  expect(await mayRead()).toEqual([true, true]);
});

test("a 403 ends reading at every proxy; it does not end the key's place in the queue", async () => {
  const { proxies, hash, answer, mayRead } = await twoProxies("appForbidden");
  await answer(proxies[1], 403);
  expect(await mayRead()).toEqual([false, false]);
  expect(proxies.map((proxy) => proxy.isKnown(hash))).toEqual([true, true]);
  await answer(proxies[1], 200);
  expect(await mayRead()).toEqual([true, true]);
});

test("a proxy that has just started takes a refused key from the list, too", async () => {
  const { proxies, hash, answer, mayRead } = await twoProxies("appFresh");
  const { db, config } = control.ctx;
  const fresh = new AcceptedKeys({ db, log: pino({ level: "silent" }), config });
  expect(await fresh.isAccepted("appFresh", hash)).toBe(true);
  const fromList = new AcceptedKeys({ db, log: pino({ level: "silent" }), config });
  await answer(fromList, 401);
  expect(await mayRead()).toEqual([false, false]);
  expect(proxies).toHaveLength(2);
});
