/** What goes on at the same time and shares a fate: the first to fail, or to be done, ends all. */
import { asBasetideError, BasetideError } from "../errors";
import { type LinkedAbort, linkedAbort } from "./abort";

export class TaskGroup implements Disposable {
  readonly #abort: LinkedAbort;
  readonly #outer: AbortSignal;
  #failure: BasetideError | undefined;

  /** @param outer ends it, too */
  constructor(outer: AbortSignal) {
    this.#outer = outer;
    this.#abort = linkedAbort(outer);
  }

  /** Aborts, with `sync_stopped`, when it has ended. */
  get stop(): AbortSignal {
    return this.#abort.signal;
  }

  /** Ends everything: the lease is over, or something has failed that is the whole base's. */
  end(caught?: unknown): void {
    const error = caught === undefined ? undefined : asBasetideError(caught);
    // What is stopped because of another's failure says nothing; a lost lease is always told.
    if (!this.stop.aborted || error?.code === "lease_lost") this.#failure = error;
    this.#abort.abort();
  }

  /**
   * Waits until all have ended.
   *
   * @throws BasetideError what ended them, `sync_stopped` where that came from outside
   */
  async run(works: Promise<void>[]): Promise<void> {
    await Promise.all(works.map((work) => work.catch((error) => this.end(error))));
    if (this.#failure) throw this.#failure;
    if (this.#outer.aborted) throw new BasetideError("sync_stopped");
  }

  [Symbol.dispose](): void {
    this.#abort[Symbol.dispose]();
  }
}
