/**
 * `bench live --clients`: measures how soon a user's change is in SQL while clients use up the five requests a second
 * of the base, and the share of requests that clients get. Over a network (`network.ts`), every part in its own
 * process; requests are counted where they arrive.
 *
 * Run: `bun run bench live --clients [--minutes 3] [--network 200±60]`.
 */
import { parseArgs } from "node:util";
import { quantile } from "../support/quantile";
import { networkOption } from "./network";
import { table } from "./print";
import { startScene } from "./traffic/scene";

/** More than the source answers in a second; each sends again as soon as its last call is answered. */
const CLIENTS = 12;
const EDIT_EVERY_MS = 5000;
const POLL_MS = 10;
/** An edit that is not in SQL by then counts with this delay. */
const LOST_MS = 60_000;
const WARM_UP_MS = 5000;
const LIMITS = { editP95Ms: 3000, clientShare: 0.8, perSecond: 5 };

export async function runWithClients(): Promise<boolean> {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      clients: { type: "boolean" },
      minutes: { type: "string", default: "3" },
      network: { type: "string" },
    },
  });
  await using scene = await startScene(networkOption().network);
  const { base, ask } = await scene.connect(
    { live: true },
    (found) => found.sync !== null && found.live?.state === "on",
  );
  const { source } = scene;
  const reader = await scene.fleet.reader(base);
  const id = base.sourceBaseId;
  let isOver = false;
  let served = 0;
  let failed = 0;
  const clients = Array.from({ length: CLIENTS }, async (_, proxy) => {
    while (!isOver) {
      const { status } = await ask(proxy);
      if (status === 200) served++;
      else failed++;
    }
  });
  // The first requests only fill the wait queue, so they are not counted.
  await Bun.sleep(WARM_UP_MS);
  await source.call("DELETE", "log");
  const servedBefore = served;
  const from = performance.now();
  const times: Promise<number>[] = [];
  for (let turn = 0; performance.now() - from < Number(values.minutes) * 60_000; turn++) {
    const name = `edit ${turn}`;
    await source.call("POST", `bases/${id}/tables/Projects/records`, {
      records: [{ fields: { Name: name } }],
    });
    times.push(
      seen(performance.now(), async () => {
        const rows = await reader`select from projects where name = ${name}`;
        return rows.length > 0;
      }),
    );
    await Bun.sleep((0.5 + Math.random()) * EDIT_EVERY_MS);
  }
  const [byClients, seconds] = [served - servedBefore, (performance.now() - from) / 1000];
  const { bases } = await source.logSummary();
  const { requests, maxPerSecond, rateLimited } = bases[id]!;
  const edits = await Promise.all(times);
  isOver = true;
  await Promise.all(clients);
  const rows = [
    atMost(
      `edits of a person in SQL, p95 of ${edits.length} (median ${Math.round(quantile(edits, 0.5))} ms)`,
      Math.round(quantile(edits, 0.95)),
      LIMITS.editP95Ms,
      " ms",
    ),
    atLeast("clients' part of all requests", byClients / requests, LIMITS.clientShare),
    {
      what: "all requests, as a part of five a second",
      measured: (requests / seconds / LIMITS.perSecond).toFixed(3),
      limit: "",
      isWithin: true,
    },
    atMost("most arrivals in any second", maxPerSecond, LIMITS.perSecond),
    atMost("answers of 429", rateLimited, 0),
    atMost("clients' requests not answered with 200", failed, 0),
  ];
  table(
    ["", "measured", "limit"],
    rows.map(({ what, measured, limit, isWithin }) => [
      what,
      isWithin ? measured : `${measured} OVER THE LIMIT`,
      limit,
    ]),
  );
  return rows.every(({ isWithin }) => isWithin);
}

async function seen(madeAt: number, isThere: () => Promise<boolean>): Promise<number> {
  while (performance.now() - madeAt < LOST_MS && !(await isThere())) await Bun.sleep(POLL_MS);
  return performance.now() - madeAt;
}

function atMost(what: string, measured: number, limit: number, unit = "") {
  return { what, measured: `${measured}${unit}`, limit: `${limit}${unit}`, isWithin: measured <= limit };
}

function atLeast(what: string, measured: number, limit: number) {
  return { what, measured: measured.toFixed(3), limit: `at least ${limit}`, isWithin: measured >= limit };
}
