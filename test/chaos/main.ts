/**
 * The long form: CHAOS_FAULTS (500) random faults on a service of real processes, several at once, in waves.
 *
 * `bun run chaos`. The source is behind a network of 80 ms ± 20 over TLS; CHAOS_NETWORK sets another one (`200±60`), or
 * `loopback`. CHAOS_SEED repeats a run's choices (their timing depends on the machine), CHAOS_ONLY selects faults whose
 * name matches it, CHAOS_WAVE is the approximate size of a wave (1: one after the other), CHAOS_LOG names a file for
 * the output of ended processes. Prints each fault and a table of figures; exits with 1 if an invariant or a limit did
 * not hold. A signal ends the run after the current wave, a second one at once.
 */
import { Random } from "../../apps/sandbox/random";
import { longFaults } from "./faults";
import { Chaos, type Fault } from "./harness/chaos";
import { contractCounts } from "./harness/contract";
import { Figures } from "./harness/figures";
import { disturbed, TIMES } from "./harness/heal";
import { Service } from "./harness/service";
import { repairsDone } from "./harness/settle";
import type { Mode } from "./harness/watched-base";

const count = Number(process.env.CHAOS_FAULTS ?? 500);
const seed = Number(process.env.CHAOS_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const modes = (process.env.CHAOS_MODES ?? "sweeps,turbo,rapid,live").split(",") as Mode[];
const waveSize = Number(process.env.CHAOS_WAVE ?? 6);
const only = new RegExp(process.env.CHAOS_ONLY ?? "", "i");

/** The limits of the figures, ms at the 95th percentile. */
const LIMITS: Record<string, number> = {
  [TIMES.workerLost]: 20_000,
  [disturbed(TIMES.workerLost)]: 20_000,
  [TIMES.controlUsed]: 5000,
  [TIMES.controlShows]: 20_000,
  [disturbed(TIMES.controlShows)]: 20_000,
  [TIMES.replicasUsed]: 5000,
};
const GREEN_MS = 240_000;
/** The share of faults that may fail to happen. */
const MISSED_SHARE = 0.03;
/** For each such period that a fault lasts longer, another fault runs with it, ms. */
const ANOTHER_MS = 12_000;

const random = new Random(seed);
const figures = new Figures();
const faults = longFaults.filter(({ name }) => only.test(name));
console.log(`${count} faults of ${faults.length} kinds, CHAOS_SEED=${seed}, bases: ${modes.join(", ")}`);

await using service = await Service.start({
  modes,
  workers: 3,
  clusters: Math.min(2, modes.length),
  logFile: process.env.CHAOS_LOG,
  network: process.env.CHAOS_NETWORK,
});
// In Bun's types, only the event emitter that `process` extends knows signals.
const signals: NodeJS.EventEmitter = process;
let isToEnd = false;
for (const name of ["SIGINT", "SIGTERM"])
  signals.on(name, () => {
    if (isToEnd) void service[Symbol.asyncDispose]().then(() => process.exit(130));
    isToEnd = true;
  });
process.on("uncaughtException", (error) => {
  // A client that fails on a corrupted answer was told nothing.
  if (error.stack?.includes("node_modules/airtable/")) return;
  console.error(error);
  void service[Symbol.asyncDispose]().then(() => process.exit(1));
});
const chaos = new Chaos(service, random, figures);
chaos.people.start();
const startedAt = performance.now();
let wrong = 0;
for (let number = 0; number < count && !isToEnd; ) {
  const wave = drawWave(count - number);
  const from = performance.now();
  const found = await chaos.suffer(wave, ({ name, at, ranMs, healedMs, isDisturbed, missed }) => {
    const [ran, healed] = [ranMs, healedMs].map((ms) => `${(ms / 1000).toFixed(1)} s`.padStart(7));
    const time = at.toISOString().slice(11, 23);
    const which = missed === undefined ? String(++number) : "-";
    const how = missed === undefined ? "" : `: did not happen, ${missed}`;
    console.log(`${which.padStart(4)} ${time} ${ran} +${healed}${isDisturbed ? "*" : " "} ${name}${how}`);
  });
  wrong += found.length;
  console.log(`      ${((performance.now() - from) / 1000).toFixed(1)} s, ${minutes()} min in all`);
  for (const one of found) console.log(`      WRONG: ${one}`);
}
await chaos.people.stop();
const inTheEnd = [...(await repairsDone(chaos)), ...(await service.untilGreen(GREEN_MS))];
for (const one of inTheEnd) console.log(`WRONG: ${one}`);
wrong += inTheEnd.length;
report();
process.exitCode = wrong > 0 ? 1 : 0;

/** Draws one fault or several, and more if one of them lasts long. */
function drawWave(most: number): Fault[] {
  const readVersions = faults.flatMap((fault) => Array<Fault>(fault.weight).fill(fault));
  // Some faults run alone, or nearly so: their recovery times are the most informative.
  const size = random.int(1, 2 * waveSize - 1);
  const wave: Fault[] = [];
  const more = () =>
    waveSize > 1 ? Math.floor(Math.max(...wave.map(({ lastsMs = 0 }) => lastsMs)) / ANOTHER_MS) : 0;
  do wave.push(random.pick(readVersions));
  while (wave.length < most && wave.length < size + more());
  return wave;
}

function minutes(): string {
  return ((performance.now() - startedAt) / 60_000).toFixed(1);
}

function report(): void {
  console.log(`\n${figures.describe()}\n`);
  const { ok, failed, pending, calmPending } = chaos.people.answered;
  console.log(
    `writes through the proxies: ${ok} answered (${ok - pending} to be shown at once), ${failed} not`,
  );
  console.log(`answered before SQL had it, and said so: ${pending} (${calmPending} with nothing in the way)`);
  console.log(`cells compared with the source: ${figures.cells}`);
  console.log(`the contract: ${JSON.stringify(contractCounts(service.bases))}`);
  const { most, kept, uncertain } = service.arrivals;
  console.log(`most requests of a base in a second: ${most}`);
  for (const one of uncertain) console.log(`not certain, as the source stood still: ${one}`);
  console.log(`requests that counted from when they would have come, had the harness not kept them: ${kept}`);
  const isMissed = figures.missed > MISSED_SHARE * figures.faults;
  if (isMissed) wrong++;
  console.log(
    `faults that did not happen, and were drawn again: ${figures.missed}${isMissed ? ", WRONG" : ""}`,
  );
  const unknown = service.bases.reduce((sum, { audit }) => sum + audit.unknownClaims, 0);
  console.log(`claims of unknown origin: ${unknown}`);
  for (const [what, limitMs] of Object.entries(LIMITS)) {
    const p95 = figures.percentile(what, 95);
    const isWithin = p95 <= limitMs;
    if (!isWithin) wrong++;
    const verdict = figures.count(what) === 0 ? "none " : isWithin ? "ok   " : "WRONG";
    console.log(
      `${verdict} ${what}: p95 ${(p95 / 1000).toFixed(1)} s of ${limitMs / 1000} s, ${figures.count(what)} times`,
    );
  }
  const about = `${figures.faults} faults in ${minutes()} minutes, CHAOS_SEED=${seed}`;
  console.log(wrong > 0 ? `${about}: ${wrong} things went wrong` : `${about}: nothing went wrong`);
}
