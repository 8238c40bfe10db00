/**
 * An agent that reads and proposes, day after day with the token of the first day.
 *
 * What a rule approves is in SQL; what nobody approves expires after a day, and changes nothing.
 */
import type { Random } from "../../../apps/sandbox/random";
import { agentClient } from "../../support/agent-client";
import { until } from "../../support/poll";
import type { LapseBase } from "./base";
import type { Service } from "./service";

const APPLIED_MS = 60_000;
const UPDATES_PER_HOUR = 5;
const RATE_LIMITED = "quota_timeout";

export class LapseAgent {
  approved = 0;
  retried = 0;

  private constructor(
    readonly service: Service,
    readonly base: LapseBase,
    readonly token: string,
  ) {}

  static async create(service: Service, base: LapseBase): Promise<LapseAgent> {
    await service.manage("PATCH", `bases/${base.id}`, { change_sets: true });
    const { agent, token } = await service.manage<{ agent: { id: string }; token: string }>(
      "POST",
      "agents",
      {
        name: "Lapse",
        may_propose: true,
        bases: [{ base_id: base.id }],
      },
    );
    const rule = { base_id: base.id, table: "items", fields: ["count"], updates_per_hour: UPDATES_PER_HOUR };
    await service.manage("PUT", `agents/${agent.id}/rules`, { rules: [rule] });
    return new LapseAgent(service, base, token);
  }

  /** Counts rows, and changes one that a rule lets it change. */
  async work(random: Random): Promise<void> {
    const ids = await this.base.itemIds();
    const { results } = await this.#call<{ results: { rows: string[][] }[] }>("query", {
      sql: "select count(*) from items",
    });
    if (Number(results[0]!.rows[0]![0]) !== ids.length)
      throw new Error(`an agent counts ${JSON.stringify(results)}, not ${ids.length}`);
    const [record, count] = [random.pick(ids), random.int(2000, 9999)];
    const { state } = await this.#propose({ operation: "update", table: "items", record, fields: { count } });
    if (state !== "approved") throw new Error(`a rule did not approve a proposal: it is ${state}`);
    await until(async () => (await this.base.countOf(record)) === count, {
      what: "what a rule has approved is in SQL",
      timeoutMs: APPLIED_MS,
    });
    this.approved++;
  }

  /** Proposes a deletion that nobody decides about. @returns its state later */
  async leaveOpen(): Promise<() => Promise<string>> {
    const [record] = await this.base.itemIds();
    const { id } = await this.#propose({ operation: "delete", table: "items", record });
    return async () => {
      const { proposal } = await this.service.manage<{ proposal: { state: string } }>(
        "GET",
        `proposals/${id}`,
      );
      return proposal.state;
    };
  }

  #propose(operation: object) {
    return this.#call<{ id: string; state: string }>("propose_changes", {
      operations: [operation],
      note: "Days pass",
    });
  }

  async #call<T>(tool: string, input: object): Promise<T> {
    await using client = await agentClient(this.service.consoleUrl, this.token);
    const send = () => client.call(tool, { base: this.base.id, ...input });
    let { isError, data, text } = await send();
    // As in `base.ts`: clients try again after the moment of a jump.
    if (text.includes(RATE_LIMITED)) {
      this.retried++;
      ({ isError, data, text } = await send());
    }
    if (isError || !data) throw new Error(`${tool} of an agent: ${text}`);
    return data as T;
  }
}
