/**
 * Measures the console's pages against their limits: a base of 200 tables, a list of 500 bases, the size of a first
 * visit, and the fragment that an open page requests every two seconds.
 *
 * Pages are requested over HTTP, one after the other, compressed, from a console in this process with its own Postgres,
 * by a signed-in user. Run: `bun run bench console`
 */
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { startConsole } from "../../apps/console/start";
import { readConfig } from "../../core/config";
import { createAccount } from "../../core/control/accounts";
import { type ManagementContext, recordRun } from "../../core/control/bases";
import { ensureDefaultCluster } from "../../core/control/placement";
import { migrateControl } from "../../core/control/setup";
import { closeContext, createContext } from "../../core/process";
import { openQueue } from "../../core/queue";
import { platforms } from "../../core/source";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";

const TABLES = 200;
const BASES = 500;
const SAMPLES = 200;
const WARM_UP = 50;
const PERSON = { email: "bench@example.org", password: "correct horse battery" };
const LIMITS = { baseMs: 8, baseBytes: 60_000, listMs: 25, searchMs: 25, firstLoadBytes: 100_000 };
/** Of each table, for the search. */
const FIELDS = 20;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const ctx = await consoleContext(server.url, releases);
  const running = await startConsole(ctx, { port: 0 });
  releases.defer(() => running.stop());
  const origin = `http://localhost:${running.port}`;
  const account = await createAccount(ctx.db, PERSON);
  const baseId = await seed(ctx, account.id, server.url);
  const cookie = await signIn(origin);
  const ask = (path: string, headers: Record<string, string> = {}) =>
    measure(`${origin}${path}`, { cookie, accept: "text/html", "accept-encoding": "gzip", ...headers });

  const base = await ask(`/bases/${baseId}`);
  const list = await ask("/bases");
  const htmx = { "hx-request": "true" };
  const searches = [];
  for (const query of ["", "inventory", "field 7", "team 42", "unit price"]) {
    const { p50Ms } = await ask(`/search?${new URLSearchParams({ q: query, base: baseId })}`, htmx);
    searches.push({ name: `search for “${query}”: p50, ms`, value: p50Ms, limit: LIMITS.searchMs });
  }
  const next = /hx-get="(\/bases\/[^"]+\/live\?seen=[^"]+)"/.exec(base.text)![1]!.replaceAll("&amp;", "&");
  const live = await ask(next, htmx);
  const poll = { cookie, accept: "text/html", "accept-encoding": "gzip", ...htmx };
  const drawnMs = await cpuPerRequest(() => `${origin}/bases`, poll);
  const skippedMs = await cpuPerRequest(() => `${origin}/bases?at=${Date.now()}`, poll);
  const firstLoad = base.bytes + (await assetBytes(origin, base.text));
  const figures = [
    { name: `a base of ${TABLES} tables: p50, ms`, value: base.p50Ms, limit: LIMITS.baseMs },
    { name: `a base of ${TABLES} tables: compressed, bytes`, value: base.bytes, limit: LIMITS.baseBytes },
    { name: `the list of ${BASES} bases: p50, ms`, value: list.p50Ms, limit: LIMITS.listMs },
    ...searches,
    { name: "a first visit with all that it loads, bytes", value: firstLoad, limit: LIMITS.firstLoadBytes },
  ].map((figure) => ({ ...figure, ...ratio(figure.value / figure.limit, 1) }));
  table(
    ["what", "measured", "limit", "ratio"],
    figures.map(({ name, value, limit, text }) => [name, round(value), limit, text]),
  );
  console.log(
    `\np95: base ${round(base.p95Ms)} ms, list ${round(list.p95Ms)} ms (${list.bytes} bytes); ` +
      `the news of an open page: p50 ${round(live.p50Ms)} ms, ${live.bytes} bytes\n` +
      `CPU of a poll of the list, console and client: ${round(drawnMs)} ms when it is drawn, ` +
      `${round(skippedMs)} ms otherwise (3 of 4)`,
  );
  return figures.every(({ isWithin }) => isWithin);
}

async function consoleContext(url: string, releases: AsyncDisposableStack): Promise<ManagementContext> {
  const config = readConfig({
    DATABASE_URL: url,
    SECRET_KEY: randomBytes(32).toString("base64"),
    DATA_DIR: join(tmpdir(), "basetide-unused"),
    LOG_LEVEL: "silent",
  });
  const plain = createContext(config, "bench");
  releases.defer(() => closeContext(plain));
  await migrateControl(url, plain.log);
  const queue = await openQueue(plain, url, { isWorker: false });
  releases.defer(() => queue.close());
  const ctx = { ...plain, queue, platforms: platforms(config) };
  await ensureDefaultCluster(ctx);
  return ctx;
}

/** Bases as after a year of use, without their databases. @returns the one with many tables */
async function seed(ctx: ManagementContext, accountId: string, url: string): Promise<string> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql`
    insert into databases (id, account_id, cluster_id, name, role_name, encrypted_password)
    select 'dat_' || lpad(n::text, 20, '0'), ${accountId}, (select id from clusters), 'bt_' || md5(n::text), 'r' || n, 'x'
    from generate_series(1, ${BASES}::int) as n`;
  await sql`
    insert into bases (id, account_id, platform, source_base_id, name, encrypted_api_key, database_id, schema_name, tables)
    select 'bas_' || lpad(n::text, 20, '0'), ${accountId}, 'airtable', 'app' || n, 'Base of team ' || n, 'x',
      'dat_' || lpad(n::text, 20, '0'), 'public', ${tables(20)}::text::jsonb
    from generate_series(1, ${BASES}::int) as n`;
  const names = Array.from({ length: FIELDS }, (_, index) => (index === 3 ? "Unit price" : `Field ${index}`));
  await sql`
    insert into source_tables (base_id, table_id, primary_field_id, fields, name, field_names, search_text)
    select 'bas_' || lpad(n::text, 20, '0'), 'tbl' || lpad(t::text, 14, '0'), 'fld', '{}', 'Product Inventory ' || t,
      ${names}, lower(E'\nproduct inventory ' || t || ${`\n${names.join("\n")}\n`})
    from generate_series(1, ${BASES}::int) as n, generate_series(0, case n when 1 then ${TABLES - 1} else 19 end) as t`;
  await sql.end();
  const id = `bas_${"1".padStart(20, "0")}`;
  const issue = {
    table: "table_1",
    record_id: "recAAAAAAAAAAAAAA",
    column: "price",
    value: '"x"',
    reason: "not a number",
  };
  for (let n = 0; n < BASES; n++) {
    const isFirst = n === 0;
    for (let run = 0; run < (isFirst ? 70 : 5); run++) {
      const startedAt = new Date(Date.now() - (80 - run) * 120_000);
      await recordRun(ctx.db, `bas_${String(n + 1).padStart(20, "0")}`, {
        kind: "sweep",
        startedAt,
        completedAt: new Date(startedAt.getTime() + 500 + ((run * 37) % 400)),
        seen: 12_345,
        inserted: run % 3,
        updated: 1,
        deleted: 0,
        requests: 130,
        waitMs: 900,
        ...(isFirst
          ? { tables: JSON.parse(tables(TABLES)), issueCount: 100, issues: Array(100).fill(issue) }
          : {}),
      });
    }
  }
  await ctx.db`
    insert into schema_changes (base_id, kind, table_name, field_name)
    select ${id}, 'field_added', 'table_' || n, 'field_' || n from generate_series(1, 50) as n`;
  await ctx.db`analyze`;
  return id;
}

function tables(count: number): string {
  return JSON.stringify(
    Array.from({ length: count }, (_, index) => ({
      name: `product_inventory_${index}`,
      source_name: `Product Inventory ${index}`,
      source_id: `tbl${String(index).padStart(14, "0")}`,
      records: index * 137,
    })),
  );
}

async function signIn(origin: string): Promise<string> {
  const answer = await fetch(`${origin}/sign-in`, {
    method: "POST",
    body: new URLSearchParams(PERSON),
    headers: { origin, accept: "text/html" },
    redirect: "manual",
  });
  if (answer.status !== 303) throw new Error(`Not signed in: ${answer.status}`);
  return answer.headers
    .getSetCookie()
    .map((cookie) => cookie.split(";")[0])
    .join("; ");
}

async function measure(url: string, headers: Record<string, string>) {
  const times: number[] = [];
  let body = new Uint8Array();
  for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
    const startedAt = performance.now();
    const answer = await fetch(url, { headers, decompress: false });
    body = new Uint8Array(await answer.arrayBuffer());
    if (sample >= 0) times.push(performance.now() - startedAt);
    if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
  }
  times.sort((one, other) => one - other);
  const isGzip = body[0] === 0x1f && body[1] === 0x8b;
  const text = new TextDecoder().decode(isGzip ? Bun.gunzipSync(body) : body);
  return { p50Ms: times[SAMPLES / 2]!, p95Ms: times[Math.floor(SAMPLES * 0.95)]!, bytes: body.length, text };
}

/** ms of CPU, all threads of this process. */
async function cpuPerRequest(url: () => string, headers: Record<string, string>): Promise<number> {
  const before = process.cpuUsage();
  for (let sample = 0; sample < SAMPLES; sample++) {
    const answer = await fetch(url(), { headers, decompress: false });
    await answer.arrayBuffer();
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / SAMPLES;
}

/** The size of the page's stylesheet and scripts on the wire. */
async function assetBytes(origin: string, page: string): Promise<number> {
  let bytes = 0;
  for (const [, path] of page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)) {
    const answer = await fetch(`${origin}${path}`, {
      headers: { "accept-encoding": "gzip" },
      decompress: false,
    });
    bytes += (await answer.arrayBuffer()).byteLength;
  }
  return bytes;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
