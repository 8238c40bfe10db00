/**
 * Measures the rate limit on a network: whether any second at the source has more than five requests of a base, whether
 * the source ever answers 429, and how much of five a second a sync uses, over TLS at several round trips.
 *
 * Two workers, two proxies, a console and the source are separate processes. Each mode has its own base and user, so
 * that all modes of a profile run in parallel for ten minutes. Requests are counted where they arrive.
 *
 * Run: `bun run bench traffic [--minutes 10] [--profile 0±0,80±20,200±60] [--mode turbo,rapid,…]`. The profile
 * `loopback` is without network and TLS.
 */
import { parseArgs } from "node:util";
import { LEAST_USED } from "./network";
import { table } from "./print";
import { type Figure, type ModeName, modes } from "./traffic/modes";
import { startScene } from "./traffic/scene";

const DEFAULT_PROFILES = "0±0,80±20,200±60";
const PER_SECOND = 5;

export async function run(): Promise<boolean> {
  const { minutes, profiles, names } = readOptions();
  let isWithin = true;
  for (const profile of profiles) isWithin = (await runProfile(profile, names, minutes)) && isWithin;
  return isWithin;
}

function readOptions(): { minutes: number; profiles: string[]; names: ModeName[] } {
  const { values } = parseArgs({
    args: process.argv.slice(3),
    options: {
      minutes: { type: "string", default: "10" },
      profile: { type: "string", default: DEFAULT_PROFILES },
      mode: { type: "string", default: Object.keys(modes).join(",") },
    },
  });
  const names = values.mode.split(",");
  for (const name of names)
    if (!(name in modes))
      throw new Error(`There is no mode "${name}". Use of: ${Object.keys(modes).join(", ")}`);
  return { minutes: Number(values.minutes), profiles: values.profile.split(","), names: names as ModeName[] };
}

async function runProfile(profile: string, names: ModeName[], minutes: number): Promise<boolean> {
  await using scene = await startScene(profile === "loopback" ? undefined : profile);
  const options = { durationMs: minutes * 60_000, leastUsed: LEAST_USED[profile] ?? 0 };
  // All modes are ready before the measurement begins: first syncs are not part of it.
  const ready = await Promise.all(
    names.map(async (name) => ({ name, mode: await modes[name](scene, options) })),
  );
  await scene.source.call("DELETE", "log");
  const openedBefore = await scene.connectionsOpened();
  const fromMs = performance.now();
  const results = await Promise.all(ready.map(async ({ name, mode }) => ({ name, ...(await mode()) })));
  const seconds = (performance.now() - fromMs) / 1000;
  const opened = (await scene.connectionsOpened()) - openedBefore;
  const { bases } = await scene.source.logSummary();
  const counted = results.flatMap(({ name, bases: ids }) =>
    ids.map(({ id, what, refusedOnPurpose = 0 }) => {
      const { requests = 0, maxPerSecond = 0, rateLimited = 0 } = bases[id] ?? {};
      return {
        name: `${name}${what ? `: ${what}` : ""}`,
        requests,
        maxPerSecond,
        refused: rateLimited - refusedOnPurpose,
      };
    }),
  );
  console.log(`\n${profile}${profile === "loopback" ? "" : " ms over TLS"}, ${seconds.toFixed(0)} s`);
  table(
    ["arrivals at the source", "requests", `most in any second (limit ${PER_SECOND})`, "429 (limit 0)"],
    counted.map((one) => [
      one.name,
      one.requests,
      mark(one.maxPerSecond, one.maxPerSecond <= PER_SECOND),
      mark(one.refused, one.refused === 0),
    ]),
  );
  const figures = results.flatMap(({ figures }) => figures);
  console.log();
  table(
    ["figure", "measured", "limit"],
    [
      ...figures.map(({ what, measured, limit, isWithin }) => [what, mark(measured, isWithin), limit]),
      ["connections opened to the source while measured", opened, ""],
    ],
  );
  return (
    counted.every((one) => one.maxPerSecond <= PER_SECOND && one.refused === 0) &&
    figures.every((figure: Figure) => figure.isWithin)
  );
}

function mark(value: number | string, isWithin: boolean): string {
  return isWithin ? String(value) : `${value} OVER THE LIMIT`;
}
