/**
 * Informs leases of changes that people make to their bases while a sync is running: settings, the API key, a pause, a
 * deletion, a requested sync or schema check.
 *
 * Polls with one query a second for all bases that a worker holds, which only reads whether their rows have changed. A
 * notification could get lost and would need the same query as a fallback.
 */
import type { Context } from "../../context";
import { type SyncFacts, syncFacts, syncVersions } from "../../control/bases";

const POLL_MS = 1000;

/** Called once a second with the current state of the base; undefined when the base no longer exists. */
type OnFacts = (facts: SyncFacts | undefined) => void;

export class SettingsWatch {
  #ctx: Pick<Context, "db" | "log">;
  #watched = new Map<string, Set<OnFacts>>();
  /** What was read last of each watched base. */
  #known = new Map<string, { version: string; facts: SyncFacts }>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ctx: Pick<Context, "db" | "log">) {
    this.#ctx = ctx;
  }

  /** Watches until the returned handle is disposed of. */
  watch(baseId: string, onFacts: OnFacts): Disposable {
    const listeners = this.#watched.get(baseId) ?? new Set();
    this.#watched.set(baseId, listeners.add(onFacts));
    this.#timer ??= setTimeout(() => this.#poll(), POLL_MS);
    return {
      [Symbol.dispose]: () => {
        listeners.delete(onFacts);
        if (listeners.size === 0 && this.#watched.get(baseId) === listeners) this.#watched.delete(baseId);
      },
    };
  }

  async #poll(): Promise<void> {
    const asked = [...this.#watched.keys()];
    if (asked.length === 0) {
      this.#timer = undefined;
      return;
    }
    try {
      // The versions first: what changes between the two queries is read again.
      const versions = await syncVersions(this.#ctx.db, asked);
      const changed = asked.filter(
        (id) => versions.has(id) && this.#known.get(id)?.version !== versions.get(id),
      );
      const facts = changed.length > 0 ? await syncFacts(this.#ctx.db, changed) : [];
      const known = new Map(facts.map((one) => [one.id, { version: versions.get(one.id)!, facts: one }]));
      for (const id of asked) {
        const unchanged = this.#known.get(id);
        if (unchanged && unchanged.version === versions.get(id)) known.set(id, unchanged);
      }
      this.#known = known;
      for (const id of asked)
        for (const onFacts of this.#watched.get(id) ?? []) onFacts(known.get(id)?.facts);
    } catch (error) {
      this.#ctx.log.debug({ error }, "reading settings failed");
    }
    this.#timer = setTimeout(() => this.#poll(), POLL_MS);
  }
}
