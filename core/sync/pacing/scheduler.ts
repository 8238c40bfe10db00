/**
 * Runs what is due for a base: records to read, tables to poll, to sweep or to build, the schema to check, settings to
 * apply.
 *
 * Each item has a failure of its own, and its own next try: one that fails delays no other, and gives its place to the
 * next. A mode says which items there are; how they run is the same in every mode.
 */
import type { Notifier } from "../../async";
import { asBasetideError, type BasetideError } from "../../errors";
import { isWholeBases, itemPauseMs } from "./failure-pause";
import { TICK_MS } from "./limits";

/**
 * Tables of one kind that are worked on at once: the rate should be the limit, and not the source's response time, and no
 * table should wait behind another.
 */
export const MOST_TABLES = 4;

/** Something to do for the base. */
export interface DueItem {
  /** Unique within its kind. */
  id: string;
  /** Time until it is due, ms; absent: it is due now. */
  dueInMs?: number;
  /** Does it. Returns false if it could not be done yet, and must be tried again. */
  run(): Promise<unknown>;
}

/** The items of one kind. */
export interface WorkKind {
  /** Returns the items that there are now, the most urgent first. Called often. */
  items(): Iterable<DueItem>;
  /** How many run at once. */
  most: number;
  /** The items are tables, by id: a failure that is a table's own is recorded with it. */
  tables?: TableWork;
  /** Returns whether a running item leaves its place to others: it waits. */
  isAside?(id: string): boolean;
  /** Called when an item has failed, with the time until its next try. */
  onFailure?(id: string, error: BasetideError, pauseMs: number): Promise<void> | void;
}

/** The failures of tables, and how they are judged. */
export interface TableWork {
  failing: { has(id: string): boolean; dueInMs(id: string): number; read(id: string): unknown };
  /**
   * Called before a table is worked on. The returned function records why that has failed. It returns undefined if the
   * table can be worked on again at once, and throws an error of the whole base.
   */
  begin(id: string): (caught: unknown) => Promise<BasetideError | undefined>;
}

interface Setting {
  stop: AbortSignal;
  /** Notified when there may be more to do. */
  wake: Notifier;
  /** Called with an error of the whole base; absent: no item ends the others. */
  end?: (error: unknown) => void;
  /** Called whenever items are looked for. */
  onTurn?: () => void;
  tickMs?: number;
}

interface KindState {
  running: Map<string, Promise<void>>;
  /** Items that have failed: how often in a row, and when each is due again (performance.now()). */
  failed: Map<string, { times: number; until: number }>;
}

export class Scheduler {
  readonly #setting: Setting;
  readonly #kinds = new Map<WorkKind, KindState>();

  constructor(setting: Setting, kinds: WorkKind[]) {
    this.#setting = setting;
    for (const kind of kinds) this.#kinds.set(kind, { running: new Map(), failed: new Map() });
  }

  /** Returns the ids of the items of this kind that are running. */
  running(kind: WorkKind): string[] {
    return [...(this.#kinds.get(kind)?.running.keys() ?? [])];
  }

  /** Waits for the items of this kind that are running. */
  async idle(kind: WorkKind): Promise<void> {
    await Promise.all(this.#kinds.get(kind)?.running.values() ?? []);
  }

  /** Runs items until `stop` aborts. @throws BasetideError `sync_stopped`, when all of them have ended */
  async run(): Promise<void> {
    const { stop, wake, onTurn, tickMs = TICK_MS } = this.#setting;
    try {
      for (;;) {
        stop.throwIfAborted();
        let nextMs = tickMs;
        for (const [kind, state] of this.#kinds)
          for (const item of kind.items()) nextMs = Math.min(nextMs, this.#offer(kind, state, item));
        onTurn?.();
        await wake.wait(nextMs, stop);
      }
    } finally {
      await Promise.all([...this.#kinds.keys()].map((kind) => this.idle(kind)));
    }
  }

  /** Starts the item if it is due and has a place. @returns how soon to look at it again, ms */
  #offer(kind: WorkKind, state: KindState, item: DueItem): number {
    const { wake, end } = this.#setting;
    const { running, failed } = state;
    if (running.has(item.id)) return Infinity;
    const dueInMs = Math.max(
      item.dueInMs ?? 0,
      (failed.get(item.id)?.until ?? 0) - performance.now(),
      kind.tables?.failing.dueInMs(item.id) ?? 0,
    );
    if (dueInMs > 0) return Math.max(1, dueInMs);
    const isAside = (id: string) => kind.tables?.failing.has(id) || kind.isAside?.(id);
    if ([...running.keys()].filter((id) => !isAside(id)).length >= kind.most) return Infinity;
    const work = this.#run(kind, failed, item)
      .catch((error: unknown) => end?.(error))
      .finally(() => {
        running.delete(item.id);
        // Not at once: an item that ends without any wait, and is due again, must not keep this process from all else.
        setImmediate(() => wake.notify());
      });
    running.set(item.id, work);
    return Infinity;
  }

  async #run(kind: WorkKind, failed: KindState["failed"], { id, run }: DueItem): Promise<void> {
    const { tables, onFailure } = kind;
    const judge = tables?.begin(id);
    let error: BasetideError | undefined;
    try {
      if ((await run()) !== false) {
        failed.delete(id);
        tables?.failing.read(id);
        return;
      }
    } catch (caught) {
      error = judge ? await judge(caught) : asBasetideError(caught);
      if (!error) return;
      if (!judge && this.#setting.end && isWholeBases(error)) throw error;
    }
    const times = (failed.get(id)?.times ?? 0) + 1;
    const pauseMs = tables?.failing.has(id) ? tables.failing.dueInMs(id) : itemPauseMs(times, error);
    failed.set(id, { times, until: performance.now() + pauseMs });
    if (error) await onFailure?.(id, error, pauseMs);
  }
}

/** One item that is due again and again, `everyMs` after it last began. */
export function periodic(run: () => Promise<unknown>, everyMs: () => number = () => TICK_MS): WorkKind {
  let begunAt = Number.NEGATIVE_INFINITY;
  const begin = () => {
    begunAt = performance.now();
    return run();
  };
  return {
    most: 1,
    items: () => [{ id: "", dueInMs: begunAt + everyMs() - performance.now(), run: begin }],
  };
}
