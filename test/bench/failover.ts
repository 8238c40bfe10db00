/**
 * Measures how long a running service takes to recover from a failover of its primary.
 *
 * The old primary restarts as a standby of the new one, and for STALE_MS the name still leads to it, like a cached DNS
 * answer. Times count from the moment that the name leads to the new primary. Run: `bun run bench failover`.
 */
import { type FailoverScene, failoverScene } from "../support/failover-scene";
import { until } from "../support/poll";
import { startTestServer } from "../support/server";
import { ratio, table } from "./print";

const STALE_MS = 12_000;
/** The documented limit, s. */
const LIMIT_SECONDS = 20;
const GIVEN_UP = { timeoutMs: 300_000, retryErrors: true, intervalMs: 50 };

const probes: Record<string, (scene: FailoverScene, nth: number) => Promise<boolean>> = {
  "readyz of all three": async (scene) => (await scene.readiness()).every((status) => status === 200),
  "setting changed": async (scene, nth) =>
    (await scene.api("PATCH", { turbo: nth % 2 === 0 })).status === 200,
  "proxied write answered": async (scene, nth) => (await scene.write(`write ${nth}`)).status === 200,
  "proxied write in SQL": async (scene, nth) => (await scene.write(`shown ${nth}`)).sql === null,
};

export async function run(): Promise<boolean> {
  const rows: (string | number)[][] = [];
  let isWithin = true;
  for (const which of ["control", "replica"] as const)
    for (const isSynchronous of [true, false]) {
      const seconds = await failOver(which, isSynchronous);
      for (const [what, { away, back }] of Object.entries(seconds)) {
        const limit = ratio(back / LIMIT_SECONDS, 1);
        isWithin &&= back <= LIMIT_SECONDS;
        rows.push([
          `${which}, ${isSynchronous ? "synchronous" : "asynchronous"}: ${what}`,
          away,
          back.toFixed(1),
          limit.text,
        ]);
      }
    }
  table(["", "while the name leads to the standby", "s until back", "of 20 s"], rows);
  return isWithin;
}

type Times = Record<string, { away: string; back: number }>;

async function failOver(which: "control" | "replica", isSynchronous: boolean): Promise<Times> {
  const other = await startTestServer();
  try {
    await using scene = await failoverScene({ which, isSynchronous, other: other.url });
    const move = await scene.pair.switchOver();
    const staleUntil = performance.now() + STALE_MS;
    const away: Record<string, string> = {};
    scene.add("edit while away");
    for (const [what, probe] of Object.entries(probes)) {
      const from = performance.now();
      const isWell = await probe(scene, 0).catch(() => false);
      away[what] = `${isWell ? "well" : "not"}, ${((performance.now() - from) / 1000).toFixed(1)} s`;
    }
    await Bun.sleep(Math.max(0, staleUntil - performance.now()));
    move();
    const movedAt = performance.now();
    const times: Times = {};
    const since = () => (performance.now() - movedAt) / 1000;
    const timed = async (what: string, probe: (nth: number) => Promise<boolean>) => {
      let nth = 1;
      await until(() => probe(nth++), { what, ...GIVEN_UP });
      times[what] = { away: away[what] ?? "", back: since() };
    };
    await Promise.all([
      ...Object.entries(probes).map(([what, probe]) => timed(what, (nth) => probe(scene, nth))),
      timed("edit of before in SQL", () => scene.has("edit while away")),
      timed("edit of after in SQL, as notified", async (nth) => {
        scene.add(`edit ${nth}`);
        return until(() => scene.has(`edit ${nth}`), {
          what: "it is there",
          timeoutMs: 3000,
          retryErrors: true,
        });
      }),
    ]);
    await until(async () => (await scene.differences()).length === 0, {
      what: "SQL is as the source",
      ...GIVEN_UP,
    });
    times["SQL as the source, cell by cell"] = { away: "", back: since() };
    return times;
  } finally {
    await other.stop();
  }
}
