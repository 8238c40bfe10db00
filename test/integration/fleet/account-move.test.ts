/** An account moves between two running services that share a cluster of replicas, while people and programs use it. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startProxy } from "../../../apps/proxy/start";
import { findMovingAccount, moveAccount } from "../../../core/control/account-move";
import { createAccount, createToken } from "../../../core/control/accounts";
import { type Base, createBase, getBase } from "../../../core/control/bases";
import { expectEqualToSource } from "../../support/equal-to-source";
import type { Fleet } from "../../support/fleet";
import { startLiveFleet } from "../../support/live-fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 180_000 });

/** Airtable's rate limit is of any such time, ms. */
const WINDOW_MS = 1000;

const releases = new AsyncDisposableStack();
let here: Fleet;
let there: Fleet;
beforeAll(async () => {
  here = releases.use(await startLiveFleet());
  there = releases.use(await startLiveFleet({ source: here.sandbox }));
}, 120_000);
afterAll(() => releases.disposeAsync());

test("bases sync on in the other control plane, readers notice nothing, and never do both serve them", async () => {
  const { control, key } = here.sandbox;
  const email = "moving@example.org";
  const { id: accountId } = await createAccount(here.ctx.db, { email, password: "correct horse" });
  const token = await createToken(here.ctx.db, accountId, "program");
  const connect = (live: boolean) =>
    createBase(here.ctx, accountId, {
      platform: "airtable",
      apiKey: key,
      sourceBaseId: control.generate({ records: 120, tables: 1 }),
      settings: { live, turbo: true },
    });
  const bases = [await connect(true), await connect(false)];
  const staying = await here.connect(control.generate({ records: 20, tables: 1 }));
  const [live, swept] = bases as [Base, Base];
  await Promise.all([isLive(here, live), here.synced(swept.id, 60_000), here.synced(staying.id, 60_000)]);

  const reader = await here.reader(live);
  const { name, schema } = await tableOf(here, live);
  const counts = new Set<number>();
  let isReading = true;
  const reading = (async () => {
    while (isReading) {
      const [row] = await reader<{ count: number }[]>`
        select count(*)::int as count from ${reader(schema)}.${reader(name)}`;
      counts.add(row!.count);
      await Bun.sleep(50);
    }
  })();

  const proxy = await startProxy(here.ctx, { port: 0 });
  releases.defer(() => proxy.stop());
  const ask = () =>
    fetch(
      `http://localhost:${proxy.port}/api.airtable.com/v0/${live.sourceBaseId}/${control.dump(live.sourceBaseId).tables[0]!.id}`,
      {
        headers: { authorization: `Bearer ${key}` },
      },
    );
  expect((await ask()).status).toBe(200);
  const calls = () => control.logSummary().bases[live.sourceBaseId]!.requests;
  let callsWhenDrained = 0;
  let drainedAt = 0;

  const target = { ...there.ctx, actor: { kind: "cli", name: "operator" } as const };
  const proxyUrl = "https://proxy.example.org";
  await moveAccount({ ...here.ctx, actor: target.actor }, target, await findMovingAccount(here.ctx, email), {
    isMerging: false,
    proxyUrl,
    onStep: async (step) => {
      if (step === "drained") {
        callsWhenDrained = calls();
        drainedAt = performance.now();
        // 429: on a busy machine, a lookup may be older than its time-out.
        const refused = await until(
          async () => {
            const answer = await ask();
            expect(answer.status).not.toBe(200);
            return answer.status === 503 && answer;
          },
          { what: "the proxy knows that the base is moving", timeoutMs: 30_000 },
        );
        expect(refused.headers.get("retry-after")).toBe("5");
        expect(await refused.json()).toMatchObject({ error: { type: "PROXY_BASE_MOVING" }, sender: "proxy" });
      }
      const isServed = step === "stopped" || step === "activated";
      if (!isServed) expect([step, calls()]).toEqual([step, callsWhenDrained]);
    },
  });
  const refused = await until(
    async () => {
      const answer = await ask();
      return answer.status === 410 && answer;
    },
    { what: "the old proxy knows that the base has moved", timeoutMs: 30_000 },
  );
  expect(await refused.json()).toMatchObject({
    error: { type: "PROXY_BASE_MOVED", message: expect.stringContaining(proxyUrl) },
  });

  await Promise.all([isLive(there, live), there.synced(swept.id, 60_000)]);
  const consoleUrl = there.ctx.config.consoleUrl;
  await until(
    () =>
      control.webhooks
        .list(live.sourceBaseId)
        .some(({ notificationUrl }) => String(notificationUrl).startsWith(`${consoleUrl}/`)),
    { what: "Airtable notifies the other console", timeoutMs: 60_000 },
  );
  const [table] = control.dump(live.sourceBaseId).tables;
  control.createRecords(live.sourceBaseId, table!.id, [{ fields: {} }]);
  await until(() => counts.has(121), {
    what: "a record created after the move is in SQL",
    timeoutMs: 60_000,
  });
  isReading = false;
  await reading;
  expect([...counts].sort()).toEqual([120, 121]);
  for (const base of bases) await expectEqualToSource(there, base);

  const mine = await fetch(`${consoleUrl}/api/v1/bases`, { headers: { authorization: `Bearer ${token}` } });
  expect([mine.status, ((await mine.json()) as unknown[]).length]).toEqual([200, 2]);
  const old = await fetch(`${here.ctx.config.consoleUrl}/api/v1/bases`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(old.status).toBe(401);
  await here.synced(staying.id);
  // I4: what one rate limiter has let through has lapsed before the other one begins.
  for (const { sourceBaseId } of bases) {
    const arrivals = control.log(sourceBaseId).map(({ arrivalMs }) => arrivalMs);
    const next = arrivals.findIndex((arrivalMs) => arrivalMs > drainedAt);
    expect(arrivals[next]! - arrivals[next - 1]!).toBeGreaterThan(WINDOW_MS);
  }
});

/** Resolves when the base is live and its feed has no gap: everything before is in SQL. */
async function isLive(fleet: Fleet, { id }: Base): Promise<void> {
  const isComplete = async () => {
    const { live, sync } = await getBase(fleet.ctx.db, id);
    return live?.state === "on" && live.readAt && sync && !live.gapSince;
  };
  await until(isComplete, { what: `${id} is live`, timeoutMs: 60_000 });
}

async function tableOf(fleet: Fleet, { id }: Base): Promise<{ name: string; schema: string }> {
  const base = await getBase(fleet.ctx.db, id);
  return { name: base.tables[0]!.name, schema: base.database.schema };
}
