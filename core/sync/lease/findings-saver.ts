/** Saves what a lease finds out about its base: each part at most once a second, and once more at the end of the lease. */
import { wait } from "../../async";
import type { Context } from "../../context";
import type { Findings, Host } from "../host";
import { failurePauseMs, SHORTEST_MS } from "../pacing";

type Part = "problems" | "failingTables" | "schemaError" | "progress";

export class FindingsSaver implements AsyncDisposable {
  /** Reads the parts that have changed, at the time at which they are saved. */
  readonly #changed = new Map<Part, () => Findings>();
  readonly #loops = new Map<Part, Promise<void>>();
  /** The saves that are running. */
  readonly #saves = new Map<Part, Promise<void>>();
  readonly #over = new AbortController();

  constructor(
    private readonly host: Pick<Host, "save">,
    private readonly baseId: string,
    private readonly log: Context["log"],
  ) {}

  /** To be called when a part has changed. */
  note(part: Part, read: () => Findings): void {
    if (this.#over.signal.aborted) return;
    this.#changed.set(part, read);
    if (this.#loops.has(part)) return;
    this.#loops.set(
      part,
      this.#saveChanges(part).finally(() => this.#loops.delete(part)),
    );
  }

  /** Saves a part no longer, and waits for a save that is running. */
  async drop(part: Part): Promise<void> {
    this.#changed.delete(part);
    await this.#saves.get(part);
    this.#changed.delete(part);
  }

  /** Saves the last changes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#loops.values());
  }

  /** Ends once there is nothing to save; after the lease, with one last attempt. */
  async #saveChanges(part: Part): Promise<void> {
    const { signal } = this.#over;
    for (let read = this.#changed.get(part); read; read = this.#changed.get(part)) {
      this.#changed.delete(part);
      let pauseMs = SHORTEST_MS;
      const save = this.host.save(this.baseId, read()).catch((error: unknown) => {
        this.log.debug({ error, part }, "saving a change of the base's state failed; retrying");
        if (!signal.aborted && !this.#changed.has(part)) this.#changed.set(part, read!);
        pauseMs = failurePauseMs(1);
      });
      this.#saves.set(part, save);
      await save;
      if (!signal.aborted) await wait(pauseMs, signal).catch(() => {});
    }
  }
}
