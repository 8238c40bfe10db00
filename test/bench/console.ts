/**
 * Measures every page of the console against its limits, with an account of 500 bases, one of them synced and with 200
 * tables: the time of an answer, the processor time of it (this process, which is console and client), and the size of a
 * first visit with all that it loads. Searches count as pages; the polls of an open list are printed.
 *
 * Pages are requested over HTTP, one after the other, compressed. Times are only meaningful on an idle machine: the
 * load is printed. Run: `bun run bench console`, with CONSOLE_BASES (500), CONSOLE_TABLES (200), CONSOLE_ONLY (a part of
 * the address) and CONSOLE_SAMPLES (40).
 */
import { loadavg } from "node:os";
import { type PageVisit, pageVisits } from "../support/console-pages";
import { consoleScene } from "../support/console-scene";
import { startFleet } from "../support/fleet";
import { EDITOR_WEIGHT, FONT_WEIGHT, PAGE_WEIGHT, pageScales } from "../support/page-weight";
import { startTestServer } from "../support/server";
import { table } from "./print";

const BASES = Number(process.env.CONSOLE_BASES ?? 500);
const TABLES = Number(process.env.CONSOLE_TABLES ?? 200);
const SAMPLES = Number(process.env.CONSOLE_SAMPLES ?? 40);
const ONLY = process.env.CONSOLE_ONLY ?? "";
const WARM_UP = 10;
const ROWS = 120;
const LIMIT_MS = 25;
const SEARCHES = ["", "inventory", "products 7", "team 42", "unit price"];

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const env = { REPLICA_URL: server.url };
  const fleet = releases.use(await startFleet({ databaseUrl: server.url, env, leavesBases: true }));
  const scene = await consoleScene(fleet, { bases: BASES, tables: TABLES, rows: ROWS });
  releases.defer(() => scene.stop());
  const weigh = pageScales(scene.origin);

  const rows: string[][] = [];
  let isWithin = true;
  const searches = SEARCHES.map((query) => {
    const path = `/search?${new URLSearchParams({ q: query, base: scene.ids.base })}`;
    return { route: "/search", path, isVisitor: false, isFragment: true };
  });
  for (const visit of [...pageVisits(scene.ids), ...searches].filter(({ path }) => path.includes(ONLY))) {
    const headers = headersOf(visit, scene.cookie);
    const weight = await weigh(visit.path, headers);
    if (weight.status !== 200) throw new Error(`${visit.path}: ${weight.status}`);
    const { p50Ms, p95Ms, cpuMs } = await measure(`${scene.origin}${visit.path}`, headers);
    const over = [
      p50Ms > LIMIT_MS ? "SLOW" : "",
      weight.bytes > PAGE_WEIGHT || weight.editorBytes > EDITOR_WEIGHT || weight.fontBytes > FONT_WEIGHT
        ? "HEAVY"
        : "",
    ].filter(Boolean);
    isWithin &&= over.length === 0;
    const path = visit.path.replaceAll(scene.ids.base, "…").replace(/token=.*/, "token=…");
    const editor = weight.editorBytes > 0 ? ` + ${weight.editorBytes}` : "";
    rows.push([path, round(p50Ms), round(p95Ms), round(cpuMs), `${weight.bytes}${editor}`, over.join(" ")]);
  }
  table(["page", "p50, ms", "p95, ms", "CPU, ms", "first visit, bytes", "over the limit"], rows);
  const poll = headersOf({ isVisitor: false, isFragment: true }, scene.cookie);
  const drawn = await measure(`${scene.origin}/bases`, poll);
  const skipped = await measure(`${scene.origin}/bases?at=${Date.now()}`, poll);
  console.log(
    `\nCPU of a poll of the list: ${round(drawn.cpuMs)} ms when it is drawn, ${round(skipped.cpuMs)} ms otherwise (3 of 4)`,
  );
  const [oneMinute] = loadavg();
  console.log(
    `\nLimits: p50 ${LIMIT_MS} ms, ${PAGE_WEIGHT} bytes. ${BASES} bases, ${TABLES} tables; load of the machine ${oneMinute!.toFixed(1)}`,
  );
  return isWithin;
}

function headersOf(
  { isVisitor, isFragment }: Pick<PageVisit, "isVisitor" | "isFragment">,
  cookie: string,
): Record<string, string> {
  return {
    accept: "text/html",
    "accept-encoding": "gzip",
    ...(isVisitor ? {} : { cookie }),
    ...(isFragment ? { "hx-request": "true" } : {}),
  };
}

async function measure(url: string, headers: Record<string, string>) {
  const times: number[] = [];
  let before = process.cpuUsage();
  for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
    if (sample === 0) before = process.cpuUsage();
    const startedAt = performance.now();
    const answer = await fetch(url, { headers, decompress: false });
    await answer.arrayBuffer();
    if (sample >= 0) times.push(performance.now() - startedAt);
  }
  const { user, system } = process.cpuUsage(before);
  times.sort((one, other) => one - other);
  const at = (part: number) => times[Math.floor(SAMPLES * part)]!;
  return { p50Ms: at(0.5), p95Ms: at(0.95), cpuMs: (user + system) / 1000 / SAMPLES };
}

function round(value: number): string {
  return value.toFixed(1);
}
