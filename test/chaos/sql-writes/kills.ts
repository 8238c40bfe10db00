/** Kills what takes part in SQL writes, at chosen points, while clients write; then compares what came of it. */
import { Random } from "../../../apps/sandbox/random";
import { until } from "../../support/poll";
import { type CallPoint, startKillScene, type WritableBase } from "./kill-scene";
import { KillWriter } from "./kill-writer";

/** All rows have a result so long after the last kill, ms. */
const SETTLED_MS = 60_000;
/** A point that no transaction reaches in this time is not waited for, ms. */
const PATIENCE_MS = 20_000;
const HEALED_MS = 60_000;
/** The longest time for which a process stands still, ms: longer than a proxy holds a change set without renewing that. */
const FROZEN_MS = 20_000;

const points = ["any time", "before COMMIT", "before the call", "after the call"] as const;
/** Of queued writes: the change set is stored, and the outbox does not say so yet. */
const BETWEEN = "before it is recorded as taken";
type Point = (typeof points)[number] | typeof BETWEEN;

interface KillRun {
  kills: number;
  bases: number;
  isQueued: boolean;
  seed: number;
  /** Kills between two comparisons. */
  wave: number;
  upstreamTimeoutMs: number;
  print(line: string): void;
}

export interface KillReport {
  kills: Record<string, number>;
  wrong: string[];
  told: Record<string, number>;
  /** Rows of transactions. */
  results: Record<string, number>;
  errors: Record<string, number>;
  /** The longest time from the last kill until all rows had a result, ms. */
  settledMs: number;
}

export async function killAtRandom(run: KillRun): Promise<KillReport> {
  const random = new Random(run.seed);
  await using scene = await startKillScene(run);
  const { proxy, relay, replica } = scene;
  const writers = scene.bases.map((base) => new KillWriter(scene, base, new Random(random.int(0, 2 ** 31))));
  const report: KillReport = { kills: {}, wrong: [], told: {}, results: {}, errors: {}, settledMs: 0 };

  const victims: Record<string, (sourceBaseId: string) => Promise<void>> = {
    client: async (sourceBaseId) =>
      scene.bases.find((base) => base.sourceBaseId === sourceBaseId)!.line.reset(),
    endpoint: () => proxy.kill(),
    "frozen endpoint": async () => {
      proxy.freeze();
      await Bun.sleep(random.int(0, FROZEN_MS));
      proxy.thaw();
    },
    "server's connections": () => scene.terminateBackends(),
    "server process": async () => void replica.killBackend(),
    server: async () => {
      await replica.kill();
      await replica.start();
    },
  };

  async function kill(victim: string, point: Point): Promise<boolean> {
    const act = victims[victim];
    const writer = random.pick(writers);
    const { sourceBaseId } = writer.base;
    if (point === BETWEEN) return atStored(writer.base, () => act!(sourceBaseId));
    if (point === "before COMMIT") {
      await writer.beforeCommit(() => act!(sourceBaseId));
      return true;
    }
    if (point === "any time") {
      await Bun.sleep(random.int(0, 500));
      await act!(sourceBaseId);
      return true;
    }
    const at: CallPoint = point === "before the call" ? "received" : "done";
    return relay.atNextWrite(at, PATIENCE_MS, async (call) => {
      if (act) await act(call.sourceBaseId);
      // What the killed process had sent may still arrive.
      if (!act || (victim === "endpoint" && at === "received" && random.chance(0.5))) call.drop();
    });
  }

  /** Runs `work` when a set is stored whose transaction cannot be recorded as taken meanwhile. */
  async function atStored(base: WritableBase, work: () => Promise<void>): Promise<boolean> {
    const { db } = scene.fleet.ctx;
    const asked = (statement: string, what: string) =>
      until(() => scene.ask(base, statement).then(() => true), {
        what,
        timeoutMs: HEALED_MS,
        retryErrors: true,
      });
    await asked(
      `create or replace function write_own.hold() returns trigger language plpgsql as 'begin raise exception ''held''; end';
       create or replace trigger hold before update on write_own.outbox for each row when (new.state = 'taken')
         execute function write_own.hold()`,
      "transactions are not recorded as taken",
    );
    const isStored = async () => {
      const queued = await scene.ask<{ set_id: string }>(
        base,
        "select set_id from write_own.outbox where state = 'queued'",
      );
      const sets = queued.map(({ set_id }) => set_id);
      return (await db`select from change_sets where id = any (${sets})`).length > 0;
    };
    try {
      await until(isStored, { what: "a set is stored", timeoutMs: PATIENCE_MS, retryErrors: true });
      await work();
      return true;
    } catch {
      return false;
    } finally {
      await asked("drop trigger if exists hold on write_own.outbox", "they are recorded again");
    }
  }

  async function settle(): Promise<void> {
    const from = performance.now();
    await Promise.all(writers.map((writer) => writer.stop()));
    await until(
      async () => {
        const open = await Promise.all(writers.map((writer) => writer.open()));
        return open.every((count) => count === 0);
      },
      { what: "all rows have a result", timeoutMs: SETTLED_MS, retryErrors: true },
    ).catch(({ message }: Error) => report.wrong.push(`UNKNOWN: ${message}`));
    report.settledMs = Math.max(report.settledMs, performance.now() - from);
    for (const writer of writers) report.wrong.push(...(await writer.compare()));
    report.wrong.push(...proxy.faults.splice(0));
  }

  /** Starts the clients, and waits until each has committed: what is committed can be lost. */
  async function start(): Promise<void> {
    const before = writers.map(({ told }) => told.committed);
    for (const writer of writers) writer.start();
    await until(() => writers.every(({ told }, nth) => told.committed > before[nth]!), {
      what: "every client has committed a transaction",
      timeoutMs: HEALED_MS,
    });
  }

  await start();
  for (let count = 0; count < run.kills; ) {
    const victim = random.pick([...Object.keys(victims), "Airtable's answer"]);
    const reached: readonly Point[] = run.isQueued ? [...points, BETWEEN] : points;
    const point = random.pick(victim in victims ? reached : points.slice(2));
    const from = performance.now();
    const isDone = await kill(victim, point);
    await until(async () => replica.isUp && (await proxy.isReady()), {
      what: "all is up again",
      timeoutMs: HEALED_MS,
    });
    const what = `${victim}, ${point}`;
    run.print(
      `${String(count + 1).padStart(4)} ${((performance.now() - from) / 1000).toFixed(1)} s ${what}${isDone ? "" : ": no write came"}`,
    );
    if (!isDone) continue;
    report.kills[what] = (report.kills[what] ?? 0) + 1;
    if (++count % run.wave > 0 && count < run.kills) continue;
    await settle();
    for (const one of report.wrong) run.print(`     WRONG ${one}`);
    if (count < run.kills) await start();
  }
  for (const { told, results, errors } of writers) {
    add(report.told, told);
    add(report.results, results);
    add(report.errors, Object.fromEntries(errors));
  }
  return report;
}

function add(sums: Record<string, number>, more: Record<string, number>): void {
  for (const [key, count] of Object.entries(more)) sums[key] = (sums[key] ?? 0) + count;
}
