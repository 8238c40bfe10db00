/**
 * The outbox of a replica: transactions that SQL users have committed and that a proxy has made in the source
 * (`sql/replica/write-door.sql`).
 *
 * A transaction is read until it is recorded as taken, so that one whose reader dies is read again. Its id is that of the
 * change set that it becomes, which can be stored once.
 */
import type { ServerUrl } from "../external";
import { ARRAY_TYPES, WATCHED_BY_SERVER } from "../postgres";
import { onReplica, SAFE_SEARCH_PATH, schemasOf } from "./connection";
import type { ReplicaTarget } from "./replica";
import { serverPool } from "./server-pools";
import { writeSchemasOf } from "./write-schemas";

/** Bytes of the transactions that are read at once, unless one alone has more. */
const READ_BYTES = 1_000_000;
/** Transactions that are read at once. */
const READ_TRANSACTIONS = 100;
/** How long a connection is kept while others wait for one, ms. */
const KEPT_MS = 10_000;
/** Transactions that are kept for the log once they have results. */
const MOST_ENDED = 1000;

/** Committed in the replica, and not yet a change set. Everything in it is as the database has it: on a customer's server, that is anything. */
export interface QueuedTransaction {
  set: string;
  ageMs: number;
  role: string;
  applicationName: string;
  note: string;
  typecast: boolean;
  /** JSON. */
  types: string;
  /** JSON of each. */
  operations: string[];
}

/** What became of an operation; `record` is null where the operation has named it. */
export interface OutboxResult {
  state: string;
  record: string | null;
  error: string;
}

/** An operation of a transaction that waits. */
export interface QueuedWrite {
  set: string;
  position: number;
  at: Date;
  role: string;
  applicationName: string;
  note: string;
  table: string;
  recordId: string | null;
  operation: string;
}

export interface Outbox {
  /** Resolves when the connection is lost: nothing is heard from then on. */
  lost: Promise<void>;
  /** The oldest transactions that wait, in the order in which they were committed. */
  queued(): Promise<QueuedTransaction[]>;
  /** The ids of the transactions that are change sets and have no results yet. */
  taken(): Promise<string[]>;
  take(sets: string[]): Promise<void>;
  /** Returns whether transactions are committed to it. */
  isOpen(): Promise<boolean>;
  /** Records the results of a transaction: of each operation in their order, or one of all. Forgets its values. */
  end(set: string, results: OutboxResult[] | OutboxResult): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens the outbox on one connection, which also hears of new transactions.
 *
 * @param onCommit called when a transaction was committed to the outbox
 * @param stop closes the connection
 * @throws BasetideError `replica_unavailable`
 */
export async function openOutbox(
  { url, schema }: ReplicaTarget,
  onCommit: () => void,
  stop: AbortSignal,
): Promise<Outbox> {
  const lost = Promise.withResolvers<void>();
  const pool = poolOf(url, { onnotify: onCommit, onclose: () => lost.resolve() });
  const { sql } = pool;
  const { own } = writeSchemasOf(schema);
  const outbox = sql.unsafe(`${own}.outbox`);
  const close = async () => {
    stop.removeEventListener("abort", close);
    await sql.end({ timeout: 1 });
  };
  stop.addEventListener("abort", close);
  pool.keep(KEPT_MS);
  try {
    await onReplica(() => sql.unsafe("listen basetide_outbox"));
  } catch (error) {
    void close();
    throw error;
  }
  return {
    lost: lost.promise,
    queued: () => onReplica(() => readQueued(sql, outbox)),
    taken: () =>
      onReplica(async () => {
        const rows = await sql<{ set: string }[]>`
          select set_id as "set" from ${outbox} where state = 'taken' order by nth`;
        return rows.map(({ set }) => set);
      }),
    take: (sets) =>
      onReplica(async () => {
        await sql`update ${outbox} set state = 'taken' where set_id = any (${sets}::text[]) and state = 'queued'`;
      }),
    isOpen: () =>
      onReplica(async () => {
        const [found] = await sql.unsafe<{ is_open: boolean }[]>(
          `select s.sql_writes and ${own}.is_queued() as is_open from ${schemasOf(schema).swap}._state as s`,
        );
        return found?.is_open ?? false;
      }),
    end: (set, results) =>
      onReplica(async () => {
        await sql`
          with ended as (
            update ${outbox} set state = 'ended', types = '{}', results = case
                when ${Array.isArray(results)} then ${JSON.stringify(results)}::text::jsonb
                else (select jsonb_agg(${JSON.stringify(results)}::text::jsonb) from jsonb_array_elements(operations)) end,
              operations = (
                select jsonb_agg(jsonb_build_object(
                  'operation', i.intent -> 'operation', 'table', i.intent -> 'table', 'record', i.intent -> 'record') order by i.nth)
                from jsonb_array_elements(operations) with ordinality as i (intent, nth))
            where set_id = ${set} and state <> 'ended')
          delete from ${outbox} where state = 'ended' and nth < (
            select nth from ${outbox} where state = 'ended' order by nth desc offset ${MOST_ENDED} limit 1)`;
      }),
    close,
  };
}

type OutboxSql = ReturnType<typeof poolOf>["sql"];

async function readQueued(
  sql: OutboxSql,
  outbox: ReturnType<OutboxSql["unsafe"]>,
): Promise<QueuedTransaction[]> {
  const heads = await sql<(Omit<QueuedTransaction, "operations"> & { nth: string })[]>`
    select nth::text, set_id as "set", extract(epoch from clock_timestamp() - at)::float8 * 1000 as "ageMs", role::text,
      application_name as "applicationName", note, typecast, types::text
    from (
      select *, sum(bytes) over (order by nth) - bytes as before from ${outbox} where state = 'queued'
      order by nth limit ${READ_TRANSACTIONS}) as o
    where before < ${READ_BYTES} order by o.nth`;
  if (heads.length === 0) return [];
  // As text: each has its own limit of size on the way from a customer's server.
  const rows = await sql<{ nth: string; operation: string }[]>`
    select o.nth::text, i.intent::text as operation
    from ${outbox} as o cross join jsonb_array_elements(o.operations) with ordinality as i (intent, nth)
    where o.nth = any (${heads.map(({ nth }) => nth)}::bigint[]) order by o.nth, i.nth`;
  const operations = Map.groupBy(rows, ({ nth }) => nth);
  return heads.map(({ nth, ...head }) => ({
    ...head,
    operations: (operations.get(nth) ?? []).map(({ operation }) => operation),
  }));
}

/** Lists the rows that wait in the outbox, the newest first. */
export async function listQueuedWrites(
  { url, schema }: ReplicaTarget,
  limit: number,
): Promise<QueuedWrite[]> {
  const { sql } = poolOf(url, { onnotify: () => {}, onclose: () => {} });
  try {
    return await onReplica(
      async () =>
        await sql<QueuedWrite[]>`
          select o.set_id as "set", i.nth::int - 1 as position, o.at, o.role::text, o.application_name as "applicationName",
            o.note, i.intent ->> 'table' as "table", i.intent ->> 'record' as "recordId",
            i.intent ->> 'operation' as operation
          from ${sql.unsafe(`${writeSchemasOf(schema).own}.outbox`)} as o
            cross join jsonb_array_elements(o.operations) with ordinality as i (intent, nth)
          where o.state = 'queued' order by o.nth desc, i.nth limit ${limit}`,
    );
  } finally {
    void sql.end({ timeout: 1 });
  }
}

/** Copies the outbox to another database of the base, whose proxies then have what waits made: each transaction once. */
export async function copyOutbox(from: ReplicaTarget, to: ReplicaTarget): Promise<void> {
  const own = (schema: string) => `${writeSchemasOf(schema).own}.outbox`;
  const columns =
    "set_id, at, role, application_name, note, typecast, types, operations, rows, bytes, state, results";
  const [source, target] = [from, to].map(({ url }) => poolOf(url, { onnotify() {}, onclose() {} }).sql) as [
    OutboxSql,
    OutboxSql,
  ];
  try {
    await onReplica(async () => {
      const rows = await source.unsafe<{ row: string }[]>(
        `select to_jsonb(o)::text as row from ${own(from.schema)} as o order by o.nth`,
      );
      for (const { row } of rows) {
        await target.unsafe(
          `insert into ${own(to.schema)} (${columns})
           select ${columns} from jsonb_populate_record(null::${own(to.schema)}, $1::text::jsonb)
           on conflict (set_id) do nothing`,
          [row],
        );
      }
    });
  } finally {
    await Promise.all([source.end({ timeout: 1 }), target.end({ timeout: 1 })]);
  }
}

function poolOf(url: ServerUrl, hear: { onnotify: () => void; onclose: () => void }) {
  const options = {
    max: 1,
    idle_timeout: null,
    max_lifetime: null,
    fetch_types: false,
    types: ARRAY_TYPES,
    onnotice: () => {},
    connection: { application_name: "basetide", search_path: SAFE_SEARCH_PATH, ...WATCHED_BY_SERVER },
    ...hear,
  };
  return serverPool(url, options as unknown as Parameters<typeof serverPool>[1], { use: "outbox" });
}
