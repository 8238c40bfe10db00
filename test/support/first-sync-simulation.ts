/** A first sync in virtual time: its calls, its answers, and what the page would show of the time that is left. */
import { Random } from "../../apps/sandbox/random";
import type { Progress } from "../../core/control/bases";
import { timeLeft } from "../../core/control/status";
import { sample } from "../../core/source/airtable/facts";
import { sizeOf } from "../../core/source/table-size";

const PAGE = 100;
const START = Date.parse("2026-11-10T00:00:00Z");

const random = new Random(1);
const { share: SAMPLED } = sample(Array.from({ length: PAGE }, () => random.id("rec")));

type TableProgress = Progress["tables"][number];

function setSize(row: TableProgress, matched: number): void {
  const { records, error } = sizeOf(matched, SAMPLED);
  row.records_estimate = records;
  row.records_error = error;
}

export interface SimulatedSync {
  sizes: number[];
  /** Calls a second that the sync may make. */
  share: number;
  latencyMs: number;
  seed: number;
  /** Whether the sizes were estimated before the sync. */
  isMeasured?: boolean;
}

/** When a range was shown, and the ends that it said, ms after the start. */
export interface ShownRange {
  atMs: number;
  leastMs: number;
  mostMs: number;
}

/**
 * Reads the tables as a first sync does: a call each `1000 / share` ms at most, to the table that is probably the
 * smallest first; samples take every other call while there are any.
 */
export function simulateFirstSync({ sizes, share, latencyMs, seed, isMeasured = false }: SimulatedSync): {
  ranges: ShownRange[];
  endMs: number;
  order: number[];
} {
  const random = new Random(seed);
  const sampledOf = (size: number) =>
    Array.from({ length: size }).filter(() => random.next() < SAMPLED).length;
  const tables = sizes.map((size) => ({
    size,
    pages: 0,
    freeAtMs: 0,
    doneAtMs: Number.POSITIVE_INFINITY,
    row: {
      name: "t",
      source_name: "T",
      records_done: 0,
      records_estimate: null,
      done: false,
    } as TableProgress,
  }));
  if (isMeasured) {
    for (const { row, size } of tables.slice(0, 10)) {
      if (size > PAGE) setSize(row, sampledOf(size));
      else row.records_estimate = size;
    }
  }
  const progress: Progress = {
    kind: "first",
    started_at: new Date(START).toISOString(),
    pages: 0,
    calls: 1,
    tables: tables.map(({ row }) => row),
  };
  const samples: { at: number; matched: number; pagesLeft: number; table: (typeof tables)[number] }[] = [];
  const events: { at: number; apply: () => void }[] = [];
  let isSampleNext = false;
  const ranges: ShownRange[] = [];
  const order: number[] = [];
  let ms = 1000 / share;
  const settle = (until: number) => {
    for (;;) {
      const next = events.toSorted((a, b) => a.at - b.at)[0];
      if (!next || next.at > until) return;
      events.splice(events.indexOf(next), 1);
      next.apply();
      look(next.at);
    }
  };
  const look = (at: number) => {
    if (tables.every(({ row }) => row.done)) return;
    const range = timeLeft(progress, share, new Date(START + at));
    if (range) ranges.push({ atMs: at, leastMs: at + range.least, mostMs: at + range.most });
  };
  const pagesOf = ({ pages, row }: (typeof tables)[number]) =>
    Math.max(pages, (row.records_estimate ?? 0) / PAGE);
  const answerMs = () => latencyMs * (0.7 + 0.9 * random.next());
  for (let step = 0; step < 20_000; step++) {
    settle(ms);
    look(ms);
    if (tables.every(({ row }) => row.done)) break;
    const due = samples.filter(({ at }) => at <= ms);
    const open = tables.filter(
      ({ size, pages, freeAtMs }) => pages * PAGE < Math.max(1, size) && freeAtMs <= ms,
    );
    const at = ms + answerMs();
    if (due.length > 0 && (isSampleNext || open.length === 0)) {
      const asked = due[0]!;
      samples.splice(samples.indexOf(asked), 1);
      isSampleNext = false;
      progress.calls!++;
      events.push({
        at,
        apply() {
          const pagesLeft = asked.pagesLeft - 1;
          if (pagesLeft > 0) samples.push({ ...asked, at, pagesLeft });
          else setSize(asked.table.row, asked.matched);
        },
      });
    } else if (open.length > 0) {
      const table = open.reduce((least, one) => (pagesOf(one) < pagesOf(least) ? one : least));
      isSampleNext = true;
      table.freeAtMs = at;
      table.pages++;
      const { pages } = table;
      progress.calls!++;
      events.push({
        at,
        apply() {
          progress.pages!++;
          table.row.records_done = Math.min(table.size, pages * PAGE);
          if (pages === 1 && table.size > PAGE && table.row.records_estimate === null) {
            const matched = sampledOf(table.size);
            samples.push({ at, matched, pagesLeft: Math.max(1, Math.ceil(matched / PAGE)), table });
          }
          if (table.row.records_done < table.size) return;
          // A schema check, and the move.
          events.push({
            at: at + answerMs() + 150,
            apply: () => {
              table.row.done = true;
              table.doneAtMs = at + 400;
              order.push(tables.indexOf(table));
            },
          });
        },
      });
    } else {
      ms += 20;
      continue;
    }
    ms += 1000 / share;
  }
  return { ranges, endMs: Math.max(...tables.map(({ doneAtMs }) => doneAtMs)), order };
}

export const shapes = {
  equal: (tables: number, records: number) =>
    Array.from({ length: tables }, () => Math.ceil(records / tables)),
  halving: (tables: number, records: number) =>
    Array.from({ length: tables }, (_, nth) => Math.ceil(records / 2 ** (nth + 1))),
  mixed: (tables: number, records: number, random: Random) => {
    const parts = Array.from({ length: tables }, () => Math.exp(3 * random.next()));
    const sum = parts.reduce((one, other) => one + other, 0);
    return parts.map((part) => Math.ceil((records * part) / sum));
  },
};
