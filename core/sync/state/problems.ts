/**
 * What keeps a base from being current although its syncs run: collected where it is found, and saved for the indicator
 * when it changes. While nothing changes, nothing is saved.
 *
 * P1. A problem stays until the same place reports that it has ended: a failure is never followed by silence.
 */

import { type BasetideError, nextStep } from "../../errors";
import { agoMs } from "../../postgres";
import type { FoundProblem, ProblemKind, Progress, SyncedBase } from "../host";

/** Times are performance.now(). */
interface Problem extends Pick<FoundProblem, "kind" | "tableId" | "name" | "message"> {
  since: number;
  nextAt: number | null;
}

interface TableName {
  id: string;
  name: string;
}

type TableKind = "missing_table" | "outdated_table";

export class Problems {
  /** Called when a problem begins, changes or ends. */
  onChange = (): void => {};
  readonly #found = new Map<string, Problem>();
  /** Why the last attempt on a table failed, by table id. */
  readonly #failures = new Map<string, { message: string; nextAt: number | null }>();
  /** The most records that a build of each table has had, by the table's name. */
  readonly #furthest = new Map<string, number>();
  /** While the first sync runs, no table is missing: its progress shows them. */
  #hasSynced = false;

  /** Continues from what was saved of the base, so that problems keep their beginnings. */
  restore(base: SyncedBase): void {
    this.#found.clear();
    const now = performance.now();
    for (const { kind, tableId, name, message, since, nextAt } of base.problems) {
      const problem = { kind, tableId, name, message, since: now - agoMs(base, since) };
      this.#found.set(keyOf(kind, tableId), {
        ...problem,
        nextAt: nextAt && now - agoMs(base, nextAt),
      });
    }
  }

  /** A sync begins. */
  begin(base: Pick<SyncedBase, "sync">): void {
    this.#hasSynced = base.sync !== null;
  }

  list(): FoundProblem[] {
    const now = performance.now();
    return [...this.#found.values()].map(({ since, nextAt, ...problem }) => ({
      ...problem,
      agoMs: now - since,
      nextInMs: nextAt === null ? null : nextAt - now,
    }));
  }

  /** The schema was applied: these tables of the source are missing in the replica, or must be rebuilt. */
  tables(missing: readonly TableName[], outdated: readonly TableName[]): void {
    if (missing.length + outdated.length === 0) this.#furthest.clear();
    this.#replace("missing_table", this.#hasSynced ? missing : []);
    this.#replace("outdated_table", outdated);
  }

  /** An attempt to build a table has failed; it is made again after `retryMs`. */
  buildFailed(tableId: string, error: BasetideError, retryMs: number | null = null): void {
    if (nextStep[error.code] === "stop") return;
    this.#buildIs(tableId, error.message, retryMs);
  }

  /** A table has been read, and cannot go live yet. */
  buildWaits(tableId: string): void {
    this.#buildIs(tableId, "Queries or transactions hold the table.", null);
  }

  buildSucceeded(tableId: string): void {
    this.#failures.delete(tableId);
  }

  settingsWait(message: string): void {
    this.#set("settings", null, "", message, null);
  }

  settingsApplied(): void {
    this.#end("settings", null);
  }

  /** Returns whether a build has got further than ever before: one that starts over has not. */
  advance({ tables }: Progress): boolean {
    let isFurther = false;
    for (const { source_name, records_done, done } of tables) {
      const reached = done ? Number.POSITIVE_INFINITY : records_done;
      if (reached <= (this.#furthest.get(source_name) ?? -1)) continue;
      this.#furthest.set(source_name, reached);
      isFurther = true;
    }
    return isFurther;
  }

  #buildIs(tableId: string, message: string, retryMs: number | null): void {
    const nextAt = retryMs === null ? null : performance.now() + retryMs;
    this.#failures.set(tableId, { message, nextAt });
    for (const kind of ["missing_table", "outdated_table"] as const) {
      const problem = this.#found.get(keyOf(kind, tableId));
      if (problem) this.#set(kind, tableId, problem.name, message, retryMs);
    }
  }

  #replace(kind: TableKind, tables: readonly TableName[]): void {
    const ids = new Set(tables.map(({ id }) => id));
    for (const problem of [...this.#found.values()]) {
      if (problem.kind === kind && !ids.has(problem.tableId!)) this.#end(kind, problem.tableId);
    }
    for (const { id, name } of tables) {
      const failure = this.#failures.get(id);
      const nextInMs = failure?.nextAt ? failure.nextAt - performance.now() : null;
      this.#set(kind, id, name, failure?.message ?? "", nextInMs);
    }
  }

  #set(
    kind: ProblemKind,
    tableId: string | null,
    name: string,
    message: string,
    retryMs: number | null,
  ): void {
    const key = keyOf(kind, tableId);
    const before = this.#found.get(key);
    const nextAt = retryMs === null ? null : performance.now() + retryMs;
    this.#found.set(key, { kind, tableId, name, message, since: before?.since ?? performance.now(), nextAt });
    const isSame = before?.name === name && before.message === message;
    if (!isSame || !isSameTime(before.nextAt, nextAt)) this.onChange();
  }

  #end(kind: ProblemKind, tableId: string | null): void {
    if (this.#found.delete(keyOf(kind, tableId))) this.onChange();
  }
}

/** Of the next attempt: one that is computed again differs a little. */
function isSameTime(one: number | null, other: number | null): boolean {
  return one === other || (one !== null && other !== null && Math.abs(one - other) < 1000);
}

function keyOf(kind: ProblemKind, tableId: string | null): string {
  return `${kind} ${tableId ?? ""}`;
}
