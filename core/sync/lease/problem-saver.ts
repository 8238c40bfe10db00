/** Saves a base's problems for its indicator, whenever they have changed: at most once a second. */
import { wait } from "../../async";
import type { Context } from "../../context";
import { recordProblems } from "../../control/bases";
import type { Problems } from "../state";

const INTERVAL_MS = 1000;
/** After a failure the next attempt follows; the next lease finds what is still the case. */
const RETRY_MS = 5000;

export class ProblemSaver implements AsyncDisposable {
  #hasChanged = false;
  #isOver = false;
  #saving: Promise<void> | undefined;
  readonly #over = new AbortController();

  constructor(
    private readonly ctx: Pick<Context, "db" | "log">,
    private readonly baseId: string,
    private readonly problems: Problems,
  ) {
    problems.onChange = () => this.#changed();
  }

  /** Saves the last change. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.problems.onChange = () => {};
    this.#over.abort();
    await this.#saving;
  }

  #changed(): void {
    this.#hasChanged = true;
    this.#saving ??= this.#save().finally(() => {
      this.#saving = undefined;
    });
  }

  /** Ends once there is nothing to save; after the lease, with one last attempt. */
  async #save(): Promise<void> {
    while (this.#hasChanged) {
      this.#hasChanged = false;
      let pauseMs = INTERVAL_MS;
      try {
        await recordProblems(this.ctx.db, this.baseId, this.problems.list());
      } catch (error) {
        this.ctx.log.debug({ error }, "saving the base's problems failed; retrying");
        this.#hasChanged = !this.#isOver;
        pauseMs = RETRY_MS;
      }
      if (!this.#isOver) await wait(pauseMs, this.#over.signal).catch(() => {});
    }
  }
}
