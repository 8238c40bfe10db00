/**
 * SQL writes whose client, endpoint, server or answer is killed at chosen points: nothing committed is lost, nothing is made
 * twice, and every row has a result a minute later. `bun run kills` is the long form; KILLS, KILLS_SEED, KILLS_BASES,
 * KILLS_KIND (`at COMMIT` or `queued`) and KILLS_LOG (a file for the proxy's output) change it.
 */
import { expect, test } from "vitest";
import { slowness } from "../support/machine-speed";
import { killAtRandom } from "./sql-writes/kills";

const env = process.env;
const kills = Number(env.KILLS ?? 8);
const isLong = kills > 50;
const KINDS = ["at COMMIT", "queued"].filter((kind) => kind === (env.KILLS_KIND ?? kind));
/** One kill, the restart of what was killed, and its share of the comparisons. */
const OF_KILL_MS = 30_000;

test.each(KINDS)(
  "whatever is killed, SQL writes (%s) are lost nowhere, made once, and have a result a minute later",
  {
    timeout: (120_000 + kills * OF_KILL_MS) * slowness(),
    tags: "once",
  },
  async (kind) => {
    const seed = Number(env.KILLS_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0]);
    const report = await killAtRandom({
      kills,
      isQueued: kind === "queued",
      bases: Number(env.KILLS_BASES ?? (isLong ? 6 : 2)),
      seed,
      wave: isLong ? 50 : kills,
      // Where it is long, that of production.
      upstreamTimeoutMs: isLong ? 30_000 : 3000,
      print: (line) => isLong && console.log(line),
    });
    console.log(`KILLS_SEED=${seed}`, report);
    expect(report.wrong).toEqual([]);
  },
);
