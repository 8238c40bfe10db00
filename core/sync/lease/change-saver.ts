/** Saves a state of a lease whenever it has changed: at most once a second, and once more at the end of the lease. */
import { wait } from "../../async";
import type { Context } from "../../context";

const INTERVAL_MS = 1000;
/** After a failure the next attempt follows; the next lease finds what is still the case. */
const RETRY_MS = 5000;

export class ChangeSaver implements AsyncDisposable {
  #hasChanged = false;
  #isOver = false;
  #saving: Promise<void> | undefined;
  readonly #over = new AbortController();

  /** @param save saves the state as it is when this is called */
  constructor(
    private readonly log: Context["log"],
    private readonly save: () => Promise<void>,
  ) {}

  /** To be called after each change. */
  changed = (): void => {
    if (this.#isOver) return;
    this.#hasChanged = true;
    this.#saving ??= this.#saveChanges().finally(() => {
      this.#saving = undefined;
    });
  };

  /** Saves the last change. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#over.abort();
    await this.#saving;
  }

  /** Ends once there is nothing to save; after the lease, with one last attempt. */
  async #saveChanges(): Promise<void> {
    while (this.#hasChanged) {
      this.#hasChanged = false;
      let pauseMs = INTERVAL_MS;
      try {
        await this.save();
      } catch (error) {
        this.log.debug({ error }, "saving a change of the base's state failed; retrying");
        this.#hasChanged = !this.#isOver;
        pauseMs = RETRY_MS;
      }
      if (!this.#isOver) await wait(pauseMs, this.#over.signal).catch(() => {});
    }
  }
}
