/**
 * A consistency test. Clients write to a base through two proxy processes while users edit and delete the same records
 * in the app, and SQL is read continuously. SQL must never go back in the source's order, nor behind what a client was
 * told, nor show a state that the source never had.
 */
import { inject } from "vitest";
import type { Control } from "../../apps/sandbox/control";
import type { StoreChange } from "../../apps/sandbox/store";
import type { Base } from "../../core/control/bases";
import type { WireRecord, WireTable } from "./expected-cells";
import type { Fleet } from "./fleet";
import { freePort } from "./free-port";
import { startProgram } from "./program";

const RECORDS = 8;
const CLIENTS = 6;
/** The share of all writes that goes to the newest record. */
const HOT = 0.3;
const HUMAN_EVERY_MS = 60;
/** Latency of the source before and after its state is read or changed. */
export const LATENCY = { before: { minMs: 1, maxMs: 40 }, after: { minMs: 1, maxMs: 80 } };

/** The load, and its duration. */
export interface Storm {
  seconds: number;
  rebuildEveryMs: number;
  /** Disturbances during the load. */
  hazards?: Hazard[];
}

export interface Hazard {
  everyMs: number;
  /** May throw, which means that nothing happened. */
  happen(busy: Busy): void | Promise<void>;
}

/** The busy table, as hazards see it. */
export interface Busy {
  control: Control;
  sourceBaseId: string;
  tableId: string;
  /** Records that clients write to. */
  ids: string[];
  newToken(): string;
}

/** The states of each record in the source's order: its tokens, and `gone`, after which it may be restored. */
class History {
  readonly #byRecord = new Map<string, string[]>();
  readonly #tokenField: string;

  constructor({ fields, records }: WireTable & { records: WireRecord[] }) {
    this.#tokenField = fields[0]!.id;
    for (const record of records) this.#add(record.id, record.fields);
  }

  note({ events }: StoreChange): void {
    for (const event of events) {
      if (event.kind === "record_created") this.#add(event.recordId, event.cells);
      if (event.kind === "record_updated") this.#add(event.recordId, event.current);
      if (event.kind === "record_deleted") this.#of(event.recordId).push("gone");
    }
  }

  /** The position of a state in the record's history; -1: before the record existed, or never. */
  indexOf(recordId: string, token: string | undefined): number {
    return this.#of(recordId).lastIndexOf(token ?? "gone");
  }

  /** The first state from `floor` on in which the record was absent: a reader need not have seen a later one. */
  leastGone(recordId: string, floor: number): number {
    return floor < 0 ? floor : this.#of(recordId).indexOf("gone", floor);
  }

  show(recordId: string, index: number): string {
    const of = this.#of(recordId);
    return `${index} (${of[index]?.slice(0, 8)}, of ${of.length})`;
  }

  #add(recordId: string, cells: Record<string, unknown>): void {
    const token = cells[this.#tokenField];
    if (typeof token === "string") this.#of(recordId).push(token);
  }

  #of(recordId: string): string[] {
    const known = this.#byRecord.get(recordId) ?? [];
    this.#byRecord.set(recordId, known);
    return known;
  }
}

/**
 * Creates a base whose first table is the busy one.
 *
 * @returns its id at the source
 */
export function createBusyBase(control: Control): string {
  return control.createBase({
    name: "Busy",
    tables: [
      {
        name: "Busy",
        fields: [{ name: "Token", type: "singleLineText" }],
        records: Array.from({ length: 150 }, (_, index) => ({ fields: { Token: `first ${index}` } })),
      },
    ],
  });
}

/** Disables the rate limiter, which would allow only five requests a second: a process that asks for permits gets many. */
export async function liftLimiter({ ctx }: Fleet): Promise<void> {
  await ctx.db.unsafe(`
    create or replace function quota_serve(p_key text, p_now float8) returns jsonb
    language sql as $$
      with served as (delete from quota_wants w where w.key = p_key returning w.session, w.life)
      select coalesce(jsonb_agg(jsonb_build_object('session', s.session, 'life', s.life, 'number', 1, 'rest', 0)), '[]')
      from (select distinct session, life from served) s, generate_series(1, 150) $$`);
  // A function with other parameters would be created next to the original one, and nothing would change.
  const rules = await ctx.db`select from pg_proc where proname = 'quota_serve'`;
  if (rules.length !== 1) throw new Error("quota_serve has other parameters than are written here");
}

/** Runs the load for its duration or until the first violation. Returns the violations. */
export async function violations(fleet: Fleet, base: Base, storm: Storm): Promise<string[]> {
  const { control, key } = fleet.sandbox;
  const [table] = control.dump(base.sourceBaseId).tables as unknown as (WireTable & {
    records: WireRecord[];
  })[];
  const history = new History(table!);
  const found: string[] = [];
  const stopNoting = control.onChange(
    (change) => change.baseId === base.sourceBaseId && history.note(change),
  );
  /** The lowest index that SQL may show of a record. */
  const floors = new Map<string, number>();
  const deadline = performance.now() + storm.seconds * 1000;
  const isOver = () => found.length > 0 || performance.now() > deadline;
  const newToken = () => crypto.randomUUID();
  await using releases = new AsyncDisposableStack();
  const ports = await startProxies(fleet, releases);
  const ids = control.createRecords(
    base.sourceBaseId,
    table!.id,
    Array.from({ length: RECORDS }, () => ({ fields: { Token: newToken() } })),
  );
  const busy: Busy = { control, sourceBaseId: base.sourceBaseId, tableId: table!.id, ids, newToken };
  // One record is hot: several clients write to it at any moment.
  const anyId = () => (Math.random() < HOT ? ids.at(-1)! : ids[Math.floor(Math.random() * ids.length)]!);

  async function client(number: number): Promise<void> {
    while (!isOver()) {
      const kind = Math.random();
      const url = `http://127.0.0.1:${ports[number % 2]}/api.airtable.com/v0/${base.sourceBaseId}/Busy`;
      const send = async (method: string, path: string, body?: unknown) => {
        const answer = await fetch(url + path, {
          method,
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          ...(body ? { body: JSON.stringify(body) } : {}),
        });
        // A record that another client has deleted meanwhile is not an error.
        return answer.ok ? ((await answer.json()) as { id: string; records?: { id: string }[] }) : undefined;
      };
      const token = newToken();
      if (kind < 0.7) {
        const id = anyId();
        if (await send("PATCH", `/${id}`, { fields: { Token: token } }))
          raise(id, history.indexOf(id, token));
      } else if (kind < 0.85) {
        const two = [...new Set([anyId(), anyId()])];
        const records = two.map((id) => ({ id, fields: { Token: token } }));
        if (await send("PATCH", "", { records })) for (const id of two) raise(id, history.indexOf(id, token));
      } else {
        const made = await send("POST", "", { fields: { Token: token } });
        if (!made) continue;
        raise(made.id, history.indexOf(made.id, token));
        ids.push(made.id);
        const [oldest] = ids.splice(0, 1);
        if (await send("DELETE", `/${oldest}`)) raise(oldest!, history.indexOf(oldest!, undefined));
      }
    }
  }

  function raise(id: string, index: number): void {
    floors.set(id, Math.max(floors.get(id) ?? -1, index));
  }

  async function watch(): Promise<void> {
    const sql = await fleet.reader(base);
    while (!isOver()) {
      const known = new Map(floors);
      const rows = await sql<{ id: string; token: string }[]>`select id, token from busy`;
      const shown = new Map(rows.map((row) => [row.id, row.token]));
      for (const id of new Set([...known.keys(), ...shown.keys()])) {
        const index = history.indexOf(id, shown.get(id));
        const floor = known.get(id) ?? -1;
        if (index < floor)
          found.push(`${id} shows ${history.show(id, index)} after ${history.show(id, floor)}`);
        else if (shown.has(id) && index < 0) found.push(`${id} shows ${shown.get(id)}, which it never had`);
        raise(id, shown.has(id) ? index : history.leastGone(id, floor));
      }
    }
  }

  const person: Hazard = {
    everyMs: HUMAN_EVERY_MS,
    happen() {
      if (Math.random() < 0.9) {
        control.updateRecords(base.sourceBaseId, table!.id, [{ id: anyId(), fields: { Token: newToken() } }]);
      } else {
        ids.push(...control.createRecords(base.sourceBaseId, table!.id, [{ fields: { Token: newToken() } }]));
        const [oldest] = ids.splice(0, 1);
        control.deleteRecords(base.sourceBaseId, table!.id, [oldest!]);
      }
    },
  };
  const rebuild: Hazard = {
    everyMs: storm.rebuildEveryMs,
    happen: async () => {
      await fleet.ctx.db`update bases set resync_requested_at = now() where id = ${base.id}`;
    },
  };

  const hazards = [person, rebuild, ...(storm.hazards ?? [])].map((hazard) => repeat(hazard, busy, isOver));
  await Promise.all([watch(), ...Array.from({ length: CLIENTS }, (_, number) => client(number)), ...hazards]);
  stopNoting();
  return found;
}

/** @returns their ports */
async function startProxies(
  { ctx, sandbox }: Fleet,
  releases: AsyncDisposableStack,
): Promise<[number, number]> {
  const env = {
    DATABASE_URL: ctx.config.databaseUrl!,
    REPLICA_URL: inject("clusterUrl"),
    SECRET_KEY: ctx.config.secretKey!,
    UPSTREAMS: `api.airtable.com=${sandbox.url},content.airtable.com=${sandbox.url}`,
    LOG_LEVEL: "info",
  };
  const ports: [number, number] = [await freePort(), await freePort()];
  for (const port of ports) {
    const proxy = releases.use(startProgram("apps/proxy/main.ts", [], { ...env, PROXY_PORT: String(port) }));
    await proxy.says("started");
  }
  return ports;
}

/** An edit may hit a record that a client has just deleted; then nothing is edited. */
async function repeat({ everyMs, happen }: Hazard, busy: Busy, isOver: () => boolean): Promise<void> {
  for (let next = performance.now() + everyMs; !isOver(); ) {
    await Bun.sleep(Math.min(100, Math.max(1, next - performance.now())));
    if (performance.now() < next) continue;
    next = performance.now() + everyMs;
    try {
      await happen(busy);
    } catch {
      // See above.
    }
  }
}
