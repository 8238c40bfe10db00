/** Ways to break a base of a fleet, at the source or in its replica, each undone when it is disposed of. */
import type postgres from "postgres";
import { FAULT_KINDS } from "../../apps/sandbox/faults";
import type { Random } from "../../apps/sandbox/random";
import type { Base } from "../../core/control/bases";
import type { Fleet } from "./fleet";

export interface Breakage {
  name: string;
  /** Returns how to undo it. */
  begin(fleet: Fleet, base: Base): Promise<() => Promise<void> | void>;
}

/** What a table's list cannot be told apart from: the source's pause concerns all bases of its user. */
const UNUSABLE = new Set(["empty_list", "repeat_page", "billing_limit", "unauthorized"]);
const KINDS = FAULT_KINDS.filter((kind) => !UNUSABLE.has(kind));

/** Calls of the source that may fail: one table's, the schema, the webhooks, the feed. */
const CALLS = ["table", "schema", "webhooks", "payloads"] as const;

/** Returns a fault of one call, or something in the replica that is in the way. */
export function randomBreakage(random: Random, tables: { id: string; name: string }[]): Breakage {
  return random.int(1, 4) === 1 ? random.pick(inReplica) : atSource(random, random.pick(tables));
}

function atSource(random: Random, table: { id: string; name: string }): Breakage {
  const call = random.pick(CALLS);
  const kind = random.pick(KINDS);
  const matching = {
    table: { table: table.id },
    schema: { path: "meta/bases/[^/]+/tables" },
    webhooks: { path: "/webhooks$" },
    payloads: { path: "/payloads" },
  }[call];
  return {
    name: `${kind} for ${call === "table" ? `the table ${table.name}` : call}`,
    async begin({ sandbox }, { sourceBaseId }) {
      const { id } = sandbox.control.addFault({ ...matching, base: sourceBaseId, kind });
      return () => sandbox.control.clearFaults(id);
    },
  };
}

const inReplica: Breakage[] = [
  { name: "a locked table", begin: (fleet, base) => lockFirstTable(fleet, base) },
  {
    name: "a constraint that refuses rows",
    async begin(fleet, base) {
      const sql = await fleet.owner(base);
      const table = await firstTable(sql);
      await sql.unsafe(`alter table ${table} add constraint refused check (id < 'a') not valid`);
      return async () => void (await sql.unsafe(`alter table ${table} drop constraint if exists refused`));
    },
  },
  {
    name: "a customer's type where a new table belongs",
    async begin(fleet, base) {
      const sql = await fleet.owner(base);
      await sql.unsafe("create type public._arrivals as (a text)");
      return async () => void (await sql.unsafe("drop type if exists public._arrivals"));
    },
  },
];

/** Holds a lock as a customer's long query does. */
async function lockFirstTable(fleet: Fleet, base: Base): Promise<() => Promise<void>> {
  const sql = await fleet.owner(base);
  const table = await firstTable(sql);
  const held = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const holding = sql.begin(async (tx) => {
    await tx.unsafe(`lock table ${table} in share mode`);
    held.resolve();
    await over.promise;
  });
  // A swap may be refused because of the lock, or the service ends the transaction.
  holding.catch(() => held.resolve());
  await held.promise;
  return async () => {
    over.resolve();
    await holding.catch(() => {});
  };
}

async function firstTable(sql: postgres.Sql): Promise<string> {
  const [row] = await sql<{ name: string }[]>`
    select format('public.%I', tablename) as name from pg_tables
    where schemaname = 'public' and tablename not like '\\_%' order by tablename limit 1`;
  return row!.name;
}
