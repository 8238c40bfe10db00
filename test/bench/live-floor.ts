/**
 * `bench live --floor`: measures how soon an edit of a cell that nothing is computed from is in SQL, beside a bare loop in the
 * same run: it waits for a notification, makes one call for the payloads, and updates the row.
 *
 * The source answers after 200 ms, and notifies at once. Both have a base of their own, and each edit is made in both at the
 * same moment. Worker and console are processes of their own. Run: `bun run bench live --floor`, with FLOOR_EDITS (60).
 */
import { once } from "node:events";
import postgres from "postgres";
import { getBase, updateSettings } from "../../core/control/bases";
import { startFleet } from "../support/fleet";
import { freePort } from "../support/free-port";
import { until } from "../support/poll";
import { startProgram } from "../support/program";
import { quantile } from "../support/quantile";
import { type SandboxProcess, startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";
import { IMAGE_ENVIRONMENT, WORKER_ENVIRONMENT } from "./runtime-environment";

const EDITS = Number(process.env.FLOOR_EDITS ?? 60);
const RECORDS = 1000;
const LIMITS = { p50: 1.25, p99: 1.6 };
/** Half of an answer's time lies before it is made. */
const HALF_MS = { minMs: 100, maxMs: 100 };
const POLL_MS = 2;
/** The mean time between two edits: each is read on its own. They keep no step with the full check, which makes a call a second. */
const EDIT_EVERY_MS = 1500;
const TIMEOUT_MS = 60_000;

export async function runWithFloor(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess());
  const port = String(await freePort());
  const env = { CONSOLE_PORT: port, CONSOLE_URL: `http://127.0.0.1:${port}` };
  const fleet = releases.use(await startFleet({ source, databaseUrl: server.url, workers: 0, env }));
  const { config, db } = fleet.ctx;
  for (const role of ["console", "worker"]) {
    const program = startProgram("apps/main.ts", [role], {
      ...env,
      ...source.clientEnv,
      ...(role === "worker" ? WORKER_ENVIRONMENT : IMAGE_ENVIRONMENT),
      DATABASE_URL: config.databaseUrl!,
      SECRET_KEY: config.secretKey!,
      WORKER_PORT: "0",
    });
    releases.use(program);
    await program.says("started");
  }
  const [copied, looped] = [
    await source.generate({ records: RECORDS, seed: 1 }),
    await source.generate({ records: RECORDS, seed: 1 }),
  ];
  const { id } = await fleet.connect(copied!, { live: true });
  await updateSettings(fleet.ctx, await getBase(db, id), { turbo: true });
  const isLive = async () => {
    const base = await getBase(db, id);
    return base.live?.state === "on" && base.sync !== null && base;
  };
  const base = await until(isLive, { what: "the base is live", timeoutMs: TIMEOUT_MS });
  const reader = await fleet.reader(base);
  const [{ name } = { name: "" }] = base.tables;
  const [edited, loopedTable] = [await firstTable(source, copied!), await firstTable(source, looped!)];
  await source.settings({ latency: { before: HALF_MS, after: HALF_MS } });
  const bare = releases.use(await bareLoop(source, looped!, server.url));
  const times: { ours: number; bare: number }[] = [];
  // The first edit proves that notifications arrive, and the next ones let compilers work.
  for (let edit = -10; edit < EDITS; edit++) {
    const [ours, theirs] = [edited, loopedTable].map(({ records }) => records[edit + 10]!.id);
    const value = `edit ${edit}`;
    const patch = (sourceBaseId: string, tableId: string, id: string) =>
      source.call("PATCH", `bases/${sourceBaseId}/tables/${tableId}/records`, {
        records: [{ id, fields: { Name: value } }],
      });
    const from = performance.now();
    await Promise.all([patch(copied!, edited.id, ours!), patch(looped!, loopedTable.id, theirs!)]);
    const seen = async (isThere: () => Promise<boolean>) => {
      await until(isThere, { what: value, timeoutMs: TIMEOUT_MS, intervalMs: POLL_MS });
      return performance.now() - from;
    };
    const [oursMs, bareMs] = await Promise.all([
      seen(
        async () =>
          (await reader`select from ${reader(name)} where id = ${ours!} and name = ${value}`).length > 0,
      ),
      seen(() => bare.has(theirs!, value)),
    ]);
    if (edit >= 0) times.push({ ours: oursMs, bare: bareMs });
    await Bun.sleep((0.5 + Math.random()) * EDIT_EVERY_MS);
  }
  const at = (who: "ours" | "bare", part: number) =>
    quantile(
      times.map((one) => one[who]),
      part,
    );
  const parts = [
    { what: "p50", part: 0.5, limit: LIMITS.p50 },
    { what: "p99", part: 0.99, limit: LIMITS.p99 },
  ].map((one) => ({ ...one, times: at("ours", one.part) / at("bare", one.part) }));
  table(
    [`${EDITS} edits`, "bare loop, ms", "ours, ms", "of the bare loop", "of the limit"],
    parts.map(({ what, part, limit, times: ratioOf }) => [
      what,
      at("bare", part).toFixed(0),
      at("ours", part).toFixed(0),
      ratioOf.toFixed(2),
      ratio(ratioOf / limit, 1).text,
    ]),
  );
  return parts.every(({ times: ratioOf, limit }) => ratioOf <= limit);
}

async function firstTable(source: SandboxProcess, baseId: string) {
  const { tables } = (await source.call("GET", `dump/${baseId}`)) as {
    tables: { id: string; records: { id: string }[] }[];
  };
  return tables[0]!;
}

/** Follows the base: a notification, the payloads, an update of each row that they name. */
async function bareLoop(source: SandboxProcess, baseId: string, url: string) {
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  await sql`create table bare (id text primary key, name text)`;
  const notified = new EventTarget();
  const hook = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      notified.dispatchEvent(new Event("ping"));
      return new Response();
    },
  });
  const call = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${source.key}`, "content-type": "application/json" };
    const answer = await fetch(`${source.url}/v0/bases/${baseId}/webhooks${path}`, {
      ...{ method, headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  };
  const { id } = await call("POST", "", {
    notificationUrl: `http://127.0.0.1:${hook.port}/`,
    specification: { options: { filters: { dataTypes: ["tableData"] } } },
  });
  let cursor = 1;
  let isOver = false;
  const following = (async () => {
    while (!isOver) {
      await once(notified, "ping");
      if (isOver) return;
      const answer = (await call("GET", `/${id}/payloads?cursor=${cursor}`)) as unknown as Payloads;
      cursor = answer.cursor;
      for (const { changedTablesById } of answer.payloads)
        for (const { changedRecordsById } of Object.values(changedTablesById ?? {}))
          for (const [record, { current }] of Object.entries(changedRecordsById ?? {}))
            await sql`
              insert into bare values (${record}, ${String(Object.values(current.cellValuesByFieldId)[0])})
              on conflict (id) do update set name = excluded.name`;
    }
  })();
  return {
    has: async (record: string, value: string) =>
      (await sql`select from bare where id = ${record} and name = ${value}`).length > 0,
    async [Symbol.asyncDispose]() {
      isOver = true;
      notified.dispatchEvent(new Event("ping"));
      await following;
      await hook.stop(true);
      await sql.end({ timeout: 1 });
    },
  };
}

interface Payloads {
  cursor: number;
  payloads: {
    changedTablesById?: Record<
      string,
      { changedRecordsById?: Record<string, { current: { cellValuesByFieldId: Record<string, unknown> } }> }
    >;
  }[];
}
