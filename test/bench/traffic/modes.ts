/**
 * The loads of `bench traffic`: each mode prepares its bases, then runs for a time and reports its findings, besides
 * the arrivals, which the source counts.
 */
import { updateSettings } from "../../../core/control/bases";
import { quantile } from "../../support/quantile";
import { recovery } from "./recovery";
import type { Connected, Scene } from "./scene";

export interface ModeOptions {
  durationMs: number;
  /** The least share of five a second that a Turbo sweep must use. */
  leastUsed: number;
}

export interface Figure {
  what: string;
  measured: string;
  limit: string;
  isWithin: boolean;
}

export interface Result {
  /** Source ids of the bases whose arrivals count; `what` distinguishes several. */
  bases: { id: string; what?: string; refusedOnPurpose?: number }[];
  figures: Figure[];
}

/** Prepares the mode. The returned function is called when all modes are ready. */
export type Mode = (scene: Scene, options: ModeOptions) => Promise<() => Promise<Result>>;
export type ModeName = keyof typeof modes;

const PER_SECOND = 5;
const CLIENT_EVERY_MS = 1000;
const LONGER_WAIT_MS = 250;
const EDIT_EVERY_MS = 1500;
const BURST_CLIENTS = 12;
const SILENCE_MS = 30_000;
/** Clients that together request ten a second; with a sync's five, three times the limit. */
const CROWD = 4;
const CROWD_EVERY_MS = 400;

/** A Turbo sweep alone: how much of the limit it uses. */
const turbo: Mode = async (scene, { durationMs, leastUsed }) => {
  const { base } = await scene.connect({ turbo: true });
  return async () => {
    const seconds = await elapsed(() => Bun.sleep(durationMs));
    return {
      bases: [{ id: base.sourceBaseId }],
      figures: [await usedShare(scene, base.sourceBaseId, seconds, leastUsed)],
    };
  };
};

/** A client that sends a request once a second, next to a Turbo sweep and without one. */
const client: Mode = async (scene, { durationMs }) => {
  const [next, alone] = await Promise.all([scene.connect({ turbo: true }), paused(scene)]);
  return async () => {
    const [waits, waitsAlone] = await Promise.all(
      [next, alone].map((connected) => repeat(durationMs, CLIENT_EVERY_MS, (turn) => connected.ask(turn))),
    );
    const [p95, p95Alone] = [waits, waitsAlone].map((answers) =>
      quantile(
        answers!.map(({ ms }) => ms),
        0.95,
      ),
    );
    const longer = p95! - p95Alone!;
    return {
      bases: [
        { id: next.base.sourceBaseId, what: "next to a Turbo sweep" },
        { id: alone.base.sourceBaseId, what: "without a sync" },
      ],
      figures: [
        {
          what: `client p95 next to a Turbo sweep (${p95!.toFixed(0)} ms) beyond that without a sync (${p95Alone!.toFixed(0)} ms)`,
          measured: `${longer.toFixed(0)} ms`,
          limit: `${LONGER_WAIT_MS} ms`,
          isWithin: longer <= LONGER_WAIT_MS,
        },
        answered("clients' requests not answered with 200", [...waits!, ...waitsAlone!]),
      ],
    };
  };
};

/** Rapid mode with Turbo, while users edit. */
const rapid: Mode = async (scene, { durationMs }) => {
  const connected = await scene.connect({ turbo: true, rapid: true }, (base) => base.sync?.kind === "rapid");
  return () => edited(scene, connected, durationMs);
};

/** Live mode, while users edit and a client sends requests. */
const live: Mode = async (scene, { durationMs }) => {
  const connected = await scene.connect(
    { turbo: true, live: true },
    (base) => base.sync !== null && base.live?.state === "on",
  );
  return async () => {
    const [result, answers] = await Promise.all([
      edited(scene, connected, durationMs),
      repeat(durationMs, CLIENT_EVERY_MS, (turn) => connected.ask(turn)),
    ]);
    return { ...result, figures: [answered("live mode: client's requests not answered with 200", answers)] };
  };
};

/** Twelve clients at once through two proxies, after half a minute without requests each time. */
const bursts: Mode = async (scene, { durationMs }) => {
  const { base, ask } = await paused(scene);
  return async () => {
    const answers: Awaited<ReturnType<typeof ask>>[] = [];
    const untilMs = performance.now() + durationMs;
    while (performance.now() + SILENCE_MS <= untilMs) {
      await Bun.sleep(SILENCE_MS);
      answers.push(...(await Promise.all(Array.from({ length: BURST_CLIENTS }, (_, turn) => ask(turn)))));
    }
    const waits = answers.map(({ ms }) => ms);
    return {
      bases: [{ id: base.sourceBaseId }],
      figures: [
        {
          what: `bursts of ${BURST_CLIENTS}: p95 (median ${quantile(waits, 0.5).toFixed(0)} ms, longest ${quantile(waits, 1).toFixed(0)} ms)`,
          measured: `${quantile(waits, 0.95).toFixed(0)} ms`,
          limit: "",
          isWithin: true,
        },
        answered("bursts: requests not answered with 200", answers),
      ],
    };
  };
};

/** A Turbo sweep, and clients that together request three times the limit. */
const crowd: Mode = async (scene, { durationMs, leastUsed }) => {
  const { base, ask } = await scene.connect({ turbo: true });
  return async () => {
    let answers: Awaited<ReturnType<typeof ask>>[] = [];
    const seconds = await elapsed(async () => {
      const clients = Array.from({ length: CROWD }, (_, index) =>
        repeat(durationMs, CROWD_EVERY_MS, () => ask(index)),
      );
      answers = (await Promise.all(clients)).flat();
    });
    const used = await usedShare(scene, base.sourceBaseId, seconds, leastUsed);
    return {
      bases: [{ id: base.sourceBaseId }],
      figures: [
        { ...used, what: "share of five a second used at three times the limit" },
        answered("three times the limit: clients' requests not answered with 200", answers),
      ],
    };
  };
};

export const modes = { turbo, client, rapid, live, bursts, crowd, recovery };

async function paused(scene: Scene): Promise<Connected> {
  const connected = await scene.connect({});
  await updateSettings(scene.fleet.ctx, connected.base, { paused: true });
  return connected;
}

/** Edits a record now and then until the time is over. */
async function edited({ source }: Scene, { base }: Connected, durationMs: number): Promise<Result> {
  const path = `bases/${base.sourceBaseId}/tables/Projects/records`;
  await repeat(durationMs, EDIT_EVERY_MS, (turn) =>
    source.call("POST", path, { records: [{ fields: { Name: `edit ${turn}` } }] }),
  );
  return { bases: [{ id: base.sourceBaseId }], figures: [] };
}

async function usedShare({ source }: Scene, id: string, seconds: number, least: number): Promise<Figure> {
  const { bases } = await source.logSummary();
  const used = (bases[id]?.requests ?? 0) / (seconds * PER_SECOND);
  return {
    what: "share of five a second used by a Turbo sweep",
    measured: used.toFixed(3),
    limit: `at least ${least}`,
    isWithin: used >= least,
  };
}

function answered(what: string, answers: { status: number }[]): Figure {
  const failed = answers.filter(({ status }) => status !== 200).length;
  return { what, measured: `${failed} of ${answers.length}`, limit: "0", isWithin: failed === 0 };
}

/** Calls `work` every `gapMs`, or as soon as the last call has ended if that is later, until the time is over. */
async function repeat<T>(
  durationMs: number,
  gapMs: number,
  work: (turn: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  const untilMs = performance.now() + durationMs;
  for (let turn = 0; performance.now() < untilMs; turn++) {
    const next = performance.now() + gapMs;
    results.push(await work(turn));
    await Bun.sleep(Math.max(0, next - performance.now()));
  }
  return results;
}

/** @returns seconds */
async function elapsed(work: () => Promise<unknown>): Promise<number> {
  const fromMs = performance.now();
  await work();
  return (performance.now() - fromMs) / 1000;
}
