/**
 * Measures write coalescing: the creates a second of 50 clients that write one record per call through one base, whose
 * source accepts five calls a second, with the setting and without it.
 *
 * Proxy and source are separate processes, and a call takes the source as long as Airtable. Run: `bun run bench coalesce`
 */
import { pause } from "../../core/control/bases";
import { startFleet } from "../support/fleet";
import { putFirst } from "../support/priority";
import { quantile } from "../support/quantile";
import { startSandboxProcess } from "../support/sandbox-process";
import { startTestServer } from "../support/server";
import { table } from "./print";
import { startProxyProcess } from "./proxy";

const CLIENTS = 50;
/** Until the setting is known to the proxy, and every client has begun. */
const WARM_UP_MS = 5000;
const MEASURED_MS = 20_000;
const SOURCE_MS = { minMs: 80, maxMs: 250 };
/** Creates a second that must be sustained. */
const LEAST = 40;

export async function run(): Promise<boolean> {
  await using releases = new AsyncDisposableStack();
  const server = await startTestServer();
  releases.defer(() => server.stop());
  const source = releases.use(await startSandboxProcess());
  const fleet = releases.use(await startFleet({ source, databaseUrl: server.url }));
  // Its rate limit counts arrivals: a source that is late itself would refuse calls that came in time.
  putFirst(source.pid);
  const upstreams = `api.airtable.com=${source.url},content.airtable.com=${source.url}`;
  const proxy = await startProxyProcess(releases, fleet, upstreams);

  const rows: (string | number)[][] = [];
  let isWithin = true;
  // A base of its own for each: a call that the source refuses pauses the base for half a minute.
  for (const [seed, coalesceWrites] of [true, false].entries()) {
    const sourceBaseId = await source.generate({ records: 100, tables: 1, seed: seed + 1 });
    const base = await fleet.connect(sourceBaseId, { coalesceWrites });
    await fleet.synced(base.id);
    // Sync takes nothing from the clients' calls.
    await pause(fleet.ctx, base);
    await source.settings({ latency: { before: SOURCE_MS } });
    const url = `http://127.0.0.1:${proxy.port}/api.airtable.com/v0/${sourceBaseId}/Projects`;
    const { perSecond, times, failures } = await creates(url, source.key);
    await source.settings({ latency: { before: { minMs: 0, maxMs: 0 } } });
    const { rateLimited } = (await source.logSummary()).bases[sourceBaseId]!;
    isWithin &&= !coalesceWrites || (perSecond >= LEAST && failures + rateLimited === 0);
    const seconds = (share: number) =>
      (times.length > 0 ? quantile(times, share) / 1000 : Number.NaN).toFixed(2);
    const setting = coalesceWrites ? "on" : "off";
    rows.push([setting, perSecond.toFixed(1), seconds(0.5), seconds(0.99), failures, rateLimited]);
  }
  table(["setting", "creates a second", "p50, s", "p99, s", "failures", "refused calls"], rows);
  console.log(`\nat least ${LEAST} a second, without a failure${isWithin ? "" : ": NOT MET"}`);
  return isWithin;
}

/** Each client creates a record as soon as its last one has been answered. */
async function creates(url: string, key: string) {
  const from = performance.now() + WARM_UP_MS;
  const until = from + MEASURED_MS;
  const times: number[] = [];
  let failures = 0;
  const client = async (index: number) => {
    for (let count = 0; performance.now() < until; count++) {
      const sentAt = performance.now();
      const response = await fetch(url, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ fields: { Name: `client ${index}, ${count}` } }),
      });
      await response.text();
      const at = performance.now();
      if (at < from || at > until) continue;
      if (response.status === 200) times.push(at - sentAt);
      else failures++;
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, (_, index) => client(index)));
  return { perSecond: times.length / (MEASURED_MS / 1000), times, failures };
}
