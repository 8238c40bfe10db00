/** Two consoles and two proxies behind a balancer that alternates between them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startConsole } from "../../../apps/console/start";
import { startProxy } from "../../../apps/proxy/start";
import { createToken } from "../../../core/control/accounts";
import { getBase, type ManagementContext } from "../../../core/control/bases";
import { closeContext, createContext } from "../../../core/process";
import { consoleClient } from "../../support/console-client";
import { type Fleet, startFleet } from "../../support/fleet";

let fleet: Fleet;
let consoles: ReturnType<typeof balanced>;
let proxies: ReturnType<typeof balanced>;
const releases = new AsyncDisposableStack();

beforeAll(async () => {
  fleet = releases.use(await startFleet());
  const context = (role: string): ManagementContext => {
    const ctx = createContext(fleet.ctx.config, role);
    releases.defer(() => closeContext(ctx));
    return { ...fleet.ctx, ...ctx };
  };
  const started = async <T extends { port: number; stop(): Promise<void> }>(starting: Promise<T>) => {
    const running = await starting;
    releases.defer(() => running.stop());
    return running.port;
  };
  consoles = balanced(
    await Promise.all([1, 2].map(() => started(startConsole(context("console"), { port: 0 })))),
  );
  proxies = balanced(await Promise.all([1, 2].map(() => started(startProxy(context("proxy"), { port: 0 })))));
}, 60_000);
afterAll(async () => {
  await releases.disposeAsync();
});

/** Alternates requests between the ports, with Host headers as if they were one host. */
function balanced(ports: number[]) {
  let next = 0;
  return {
    async handle(request: Request): Promise<Response> {
      const { pathname, search, host } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.set("host", host);
      return fetch(`http://127.0.0.1:${ports[next++ % ports.length]}${pathname}${search}`, {
        method: request.method,
        headers,
        body: request.body ? await request.text() : null,
        redirect: "manual",
      });
    },
  };
}

test("a session, a draft and a form work on any console, and end on both at once", async () => {
  const { sandbox, ctx } = fleet;
  const sourceId = sandbox.control.generate({ name: "Balanced", records: 20 });
  const person = consoleClient(consoles);
  const credentials = { email: "fleet@example.org", password: "correct horse" };
  expect(await person.post("/sign-in", credentials)).toMatchObject({ status: 303 });
  for (let look = 0; look < 4; look++) expect((await person.get("/bases")).status).toBe(200);

  const { location } = await person.post("/new", { platform: "airtable" });
  const to = (step: string) => location!.replace(/key$/, step);
  expect(await person.post(to("key"), { key: sandbox.key })).toMatchObject({ location: to("base") });
  expect(await person.post(to("base"), { base: sourceId })).toMatchObject({ location: to("destination") });
  expect(await person.post(to("destination"), { kind: "new" })).toMatchObject({ location: to("start") });
  const { location: page } = await person.post(to("start"), { plan: "business" });
  const baseId = /bas_\w+/.exec(page ?? "")?.[0];
  expect(baseId).toBeDefined();
  await fleet.synced(baseId!);

  const foreign = { origin: "https://elsewhere.example", "sec-fetch-site": "cross-site" };
  for (let look = 0; look < 2; look++) {
    expect((await person.post(`/bases/${baseId}/pause`, {}, foreign)).status).toBe(403);
  }
  expect(await getBase(ctx.db, baseId!)).toMatchObject({ settings: { paused: false } });

  await person.post("/sign-out", {});
  for (let look = 0; look < 4; look++) {
    expect(await person.get("/bases")).toMatchObject({
      status: 303,
      location: expect.stringContaining("/sign-in"),
    });
  }
});

test("an API token works on both consoles, and a base changed through one is shown changed by the other", async () => {
  const { sandbox, ctx } = fleet;
  const base = await fleet.connect(sandbox.control.generate({ records: 5 }));
  const token = await createToken(ctx.db, base.accountId, "balanced");
  const ask = async (method: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const url = `http://console/api/v1/bases/${base.id}`;
    const response = await consoles.handle(
      new Request(url, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) }),
    );
    return (await response.json()) as { settings: { turbo: boolean } };
  };
  for (const turbo of [true, false, true, false]) {
    await ask("PATCH", { turbo });
    expect((await ask("GET")).settings.turbo).toBe(turbo);
  }
});

test("I1, I4: writes through two alternating proxies are in SQL when they are answered, and stay within the quota", {
  timeout: 60_000,
}, async () => {
  const { sandbox } = fleet;
  const sourceId = sandbox.control.generate({ records: 50, tables: 1, seed: 7 });
  // Not requested over HTTP, which would count toward the source's limit.
  const { tables } = sandbox.control.dump(sourceId) as unknown as {
    tables: { fields: { name: string; type: string }[] }[];
  };
  const field = tables[0]!.fields.find(({ type }) => type === "singleLineText")!.name;
  const base = await fleet.connect(sourceId);
  const synced = await fleet.synced(base.id);
  const reader = await fleet.reader(base);
  const table = synced.tables[0]!;
  const [column] = await reader<{ name: string }[]>`
    select attname as name from pg_attribute
    where attrelid = format('public.%I', ${table.name}::text)::regclass
      and col_description(attrelid, attnum) like ${`${field}%`}`;
  const send = async (method: string, path: string, body: unknown) => {
    const response = await proxies.handle(
      new Request(`http://proxy/api.airtable.com/v0/${sourceId}/${table.source_id}${path}`, {
        method,
        headers: { authorization: `Bearer ${sandbox.key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    );
    expect(response.status).toBe(200);
    return (await response.json()) as { id: string };
  };
  const shown = async (id: string) => {
    const [row] =
      await reader`select ${reader(column!.name)} as value from ${reader(table.name)} where id = ${id}`;
    return row?.value;
  };
  const { id } = await send("POST", "", { fields: { [field]: "0" } });
  expect(await shown(id)).toBe("0");
  for (let value = 1; value <= 6; value++) {
    await send("PATCH", `/${id}`, { fields: { [field]: String(value) } });
    expect(await shown(id)).toBe(String(value));
  }
  await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const made = await send("POST", "", { fields: { [field]: `at once ${index}` } });
      expect(await shown(made.id)).toBe(`at once ${index}`);
    }),
  );
  expect(sandbox.control.logSummary().bases[sourceId]!.rateLimited).toBe(0);
});
