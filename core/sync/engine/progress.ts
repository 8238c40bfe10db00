/** The progress of a first sync or a rebuild, table by table. */
import type { Progress, RunReport, TableCount } from "../../control/bases";
import type { TableSpec } from "../../replica";

export class ProgressBoard {
  #progress: Progress;
  #rows: Map<string, Progress["tables"][number]>;
  #onChange: (progress: Progress) => void;
  #known: TableCount[];
  #counts: { requests: number } | undefined;

  /**
   * @param counts the requests of the sync; absent if they are not for these tables alone
   * @param rebuild the tables that are built, by id; a sweep shows no progress
   * @param known how many records each table had when it was last read
   */
  constructor(
    report: Pick<RunReport, "kind" | "startedAt">,
    rebuild: Map<string, TableSpec>,
    known: TableCount[],
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
    return {
      name: spec.name,
      source_name: spec.sourceName,
      records_done: 0,
      records_estimate: this.#known.find((table) => table.name === spec.name)?.records ?? null,
      done: false,
    };
  }

  records(tableId: string, recordsDone: number): void {
    const row = this.#rows.get(tableId);
    if (!row) return;
    row.records_done = recordsDone;
    this.#progress.pages!++;
    this.#changed();
  }

  /** Shows that the table has been read, and that queries hold the live table. */
  waiting(tableId: string): void {
    const row = this.#rows.get(tableId);
    if (!row) return;
    row.waiting = true;
    this.#changed();
  }

  done(tableId: string): void {
    const row = this.#rows.get(tableId);
    if (!row) return;
    row.done = true;
    delete row.waiting;
    this.#changed();
  }

  #changed(): void {
    if (this.#counts) this.#progress.calls = this.#counts.requests;
    this.#onChange(this.#progress);
  }
}
