/**
 * A client that writes transactions with SQL, one after the other, and notes what it was told of each. Afterwards, the
 * source, SQL and the log are compared with that.
 */
import pg from "pg";
import type { Random } from "../../../apps/sandbox/random";
import { getBase } from "../../../core/control/bases";
import { listWrites } from "../../../core/control/change-sets";
import { until } from "../../support/poll";
import { recordsInSource } from "../../support/tasks-base";
import type { KillScene, WritableBase } from "./kill-scene";

type Operation =
  | { kind: "create"; name: string; hours: number }
  | { kind: "update"; name: string; hours: number }
  | { kind: "delete"; name: string };

/**
 * `unsent`: the client was told that nothing was sent, or never asked for COMMIT. `unknown`: it has no answer, or was told
 * that nobody knows.
 */
type Told = "committed" | "unsent" | "unknown";

interface Transaction {
  note: string;
  operations: Operation[];
  told: Told;
  error: string;
}

/** Errors of COMMIT with which nothing was sent. */
const UNSENT = new Set(["08006", "55000"]);
const SQLSTATE = /^\d[0-9A-Z]{4}$/;
/** The server ends the connection. */
const ENDS_CONNECTION = /^57P/;
const MOST_ROWS = 24;
/** Transactions of a client that wait in the outbox. */
const MOST_QUEUED = 3;
const MOST_TASKS = 150;
/** Longest time of connecting, ms. */
const CONNECT_MS = 10_000;
/** Until a client tries again, ms. */
const AGAIN_MS = 200;
/** A client without an answer for this long has lost its connection, ms. */
const PATIENCE_MS = 120_000;

export class KillWriter {
  readonly base: WritableBase;
  readonly #scene: KillScene;
  readonly #random: Random;
  /** Since the last comparison. */
  #transactions: Transaction[] = [];
  /** Hours of each task, as far as it is certain. */
  #tasks = new Map<string, number>();
  /** What the source has had at the last comparison. */
  #compared = new Map<string, number>();
  #count = 0;
  #nextHours = 0;
  #unsent: Operation[] | undefined;
  #isStopped = true;
  #running: Promise<void> | undefined;
  #betweenStatements: (() => Promise<void>) | undefined;
  /** Totals of the run. */
  readonly told: Record<Told, number> = { committed: 0, unsent: 0, unknown: 0 };
  readonly results = { applied: 0, notApplied: 0 };
  /** Messages of errors, by their codes. */
  readonly errors = new Map<string, number>();

  constructor(scene: KillScene, base: WritableBase, random: Random) {
    this.#scene = scene;
    this.base = base;
    this.#random = random;
  }

  start(): void {
    this.#isStopped = false;
    this.#running = this.#run();
  }

  /** Resolves when the transaction under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Runs `work` in the next transaction, before its COMMIT. */
  beforeCommit(work: () => Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      this.#betweenStatements = () => work().finally(resolve);
    });
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const client = new pg.Client({ connectionString: this.base.url, connectionTimeoutMillis: CONNECT_MS });
      // It fails the query that runs, too.
      client.on("error", () => {});
      try {
        await client.connect();
        while (!this.#isStopped) {
          await this.#transaction(client);
          // COMMIT does not wait for the source: the client does, so that little is left to do when it stops.
          if (this.#scene.isQueued) await this.#room(client);
        }
      } catch {
        await Bun.sleep(AGAIN_MS);
      } finally {
        void client.end().catch(() => {});
      }
    }
  }

  /** @throws what ended the connection */
  async #room(client: pg.Client): Promise<void> {
    const text = "select count(distinct set)::int as n from write.log where state = 'queued'";
    while (!this.#isStopped && (await within(PATIENCE_MS, client.query(text))).rows[0].n > MOST_QUEUED)
      await Bun.sleep(AGAIN_MS);
  }

  /** @throws what ended the connection */
  async #transaction(client: pg.Client): Promise<void> {
    const note = `${this.base.sourceBaseId} ${++this.#count}`;
    // What was not sent is safe to repeat.
    const drawn = this.#unsent ?? this.#draw();
    this.#unsent = undefined;
    const transaction: Transaction = { note, operations: [], told: "unsent", error: "" };
    this.#transactions.push(transaction);
    const isKept = this.#random.chance(0.85);
    try {
      await within(PATIENCE_MS, this.#statements(client, transaction, drawn, isKept));
      transaction.told = isKept ? "committed" : "unsent";
      if (isKept) apply(this.#tasks, transaction.operations);
    } catch (error) {
      const { message, code = message } = error as { code?: string; message: string };
      transaction.error = `${code} ${message}`;
      this.errors.set(code, (this.errors.get(code) ?? 0) + 1);
      if (UNSENT.has(code)) transaction.told = "unsent";
      if (transaction.told === "unsent") this.#unsent = drawn;
      // Until the next comparison, they are not touched again.
      else for (const { name } of transaction.operations) this.#tasks.delete(name);
      if (SQLSTATE.test(code) && !ENDS_CONNECTION.test(code)) {
        await client.query("rollback").catch(() => {});
        await Bun.sleep(AGAIN_MS);
        return;
      }
      throw error;
    } finally {
      this.told[transaction.told]++;
    }
  }

  async #statements(
    client: pg.Client,
    transaction: Transaction,
    drawn: Operation[],
    isKept: boolean,
  ): Promise<void> {
    await client.query("begin");
    await client.query("select set_config('basetide.note', $1, true)", [transaction.note]);
    for (const operation of drawn) {
      const { rowCount } = await client.query(...statementOf(operation));
      // What SQL does not show yet is not changed.
      if (rowCount) transaction.operations.push(operation);
    }
    const work = this.#betweenStatements;
    this.#betweenStatements = undefined;
    await work?.();
    await client.query("select 1");
    if (isKept) transaction.told = "unknown";
    await client.query(isKept ? "commit" : "rollback");
  }

  /** Of tasks that are certain, each is changed once. */
  #draw(): Operation[] {
    const random = this.#random;
    const isBusy = this.#tasks.size > MOST_TASKS;
    const known = [...this.#tasks.keys()];
    const changed = new Set(
      Array.from({ length: Math.min(known.length, random.int(0, 8)) }, () => random.pick(known)),
    );
    const changes = [...changed].map((name): Operation => {
      if (isBusy || random.chance(0.3)) return { kind: "delete", name };
      return { kind: "update", name, hours: this.#hours() };
    });
    const count = isBusy || random.chance(0.5) ? 1 : random.int(1, MOST_ROWS);
    const creates = Array.from(
      { length: count },
      (_, nth): Operation => ({
        kind: "create",
        name: `Task ${this.#count}.${nth}`,
        hours: this.#hours(),
      }),
    );
    return random.chance(0.5) ? [...creates, ...changes] : [...changes, ...creates];
  }

  #hours(): number {
    return ++this.#nextHours;
  }

  /** Returns how many rows have no result yet; of queued writes, none in the outbox either. */
  async open(): Promise<number> {
    const waiting = this.#scene.isQueued ? await this.#waiting() : 0;
    if (waiting > 0) return waiting;
    const writes = await this.#log();
    return writes.filter(({ state }) => state !== "applied" && state !== "not_applied" && state !== "refused")
      .length;
  }

  async #waiting(): Promise<number> {
    const [row] = await this.#scene.ask<{ n: number }>(
      this.base,
      "select count(*)::int as n from write_own.outbox where state <> 'ended'",
    );
    return row!.n;
  }

  #log(): ReturnType<typeof listWrites> {
    return listWrites(this.#scene.fleet.ctx, this.base.id, { limit: 100_000 });
  }

  /** Compares what the client was told since the last call with the log, the source and SQL. Returns what is wrong. */
  async compare(): Promise<string[]> {
    const { fleet } = this.#scene;
    const wrong: string[] = [];
    const byNote = Map.groupBy(await this.#log(), ({ note }) => note);
    const expected = this.#compared;
    for (const { note, operations, told, error } of this.#transactions) {
      const items = (byNote.get(note) ?? []).toSorted((one, other) => one.position - other.position);
      if (items.length > 0 && items.length !== operations.length)
        wrong.push(`${note}: the log has ${items.length} rows of ${operations.length}`);
      const made = operations.filter((_, nth) => items[nth]?.state === "applied");
      const left = items.filter(({ state }) => state !== "applied");
      for (const { state, error: why } of left)
        if (state !== "not_applied")
          wrong.push(`${note}: a row is ${state}, ${why} (told ${told}, ${error})`);
      if (told === "committed" && made.length < operations.length)
        wrong.push(`LOST ${note}: committed, and ${made.length} of ${operations.length} rows were made`);
      if (told === "unsent" && made.length > 0 && !error.includes("already made"))
        wrong.push(
          `SENT ${note}: the client was told that nothing is sent (${error}), and ${made.length} rows were made`,
        );
      this.results.applied += made.length;
      this.results.notApplied += operations.length - made.length;
      apply(expected, made);
    }
    const records = recordsInSource(fleet.sandbox.control, this.base.sourceBaseId);
    const has = new Map(records.map(({ fields }) => [fields.Name as string, fields.Hours as number]));
    if (has.size < records.length) wrong.push(`DOUBLED: ${records.length - has.size} tasks`);
    for (const [name, hours] of expected) {
      if (!has.has(name)) wrong.push(`LOST: ${name} is not in the source`);
      else if (has.get(name) !== hours) wrong.push(`LOST: ${name} has ${has.get(name)} hours, not ${hours}`);
    }
    for (const name of has.keys()) if (!expected.has(name)) wrong.push(`SENT: nobody has written ${name}`);
    const reader = await fleet.reader(await getBase(fleet.ctx.db, this.base.id));
    const inSql = async () => {
      const rows = await reader<{ name: string; hours: string }[]>`select name, hours from public.tasks`;
      const shown = new Map(rows.map(({ name, hours }) => [name, Number(hours)]));
      return rows.length === has.size && [...has].every(([name, hours]) => shown.get(name) === hours);
    };
    await until(inSql, { what: "SQL has what the source has", timeoutMs: 60_000, retryErrors: true }).catch(
      ({ message }: Error) => wrong.push(message),
    );
    this.#compared = has;
    this.#tasks = new Map(has);
    this.#transactions = [];
    return wrong;
  }
}

function statementOf(operation: Operation): [text: string, values: unknown[]] {
  const { kind, name } = operation;
  if (kind === "create")
    return ["insert into write.tasks (name, hours) values ($1, $2)", [name, operation.hours]];
  if (kind === "update")
    return ["update write.tasks set hours = $2 where name = $1", [name, operation.hours]];
  return ["delete from write.tasks where name = $1", [name]];
}

function apply(tasks: Map<string, number>, operations: Operation[]): void {
  for (const operation of operations) {
    if (operation.kind === "delete") tasks.delete(operation.name);
    else tasks.set(operation.name, operation.hours);
  }
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer")), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
