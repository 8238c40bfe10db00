/** Writes that no answer describes, with the real queue and a worker that has leased the base or let it rest. */
import { expect, test, vi } from "vitest";
import { startProxy } from "../../../apps/proxy/start";
import { startSandbox } from "../../../apps/sandbox/server";
import { type Base, getBase, updateSettings } from "../../../core/control/bases";
import type { BaseSettings } from "../../../core/control/bases/settings";
import { createWorkspace, quotaUse } from "../../../core/control/budgets";
import { closeContext, createContext } from "../../../core/process";
import { startFleet } from "../../support/fleet";
import { until } from "../../support/poll";

vi.setConfig({ testTimeout: 120_000 });

/** The time that the docs promise. */
const SHOWN_MS = 15_000;

/** A source that accepts CSV syncs, and answers creates with an unknown format. */
async function scene(settings: Partial<BaseSettings>, records: number) {
  const releases = new AsyncDisposableStack();
  const sandbox = releases.use(await startSandbox({ port: 0, settings: { rateLimitOff: true } }));
  const front = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const [path, isSync] = [pathname.replace(/\/sync\/.*/, ""), pathname.includes("/sync/")];
      const body = isSync
        ? JSON.stringify({ records: [{ fields: { Name: await request.text() } }] })
        : await request.arrayBuffer();
      const headers = new Headers(request.headers);
      if (isSync) headers.set("content-type", "application/json");
      for (const name of ["host", "content-length", "accept-encoding"]) headers.delete(name);
      const { method } = request;
      const hasBody = method !== "GET" && method !== "HEAD";
      const answer = await fetch(sandbox.url + path + search, {
        method,
        headers,
        ...(hasBody ? { body } : {}),
      });
      if (isSync && answer.ok) return Response.json({ success: true });
      if (method === "POST" && /^\/v0\/app\w+\/\w+$/.test(path) && answer.ok)
        return new Response("done, more or less");
      const own = new Headers(answer.headers);
      for (const name of ["content-encoding", "content-length"]) own.delete(name);
      return new Response(await answer.arrayBuffer(), { status: answer.status, headers: own });
    },
  });
  releases.defer(() => front.stop(true));
  const env = { UPSTREAMS: `api.airtable.com=http://127.0.0.1:${front.port}`, SCHEMA_POLL_SECONDS: "3600" };
  const fleet = releases.use(await startFleet({ source: sandbox, env }));
  const context = createContext(fleet.ctx.config, "proxy");
  releases.defer(() => closeContext(context));
  const proxy = await startProxy(context, { port: 0 });
  releases.defer(() => proxy.stop());
  const sourceId = sandbox.control.generate({ records, tables: 1 });
  const made = await fleet.connect(sourceId, settings);
  const synced = async () => {
    const now = await getBase(fleet.ctx.db, made.id);
    return now.sync && now;
  };
  const base = await until(synced, { what: "the first sync is complete", timeoutMs: 90_000 });
  const reader = await fleet.reader(base);
  const [table] = base.tables;
  const write = async (path: string, type: string, body: string) => {
    const response = await fetch(
      `http://127.0.0.1:${proxy.port}/api.airtable.com/v0/${sourceId}/${table!.source_id}${path}`,
      { method: "POST", headers: { authorization: `Bearer ${sandbox.key}`, "content-type": type }, body },
    );
    expect(response.status).toBe(200);
    expect(response.headers.get("x-basetide-sql")).toBe("pending");
  };
  return {
    fleet,
    base,
    writes: {
      csv: (name: string) => write("/sync/s1", "text/csv", name),
      unclear: (name: string) =>
        write("", "application/json", JSON.stringify({ records: [{ fields: { Name: name } }] })),
    },
    async shown(name: string) {
      const isShown = async () =>
        (await reader`select from ${reader(table!.name)} where name = ${name}`).length === 1;
      await until(isShown, { what: `SQL shows ${name}`, timeoutMs: SHOWN_MS, intervalMs: 100 });
    },
    async settled() {
      const isSettled = async () => (await getBase(fleet.ctx.db, base.id)).catchUpRequestedAt === null;
      await until(isSettled, { what: "nothing more is found", timeoutMs: SHOWN_MS });
    },
    [Symbol.asyncDispose]: () => releases.disposeAsync(),
  };
}

type Scene = Awaited<ReturnType<typeof scene>>;

async function bothAreShown({ writes, shown, settled }: Scene): Promise<void> {
  for (const [kind, write] of Object.entries(writes)) {
    await write(`by ${kind}`);
    await shown(`by ${kind}`);
  }
  await settled();
}

/** The base is paced by the budget of a workspace with this many calls. */
async function resting({ fleet: { ctx }, base }: Scene, callsPerMonth: number): Promise<Base> {
  const workspace = await createWorkspace(ctx, base.accountId, {
    name: "Small",
    plan: "custom",
    callsPerMonth,
  });
  await updateSettings(ctx, base, { workspaceId: workspace.id });
  const isResting = async () => {
    const now = await getBase(ctx.db, base.id);
    const jobs = await ctx.db`select from pgboss.job where singleton_key = ${base.id} and state <= 'active'`;
    return now.restsUntil && jobs.length === 0 && now;
  };
  return until(isResting, { what: "the base is idle", timeoutMs: 60_000 });
}

test("C1: a base that a worker sweeps, with a sweep that takes longer than the limit", async () => {
  await using one = await scene({}, 6000);
  await bothAreShown(one);
});

test("C1: a base in live mode that a worker has leased", async () => {
  await using one = await scene({ live: true }, 50);
  await bothAreShown(one);
});

test("C1: a base that is paced by its budget, with calls that count as clients'", async () => {
  await using one = await scene({}, 50);
  const { ctx } = one.fleet;
  // So few that it rests even on the last evening of a month.
  const base = await resting(one, 60);
  const calls = async () => (await quotaUse(ctx.db, base)).month;
  const before = await calls();
  await bothAreShown(one);
  expect((await getBase(ctx.db, base.id)).sync!.startedAt).toEqual(base.sync!.startedAt);
  expect((await calls()).sync).toBe(before.sync);
});

test("C1: a base whose budget is spent", async () => {
  await using one = await scene({}, 50);
  const base = await resting(one, 1);
  expect(base.error?.code).toBe("budget_spent");
  await bothAreShown(one);
});
