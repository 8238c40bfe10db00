/**
 * The long form: CHAOS_FAULTS (500) random faults, one after the other, on a service of real processes.
 *
 * `bun run chaos`. The source is behind a network of 80 ms ± 20 over TLS; CHAOS_NETWORK gives another one (`200±60`), or
 * `loopback`. CHAOS_SEED repeats a run's choices (what happens between them is the machine's), CHAOS_ONLY takes
 * only faults whose name matches it, CHAOS_LOG names a file for what ended processes said. Prints each fault and a
 * table of figures; ends with 1 when anything promised did not hold. A signal ends it after the fault under way, a
 * second one at once.
 */
import { Random } from "../../apps/sandbox/random";
import { longFaults } from "./faults";
import { Chaos, type Fault } from "./harness/chaos";
import { Figures } from "./harness/figures";
import { Service } from "./harness/service";
import type { Mode } from "./harness/watched-base";

const count = Number(process.env.CHAOS_FAULTS ?? 500);
const seed = Number(process.env.CHAOS_SEED ?? crypto.getRandomValues(new Uint32Array(1))[0]);
const modes = (process.env.CHAOS_MODES ?? "sweeps,turbo,rapid,live").split(",") as Mode[];
const only = new RegExp(process.env.CHAOS_ONLY ?? "", "i");

/** What the numbers must be, ms at the 95th of a hundred. */
const LIMITS: Record<string, number> = {
  "worker lost: its bases sync again": 20_000,
  "control plane back: used again": 5000,
  "control plane back: changes show again": 20_000,
  "replicas back: used again": 5000,
};
const GREEN_MS = 240_000;

const random = new Random(seed);
const figures = new Figures();
const faults = longFaults.filter(({ name }) => only.test(name));
console.log(`${count} faults of ${faults.length} kinds, CHAOS_SEED=${seed}, bases: ${modes.join(", ")}`);

await using service = await Service.start({
  modes,
  logFile: process.env.CHAOS_LOG,
  network: process.env.CHAOS_NETWORK,
});
// Bun's types of `process` know signals only by way of the emitter that it is.
const signals: NodeJS.EventEmitter = process;
let isToEnd = false;
for (const name of ["SIGINT", "SIGTERM"])
  signals.on(name, () => {
    if (isToEnd) void service[Symbol.asyncDispose]().then(() => process.exit(130));
    isToEnd = true;
  });
process.on("uncaughtException", (error) => {
  // A client that breaks down over what a spoilt answer holds is one that was told nothing.
  if (error.stack?.includes("node_modules/airtable/")) return;
  console.error(error);
  void service[Symbol.asyncDispose]().then(() => process.exit(1));
});
const chaos = new Chaos(service, random, figures);
chaos.people.start();
let wrong = 0;
for (let number = 1; number <= count && !isToEnd; number++) {
  const fault = pick(faults);
  const from = performance.now();
  const pendingBefore = chaos.people.answered.calmPending;
  const found = await chaos.suffer(fault);
  const pending = chaos.people.answered.calmPending - pendingBefore;
  wrong += found.length;
  console.log(
    `${String(number).padStart(4)}  ${((performance.now() - from) / 1000).toFixed(1).padStart(6)} s  ${fault.name}`,
  );
  if (pending > 0) console.log(`      answered before SQL had it, though nothing was in the way: ${pending}`);
  for (const one of found) console.log(`      WRONG: ${one}`);
}
await chaos.people.stop();
const notGreen = await service.untilGreen(GREEN_MS);
for (const one of notGreen) console.log(`WRONG: ${one}`);
wrong += notGreen.length;
report();
process.exitCode = wrong > 0 ? 1 : 0;

function pick(from: Fault[]): Fault {
  const tickets = from.flatMap((fault) => Array<Fault>(fault.weight).fill(fault));
  return random.pick(tickets);
}

function report(): void {
  console.log(`\n${figures.describe()}\n`);
  const { ok, failed, pending, calmPending } = chaos.people.answered;
  console.log(
    `writes through the proxies: ${ok} answered (${ok - pending} to be shown at once), ${failed} not`,
  );
  console.log(`answered before SQL had it, and said so: ${pending} (${calmPending} with nothing in the way)`);
  console.log(`cells compared with the source: ${figures.cells}`);
  const { most, heldBack } = service.arrivals;
  console.log(`most requests of a base in a second: ${most}`);
  console.log(`requests not counted, since a half open way of the harness had held them back: ${heldBack}`);
  const unknown = service.bases.reduce((sum, { audit }) => sum + audit.unknownClaims, 0);
  console.log(`claims of which nobody could say whose they were: ${unknown}`);
  for (const [what, limitMs] of Object.entries(LIMITS)) {
    const p95 = figures.percentile(what, 95);
    const isWithin = p95 <= limitMs;
    if (!isWithin) wrong++;
    console.log(
      `${isWithin ? "ok   " : "WRONG"} ${what}: p95 ${(p95 / 1000).toFixed(1)} s of ${limitMs / 1000} s`,
    );
  }
  console.log(wrong > 0 ? `${wrong} things went wrong` : `${figures.faults} faults, nothing went wrong`);
}
