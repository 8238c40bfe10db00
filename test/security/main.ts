/**
 * The long form of the attacks: repeats each one for its time while a canary works, and prints one table at the end.
 *
 *     bun run attack [--only <name>] [--rounds <n>] [--pairs <n>] [--seed <s>] [--minutes <m>]
 *
 * `--only` selects the attacks whose name matches, `--rounds` is how many rounds a run of one has (2), `--pairs` the
 * least number of times it is on and off (6), `--minutes` its least duration (0.5), `--seed` repeats the random
 * choices. ATTACK_LOG names a file for the output of ended processes. Exits with 1 if an attempt succeeded or a limit
 * was exceeded. Takes 50 minutes or more on two cores.
 *
 * An attack is on and off in turn, and the canary's calls during it are compared with those in between. At the start,
 * in the middle and at the end, an ordinary tenant works instead: an attack may slow the canary by 20 % more than that
 * (see latency.ts). At the start and at the end there are also windows without any load: their differences are the
 * machine's own. For the priorities of the processes, see own-place.ts.
 */
import { parseArgs } from "node:util";
import { Random } from "../../apps/sandbox/random";
import { type Attack, Tally } from "./attack";
import { attacks, unpromised } from "./attacks";
import { Canary } from "./canary";
import { cpuMeter } from "./cpu";
import { controlOf, isUncertain, latencies } from "./latency";
import { ordinary } from "./ordinary";
import { equalToOthers, goFirst, keepToLastCore, stepAside } from "./own-place";
import { broken, cpuByPart, legend, type Row, table, unlimited } from "./report";
import { Service } from "./service";

/** How many times more often than `--pairs` an attack is on and off if that may decide whether it slows the canary. */
const MAX_TIMES = 2.5;
const MAX_NOTES = 8;
/** A broken service must recover within this time before the next attack, ms. */
const CALM_MS = 45_000;

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "" },
    rounds: { type: "string", default: "2" },
    pairs: { type: "string", default: "6" },
    seed: { type: "string", default: String(crypto.getRandomValues(new Uint32Array(1))[0]) },
    minutes: { type: "string", default: "0.5" },
  },
});
const only = new RegExp(values.only, "i");
const [rounds, leastPairs] = [Number(values.rounds), Number(values.pairs)];
const windowMs = (Number(values.minutes) * 60_000) / leastPairs;

/** No attack: shows the accuracy of the figures. */
const nothing: Attack = { name: "(none)", finding: "", run: async () => new Tally() };

const chosen = [...attacks, ...unpromised].filter(({ name }) => only.test(name));
const half = Math.ceil(chosen.length / 2);
const began = performance.now();
console.log(
  `${chosen.length} attacks, at least ${leastPairs} × ${rounds} rounds and at least ${values.minutes} min each, --seed ${values.seed}`,
);
await using service = await Service.start(process.env.ATTACK_LOG ? { logFile: process.env.ATTACK_LOG } : {});
await service.closeOff();
await using canary = await Canary.start(service);
const meter = await cpuMeter(service, process.pid);
goFirst([service.sandbox.pid, canary.pid]);
keepToLastCore(meter.processesOf("replicas"));
stepAside(meter.processesOf("customers' server"));
// In Bun's types, only the event emitter that `process` extends knows signals.
const signals: NodeJS.EventEmitter = process;
let isToEnd = false;
for (const name of ["SIGINT", "SIGTERM"]) signals.on(name, () => (isToEnd = true));
process.on("uncaughtException", (error) => console.error("attacker:", error));

const rows: Row[] = [];
const controls = [nothing, ordinary];
for (const attack of [...controls, ...chosen.slice(0, half), ordinary, ...chosen.slice(half), ...controls]) {
  if (isToEnd) break;
  const row = await suffer(attack);
  rows.push(row);
  console.log(`\n${table([row])}\n  CPU of one core: ${cpuByPart(row)}`);
  for (const note of row.result.notes) console.log(`  ${note}`);
}
process.exitCode = conclude() ? 0 : 1;

/** @returns whether every attempt was refused, and no limit exceeded */
function conclude(): boolean {
  const attacked = rows.filter(({ attack }) => !controls.some((control) => control === attack));
  const wrong = attacked.flatMap((row) => broken(row, control()).map((one) => `${row.attack.name}: ${one}`));
  const sum = (of: Row[], what: "attempted" | "succeeded") =>
    of.reduce((total, { result }) => total + result[what], 0);
  const others = attacked.filter(({ attack }) => attack.name !== "half-sent");
  console.log(`\n${table(rows)}\n\n${legend(control())}\n`);
  for (const row of attacked)
    for (const one of unlimited(row, control())) console.log(`NOT PROMISED: ${row.attack.name}: ${one}`);
  for (const one of wrong) console.log(`WRONG: ${one}`);
  console.log(
    `${sum(attacked, "attempted")} attempts, ${sum(others, "attempted")} without half-sent requests; ` +
      `${sum(attacked, "succeeded")} succeeded; ${wrong.length} limits broken ` +
      `(--seed ${values.seed}, ${((performance.now() - began) / 60_000).toFixed(1)} min)`,
  );
  return wrong.length === 0;
}

async function suffer(attack: Attack): Promise<Row> {
  await calm();
  const result = new Tally();
  const pairs: Row["pairs"] = [];
  const start = await canary.settle();
  let seconds = 0;
  const isEnough = () =>
    pairs.length >= leastPairs && (pairs.length >= MAX_TIMES * leastPairs || !isUndecided(attack, pairs));
  for (let pair = 0; !isToEnd && !isEnough(); pair++) {
    meter.take();
    await Bun.sleep(windowMs);
    const [before, idle] = [await canary.take(), meter.take()];
    await attackFor(attack, pair, result);
    const [during, busy] = [await canary.take(), meter.take()];
    seconds += busy.seconds;
    pairs.push({ before, during, cpu: { before: idle, during: busy } });
  }
  if (attack.patiently && !isToEnd)
    add(result, await attack.patiently(service, new Random(`${values.seed} ${attack.name}`)));
  const end = await canary.settle();
  const [calls, counted] = [end.calls - start.calls, end.counted - start.counted];
  return { attack, result, pairs, seconds, calls, counted, deaths: service.takeAllDeaths() };
}

/** Whether the windows differ so much that more of them may change the result. */
function isUndecided({ mayTakeLonger }: Attack, pairs: Row["pairs"]): boolean {
  return latencies(pairs).some(
    (latency) => !mayTakeLonger?.includes(latency.kind) && isUncertain(latency, control()),
  );
}

function control() {
  return controlOf(rows.filter(({ attack }) => attack === ordinary).map(({ pairs }) => pairs));
}

/** For a window's time and at least once. */
async function attackFor(attack: Attack, pair: number, into: Tally): Promise<void> {
  const from = performance.now();
  try {
    for (let run = 0; !isToEnd && (run === 0 || performance.now() < from + windowMs); run++) {
      if (attack === nothing) await Bun.sleep(windowMs);
      const random = new Random(`${values.seed} ${attack.name} ${pair} ${run}`);
      add(into, await attack.run(service, rounds, random));
    }
  } catch (error) {
    // An attack that cannot continue does not count as refused.
    into.addMany(1, 1, `the attack broke off: ${error instanceof Error ? error.message : error}`);
  }
}

function add(into: Tally, one: { attempted: number; succeeded: number; notes: string[] }): void {
  into.addMany(one.attempted, one.succeeded, "");
  for (const note of one.notes) if (into.notes.length < MAX_NOTES) into.notes.push(note);
}

/** Waits until the canary's calls succeed again: the damage of one attack must not count for the next. */
async function calm(): Promise<void> {
  const deadline = performance.now() + CALM_MS;
  await service.recover().catch((error: Error) => console.log(`  ${error.message}`));
  equalToOthers(service.processes.flatMap(({ pid }) => (pid === undefined ? [] : [pid])));
  while (performance.now() < deadline) {
    await canary.take();
    await Bun.sleep(1500);
    const { failed } = await canary.take();
    if (failed === 0) return;
  }
}
