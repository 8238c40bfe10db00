/** The progress of a first sync or a rebuild, table by table. */
import type { Progress, RunReport, TableCount } from "../../control/bases";
import type { TableSpec } from "../../replica";

export class ProgressBoard {
  #progress: Progress;
  #rows: Map<string, Progress["tables"][number]>;
  #onChange: (progress: Progress) => void;
  #known: TableCount[];

  /**
   * @param rebuild the tables that are built, by id; a sweep shows no progress
   * @param known how many records each table had when it was last read
   */
  constructor(
    report: Pick<RunReport, "kind" | "startedAt">,
    rebuild: Map<string, TableSpec>,
    known: TableCount[],
    onChange: (progress: Progress) => void,
  ) {
    this.#known = known;
    this.#rows = new Map([...rebuild].map(([id, spec]) => [id, this.#row(spec)]));
    this.#progress = {
      kind: report.kind,
      started_at: report.startedAt.toISOString(),
      tables: [...this.#rows.values()],
    };
    this.#onChange = onChange;
    if (rebuild.size > 0) onChange(this.#progress);
  }

  /** Adds a table that must be built, too, or starts its progress over. */
  begin(spec: TableSpec): void {
    this.#rows.set(spec.tableId, this.#row(spec));
    this.#progress.tables = [...this.#rows.values()];
    this.#onChange(this.#progress);
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
    this.#onChange(this.#progress);
  }

  /** Shows that the table has been read, and that queries hold the live table. */
  waiting(tableId: string): void {
    const row = this.#rows.get(tableId);
    if (!row) return;
    row.waiting = true;
    this.#onChange(this.#progress);
  }

  done(tableId: string): void {
    const row = this.#rows.get(tableId);
    if (!row) return;
    row.done = true;
    delete row.waiting;
    this.#onChange(this.#progress);
  }
}
