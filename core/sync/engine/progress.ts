/** The progress of a first sync or a rebuild, table by table. */

import type { TableSpec } from "../../replica";
import type { TableSize } from "../../source";
import type { Progress, RunReport, TableCount } from "../host";

export class ProgressBoard {
  #progress: Progress;
  #rows: Map<string, Progress["tables"][number]>;
  #onChange: (progress: Progress) => void;
  #known: ReadonlyMap<string, TableSize>;
  #counts: { requests: number } | undefined;

  /**
   * @param counts the requests of the sync; absent if they are not for these tables alone
   * @param rebuild the tables that are built, by id; a sweep shows no progress
   * @param known how many records the tables have, as far as that is known, by id
   */
  constructor(
    report: Pick<RunReport, "kind" | "startedAt">,
    rebuild: Map<string, TableSpec>,
    known: ReadonlyMap<string, TableSize>,
    onChange: (progress: Progress) => void,
    counts?: { requests: number },
  ) {
    this.#known = known;
    this.#counts = counts;
    this.#rows = new Map([...rebuild].map(([id, spec]) => [id, this.#row(spec)]));
    this.#progress = {
      kind: report.kind,
      started_at: report.startedAt.toISOString(),
      pages: 0,
      tables: [...this.#rows.values()],
    };
    this.#onChange = onChange;
    if (rebuild.size > 0) this.#changed();
  }

  /** Adds tables that are live already. */
  addDone(specs: TableSpec[]): void {
    for (const spec of specs) {
      if (!this.#rows.has(spec.tableId)) this.#rows.set(spec.tableId, { ...this.#row(spec), done: true });
    }
    this.#progress.tables = [...this.#rows.values()];
  }

  /** Adds a table that must be built, too, or starts its progress over. */
  begin(spec: TableSpec): void {
    this.#rows.set(spec.tableId, this.#row(spec));
    this.#progress.tables = [...this.#rows.values()];
    this.#changed();
  }

  #row(spec: TableSpec): Progress["tables"][number] {
    const { records = null, error = 0 } = this.#known.get(spec.tableId) ?? {};
    return {
      name: spec.name,
      source_name: spec.sourceName,
      records_done: 0,
      records_estimate: records,
      ...(error > 0 && { records_error: error }),
      done: false,
    };
  }

  records(tableId: string, recordsDone: number): void {
    if (this.#rows.has(tableId)) this.#progress.pages!++;
    this.#change(tableId, { records_done: recordsDone });
  }

  /** Shows how large the table probably is. */
  estimated(tableId: string, { records, error }: TableSize): void {
    this.#change(tableId, { records_estimate: records, records_error: error });
  }

  /** Shows that the table has been read, and that queries hold the live table. */
  waiting(tableId: string): void {
    this.#change(tableId, { waiting: true });
  }

  done(tableId: string): void {
    delete this.#rows.get(tableId)?.waiting;
    this.#change(tableId, { done: true });
  }

  #change(tableId: string, facts: Partial<Progress["tables"][number]>): void {
    const row = this.#rows.get(tableId);
    if (!row) return;
    Object.assign(row, facts);
    this.#changed();
  }

  #changed(): void {
    if (this.#counts) this.#progress.calls = this.#counts.requests;
    this.#onChange(this.#progress);
  }
}

/** Returns how large tables were when they were last read, by id. */
export function countedSizes(tables: readonly TableCount[]): Map<string, TableSize> {
  return new Map(tables.map(({ source_id: id, records }) => [id, { records, error: 0 }]));
}
