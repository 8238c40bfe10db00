/**
 * Answers within seconds while the control plane is silent: a server that is frozen, or a network that drops packets,
 * fails no statement, and a page would wait for minutes.
 *
 * W1. A request has one budget of time, SILENCE_MS, from its beginning and again from each answer of the control plane:
 *     to a probe, which is sent when half of the budget is used. Without an answer, the request fails with
 *     `control_unavailable`. A slow page of a customer's own database is not cut off.
 * W2. After a probe that got no answer, requests fail at once until one succeeds, so that they do not pile up.
 */
import { withTimeout } from "../../core/async";
import type { Db } from "../../core/context";
import { BasetideError } from "../../core/errors";

/** Leaves time to show the error within the 5 s in which every page answers. */
const SILENCE_MS = 3500;

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
      const until = performance.now() + SILENCE_MS;
      const answer = await withTimeout(SILENCE_MS / 2, () => unanswered, running);
      if (answer !== unanswered) return answer as T;
      if (!(await this.#answersProbe(until, running))) throw silent();
    }
  }

  /**
   * An error is an answer, too: the request itself will report it.
   *
   * @param running the request: its end is as good as an answer
   */
  async #answersProbe(until: number, running: Promise<unknown>): Promise<boolean> {
    const settled = async (work: PromiseLike<unknown>) => {
      await Promise.allSettled([work]);
      return true;
    };
    this.#probe ??= settled(this.#db`select 1`).finally(() => {
      this.#probe = undefined;
      this.#isSilent = false;
    });
    const isAnswered = await withTimeout(
      Math.max(0, until - performance.now()),
      () => false,
      Promise.race([this.#probe, settled(running)]),
    );
    // The probe may have been answered in the same moment.
    this.#isSilent = !isAnswered && this.#probe !== undefined;
    return !this.#isSilent;
  }
}

function silent(): BasetideError {
  return new BasetideError("control_unavailable", SILENT, { details: { retryAfterSeconds: 30 } });
}
