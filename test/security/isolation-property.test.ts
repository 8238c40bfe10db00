/**
 * I8. One account's actions have no effect on another's: whatever two accounts do with random keys, settings, plans and
 *     failures, on bases of their own and on one that they share with the observer, the observer's replica equals its
 *     source, its clients get the source's own answers, and its settings, state and budget are only what it set.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Random } from "../../apps/sandbox/random";
import { compareToSource } from "../support/compare-to-source";
import { fuzzRuns } from "../support/fuzz";
import { until } from "../support/poll";
import { anyStep, type Step, World } from "./isolation-world";
import { Service } from "./service";

/** The start of three servers, five processes and a source on a busy machine, ms. */
const START_MS = 180_000;
const RUNS = 2;
const STEPS = 8;
/** One run creates two bases and a database for each of three accounts, and syncs them: the limit of all runs, ms. */
const TIME_LIMIT_MS = 150_000 * fuzzRuns;
/** The last run may take this much longer, ms. */
const GRACE_MS = 120_000;
/** A sync of a small base that shares its rate limit with two more, on a busy machine, ms. */
const SYNCED_MS = 60_000;

let service: Service;
beforeAll(async () => {
  service = await Service.start();
  // The source's own limits are disabled: a client with a key for a base can use them up at the source itself.
  await service.sandbox.settings({ rateLimitOff: true });
}, START_MS);
afterAll(() => service?.[Symbol.asyncDispose]());

const isolated = fc.asyncProperty(
  fc.nat(),
  fc.array(anyStep, { minLength: 4, maxLength: STEPS }),
  async (seed, steps) => {
    service.takeDeaths();
    await using world = await World.make(service, new Random(seed));
    const observed = new Observed(world);
    await observed.begin();
    for (const step of steps) {
      await world.take(step);
      await observed.check(step);
    }
  },
);

test("I8: one account's actions have no effect on another's", {
  timeout: TIME_LIMIT_MS + GRACE_MS,
  tags: "once",
}, async () => {
  const limits = { numRuns: RUNS * fuzzRuns, interruptAfterTimeLimit: TIME_LIMIT_MS };
  // All runs share the service, and damage remains: shrinking would be useless.
  await fc.assert(isolated, { ...limits, endOnFailure: true });
});

/** Everything of the observer's that others could affect. */
class Observed {
  #made = "";
  #calls = 0;
  /** Of the calls. Where a replica cannot show what a write has answered, the record is read as well. */
  #writes = 0;

  constructor(readonly world: World) {}

  async begin(): Promise<void> {
    const { observer } = this.world;
    const workspace = await observer.account.ask<{ id: string }>("POST", "workspaces", {
      name: `Observed ${crypto.randomUUID()}`,
      plan: "team",
    });
    await observer.account.change(observer.id, { workspace_id: workspace.id });
    this.#made = await this.#facts();
  }

  async check(step: Step): Promise<void> {
    const { world } = this;
    const after = JSON.stringify(step);
    expect(service.takeDeaths(), after).toEqual([]);
    for (const proxy of [0, 1]) await this.#readsAsTheSource(proxy, after);
    await this.#writesAndSees(after);
    await until(
      async () => {
        const dump = await service.dump(world.shared.id);
        const { differences } = await compareToSource(world.observer.sql, dump);
        return differences.length === 0;
      },
      {
        what: `the observer's replica equals its source after ${after}`,
        timeoutMs: SYNCED_MS,
        intervalMs: 100,
      },
    );
    expect(await this.#facts(), after).toBe(this.#made);
    const made = this.#calls + this.#writes + world.served;
    const { budget } = await world.observer.account.base(world.observer.id);
    expect(budget?.used.client ?? 0, `calls counted after ${after}`).toBeLessThanOrEqual(made);
  }

  async #readsAsTheSource(proxy: number, after: string): Promise<void> {
    const { through, direct } = await this.world.observerReads(proxy);
    this.#calls++;
    expect({ status: through.status, body: JSON.parse(through.text) }, after).toEqual({
      status: direct.status,
      body: JSON.parse(direct.text),
    });
    expect(through.headers.get("x-basetide-answered-by"), after).not.toBe("replica");
  }

  /** I1 for the observer, whatever happened to the others' replicas. */
  async #writesAndSees(after: string): Promise<void> {
    const { shared, observer, observerKey } = this.world;
    const name = `observer ${this.#calls}`;
    const [id] = shared.recordIds;
    const answer = await service.call(`${shared.id}/Tasks/${id}`, observerKey, {
      method: "PATCH",
      body: { fields: { Name: name } },
      proxy: this.#calls,
    });
    this.#calls++;
    this.#writes++;
    expect(answer.status, after).toBe(200);
    const [row] = await observer.sql<{ name: string }[]>`select name from tasks where id = ${id!}`;
    expect(row?.name, after).toBe(name);
  }

  /** Facts that only the observer changes. */
  async #facts(): Promise<string> {
    const { observer } = this.world;
    const { name, state, settings, database, error } = await observer.account.base(observer.id);
    return JSON.stringify({ name, state, settings, database, error });
  }
}
