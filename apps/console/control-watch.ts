/**
 * Answers within seconds while the control plane is silent: a server that is frozen, or a network that drops packets,
 * fails no statement, and a page would wait for minutes.
 *
 * W1. A request waits for PATIENCE_MS, then as long as the control plane answers a probe within PROBE_MS: a slow page
 *     of a customer's own database is not cut off. Without an answer, the request fails with `control_unavailable`.
 * W2. After a probe that got no answer, requests fail at once until one succeeds, so that they do not pile up.
 */
import { withTimeout } from "../../core/async";
import type { Db } from "../../core/context";
import { BasetideError } from "../../core/errors";

/** Together less than the 5 s in which every page answers. */
const PATIENCE_MS = 2500;
const PROBE_MS = 1500;

const SILENT =
  "Basetide's own database does not answer. Nothing is lost: your data stays in your database and can be queried. Reload this page in a minute; if that does not help, ask the operator to check the control plane.";

const unanswered = Symbol("unanswered");

export class ControlWatch {
  readonly #db: Db;
  /** A probe that has been sent and not answered. */
  #probe: Promise<boolean> | undefined;
  #isSilent = false;

  constructor(db: Db) {
    this.#db = db;
  }

  /** @throws BasetideError `control_unavailable` if the control plane is silent; the errors of `work` */
  async answered<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isSilent) throw silent();
    const running = work();
    for (;;) {
      const answer = await withTimeout(PATIENCE_MS, () => unanswered, running);
      if (answer !== unanswered) return answer as T;
      if (!(await this.#answersProbe())) throw silent();
    }
  }

  /** An error is an answer, too: the request itself will report it. */
  async #answersProbe(): Promise<boolean> {
    this.#probe ??= this.#db`select 1`
      .then(
        () => true,
        () => true,
      )
      .finally(() => {
        this.#probe = undefined;
        this.#isSilent = false;
      });
    const isAnswered = await withTimeout(PROBE_MS, () => false, this.#probe);
    // The probe may have been answered in the same moment.
    this.#isSilent = !isAnswered && this.#probe !== undefined;
    return !this.#isSilent;
  }
}

function silent(): BasetideError {
  return new BasetideError("control_unavailable", SILENT, { details: { retryAfterSeconds: 30 } });
}
