/**
 * Measures write coalescing: the creates a second of 50 clients that write one record per call through one base, whose
 * source accepts five calls a second, with the setting and without it.
 *
 * Proxy and source are separate processes, and a call takes the source as long as Airtable. Run: `bun run bench coalesce`
 */
import { pause, updateSettings } from "../../core/control/bases";
import { startFleet } from "../support/fleet";
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
  const sourceBaseId = await source.generate({ records: 100, tables: 1, seed: 1 });
  const base = await fleet.connect(sourceBaseId);
  await fleet.synced(base.id);
  // Sync takes nothing from the clients' calls.
  await pause(fleet.ctx, base);
  await source.settings({ latency: { before: SOURCE_MS } });
  const upstreams = `api.airtable.com=${source.url},content.airtable.com=${source.url}`;
  const proxy = await startProxyProcess(releases, fleet, upstreams);
  const url = `http://127.0.0.1:${proxy.port}/api.airtable.com/v0/${sourceBaseId}/Projects`;

  const rows: (string | number)[][] = [];
  let least = 0;
  for (const coalesceWrites of [false, true]) {
    await updateSettings(fleet.ctx, base, { coalesceWrites });
    const { perSecond, times, failures } = await creates(url, source.key);
    if (coalesceWrites) least = perSecond - failures;
    rows.push([
      coalesceWrites ? "on" : "off",
      perSecond.toFixed(1),
      (quantile(times, 0.5) / 1000).toFixed(2),
      (quantile(times, 0.99) / 1000).toFixed(2),
      failures,
    ]);
  }
  const { rateLimited } = await source.logSummary();
  table(["setting", "creates a second", "p50, s", "p99, s", "failures"], rows);
  console.log(`\ncalls over the source's rate limit: ${rateLimited}`);
  console.log(
    `creates a second: ${least.toFixed(1)}, at least ${LEAST}${least < LEAST ? " BELOW THE LIMIT" : ""}`,
  );
  return least >= LEAST && rateLimited === 0;
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
