/**
 * A SQL user that writes to a base, day after day with the password of the first day.
 *
 * A transaction that ends is in SQL, or becomes so if writes are queued; one that is rolled back is nowhere.
 */
import postgres from "postgres";
import type { Random } from "../../../apps/sandbox/random";
import { until } from "../../support/poll";
import type { LapseBase, Mode } from "./base";
import type { Service } from "./service";

/** Whose writes SQL users make, and how. */
export const WRITTEN: Partial<Record<Mode, "at_commit" | "at_once" | "queued">> = {
  live: "at_commit",
  sweep: "at_once",
  rapid: "queued",
};
/** The connection of the server to the proxy was cut by the jump, and nothing was sent. */
const NOTHING_SENT = "08006";
/** The notice of a write that SQL does not show yet. */
const PENDING = "basetide-sql: pending";
const RESULT_MS = 60_000;

export class LapseWriter {
  writes = 0;
  /** Of which COMMIT said that SQL shows them later. */
  pending = 0;
  retried = 0;
  readonly violations: string[] = [];

  private constructor(
    readonly base: LapseBase,
    readonly way: "at_commit" | "at_once" | "queued",
    readonly sql: postgres.Sql,
    readonly notices: string[],
  ) {}

  static async create(service: Service, base: LapseBase): Promise<LapseWriter> {
    const way = WRITTEN[base.mode]!;
    const settings = { sql_writes: true, sql_writes_queued: way === "queued" };
    await service.manage("PATCH", `bases/${base.id}`, settings);
    const made = await service.manage<{ credentials: { url: string } }>(
      "POST",
      `bases/${base.id}/sql-users`,
      { name: "writer", writes: { tables: ["items"], mode: way === "at_once" ? way : "at_commit" } },
    );
    const notices: string[] = [];
    const onnotice = ({ message }: postgres.Notice) => void notices.push(message ?? "");
    const sql = postgres(made.credentials.url, { max: 1, onnotice, fetch_types: false });
    return new LapseWriter(base, way, sql, notices);
  }

  /** A transaction that ends, and one that is rolled back. */
  async write(random: Random): Promise<void> {
    const id = random.pick(await this.#writable());
    const name = `by SQL ${crypto.randomUUID()}`;
    const update = `update write.items set name = '${name}' where id = '${id}'`;
    await this.#again(() => this.sql.unsafe(update).simple());
    this.writes++;
    const notices = this.notices.splice(0);
    const shown = await this.base.nameOf(id);
    if (this.way === "queued")
      await until(async () => (await this.base.nameOf(id)) === name, {
        what: `a queued write of ${this.base.mode} is in SQL`,
        timeoutMs: RESULT_MS,
      }).catch(async (error: Error) => {
        throw new Error(`${error.message}; ${await this.#latest()}`);
      });
    else if (notices.some((text) => text.includes(PENDING))) this.pending++;
    else if (shown !== name)
      this.violations.push(
        `I1: "${shown}" is shown of ${id} instead of "${name}" (${this.base.mode}, ${new Date().toISOString()}, ${notices.join("; ")})`,
      );
    // At once, the statement itself is sent.
    if (this.way === "at_once") return;
    const undone = `update write.items set name = 'rolled back' where id = '${id}'`;
    await this.sql.unsafe(`begin; ${undone}; rollback`).simple();
  }

  /** What must be so in the end: every row has a result, and it is known. */
  async unfinished(service: Service): Promise<string[]> {
    const writes = await service.manage<{ state: string; at: string }[]>(
      "GET",
      `bases/${this.base.id}/writes`,
    );
    return writes
      .filter(({ state }) => state !== "applied")
      .map(({ state, at }) => `a SQL write to ${this.base.mode} of ${at} is ${state}`);
  }

  /** The records that both the source and SQL have: people make and delete some at the same time. */
  async #writable(): Promise<string[]> {
    const shown = await this.base.reader<{ id: string }[]>`select id from items`.simple();
    const inSource = new Set(await this.base.itemIds());
    return shown.map(({ id }) => id).filter((id) => inSource.has(id));
  }

  /** What is known of the latest write. */
  async #latest(): Promise<string> {
    const [row] = await this.sql<
      { state: string }[]
    >`select * from write.log order by at desc limit 1`.simple();
    const sets = await this.base.service.manage<object[]>("GET", `bases/${this.base.id}/change-sets`);
    return JSON.stringify([row, sets[0]]);
  }

  close(): Promise<void> {
    return this.sql.end({ timeout: 1 });
  }

  async #again(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if ((error as { code?: string }).code !== NOTHING_SENT) throw error;
      this.retried++;
      await work();
    }
  }
}
