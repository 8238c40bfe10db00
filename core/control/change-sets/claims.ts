/**
 * The sets that a proxy carries out. It holds each by a time that it renews; a set whose proxy has died is taken over
 * with what that proxy had sent. A set that cannot continue is not held: when it is due again, it is claimed as any other, with
 * what the base's key and settings are then.
 *
 * Every record of what was sent is written before the request, and only by the holder, so that no two proxies send one
 * operation.
 */
import type { Context, Db } from "../../context";
import { DAY_MS } from "../../time-units";
import { encryptCells, encryptError, openCells } from "./cells";
import type { ChangeSetState, ItemState } from "./change-sets";
import type { CellValues, OperationKind } from "./operations";

/** A set that could not be sent for this long, ms, ends without the rest. */
export const GIVEN_UP_MS = DAY_MS;
/** How long a proxy holds a set without renewing that. */
export const HELD_FOR = "15 seconds";
/** A proxy that could not renew its hold for this long, ms, takes back what it has not sent: another may have the set soon. */
export const LET_GO_MS = 12_000;
/** Sets of an account that are carried out at once: one that its source keeps waiting delays no other account's. */
const MOST_OF_ACCOUNT = 5;
/** How often it renews it, ms. */
export const RENEW_EVERY_MS = 5000;

/** A set, and the name of a proxy's hold on it. */
export interface SetHold {
  id: string;
  holder: string;
}

export interface HeldSet extends SetHold {
  baseId: string;
  platform: string;
  sourceBaseId: string;
  encryptedApiKey: string;
  typecast: boolean;
  /** A client waits for it, or did: what was not sent is not made later. */
  isAwaited: boolean;
  /** Why it could not continue before; empty if it could. */
  problem: string;
  /** Time since it was approved, ms. */
  decidedAgoMs: number;
}

/** A pause of a set that cannot continue. */
export interface SetRest {
  ms: number;
  /** Shown to people. */
  why: string;
}

export interface HeldItem {
  id: string;
  position: number;
  operation: OperationKind;
  table: string;
  recordId: string | null;
  cells: CellValues | undefined;
  expected: CellValues | undefined;
  /** Of an operation that was sent: the cells that it replaces, if they are known. */
  before?: CellValues | undefined;
  state: ItemState;
  /** Time since it was sent, ms; null: it was not. */
  sentAgoMs: number | null;
}

/** The result of an operation. */
export interface Outcome {
  id: string;
  state: Exclude<ItemState, "sent">;
  recordId?: string | undefined;
  /** Of the written cells, those that the source has in another form. */
  after?: CellValues | undefined;
  errorType?: string;
  error?: string;
}

type Secrets = Pick<Context, "db" | "secrets">;

/**
 * Takes the set that has been due for longest, and that no living proxy holds; of each base the first, one at a time, and none
 * while the base's setting is off. Awaited sets are held by the proxy that has their client: of those that it has left, the rest
 * is settled at once.
 */
export async function claimChangeSet(db: Db): Promise<HeldSet | undefined> {
  // Each hold has a name of its own: a process that stood still may take over from itself.
  const holder = crypto.randomUUID();
  const [set] = await db<HeldSet[]>`
    select s.id, s.base_id as "baseId", b.platform, b.source_base_id as "sourceBaseId",
      b.encrypted_api_key as "encryptedApiKey", s.typecast, s.is_awaited as "isAwaited", s.holder, s.problem,
      extract(epoch from now() - s.decided_at)::float8 * 1000 as "decidedAgoMs"
    from claim_change_set(${holder}, ${HELD_FOR}::interval, ${MOST_OF_ACCOUNT}, ${givenUp(db)}) as s
    join bases as b on b.id = s.base_id`;
  return set;
}

const givenUp = (db: Db) => db`${GIVEN_UP_MS}::float8 * interval '1 millisecond'`;

/**
 * Renews the hold, and stores why the set cannot continue at the moment.
 *
 * @returns its state; undefined if another proxy has it, or the base's setting was turned off
 */
export async function renewChangeSet(
  db: Db,
  { id, holder }: SetHold,
  problem: string,
): Promise<ChangeSetState | undefined> {
  const [set] = await db<{ state: ChangeSetState }[]>`
    update change_sets as s set held_until = now() + ${HELD_FOR}::interval, problem = ${problem}
    from bases as b
    where s.id = ${id} and s.holder = ${holder} and s.ended_at is null and b.id = s.base_id
      and change_set_may_run(s, b, ${givenUp(db)})
    returning s.state`;
  return set?.state;
}

/** Lets go of a set that cannot continue at the moment: it is due again after a pause, for any proxy. */
export async function restChangeSet(db: Db, { id, holder }: SetHold, { ms, why }: SetRest): Promise<void> {
  await db`
    update change_sets
    set holder = null, held_until = null, problem = ${why}, rests_until = now() + ${ms}::float8 * interval '1 millisecond'
    where id = ${id} and holder = ${holder} and ended_at is null`;
}

/** Lets another proxy take the set at once. */
export async function releaseChangeSet(db: Db, { id, holder }: SetHold): Promise<void> {
  await db`update change_sets set holder = null, held_until = null where id = ${id} and holder = ${holder}`;
}

/** Returns whether calls that create records of the table may be under way for other sets of the base: they began in `withinMs`. */
export async function areCreating(
  db: Db,
  { id, baseId }: Pick<HeldSet, "id" | "baseId">,
  table: string,
  withinMs: number,
): Promise<boolean> {
  const [item] = await db`
    select from change_items as i join change_sets as s on s.id = i.set_id
    where s.base_id = ${baseId} and s.id <> ${id} and s.ended_at is null
      and i.state = 'sent' and i.operation = 'create' and i.table_ref = ${table}
      and i.sent_at > now() - ${withinMs}::float8 * interval '1 millisecond'
    limit 1`;
  return item !== undefined;
}

/** Returns the next operations that have no result, in their order: first those that were sent. */
export async function unfinishedItems(
  { db, secrets }: Secrets,
  setId: string,
  limit: number,
): Promise<HeldItem[]> {
  const rows = await db<
    (Omit<HeldItem, "cells" | "expected" | "before"> &
      Record<"cells" | "expected" | "before", string | null>)[]
  >`
    select id, position, operation, table_ref as "table", record_id as "recordId", encrypted_cells as cells,
      encrypted_expected as expected, case when state = 'sent' then encrypted_before end as before, state,
      extract(epoch from clock_timestamp() - sent_at)::float8 * 1000 as "sentAgoMs"
    from change_items where set_id = ${setId} and state in ('waiting', 'sent')
    order by state = 'waiting', position limit ${limit}`;
  return rows.map((row) => ({
    ...row,
    cells: openCells(secrets, row.cells, "cells", row.id),
    expected: openCells(secrets, row.expected, "expected", row.id),
    before: openCells(secrets, row.before, "before", row.id),
  }));
}

/** Returns the records that these creates of the set have made, by position; null: it has not made one. */
export async function madeRecords(
  db: Db,
  setId: string,
  positions: number[],
): Promise<Map<number, string | null>> {
  const rows = await db<{ position: number; recordId: string | null }[]>`
    select position, record_id as "recordId" from change_items
    where set_id = ${setId} and position = any (${positions})`;
  return new Map(rows.map(({ position, recordId }) => [position, recordId]));
}

/**
 * Records that operations are about to be sent, with the cells that they replace.
 *
 * @returns false if they must not be sent: the set was canceled, or another proxy has it
 */
export async function recordSent(
  { db, secrets }: Secrets,
  { id, holder }: SetHold,
  items: { id: string; before: CellValues | undefined }[],
): Promise<boolean> {
  const before = items.map((item) =>
    item.before === undefined ? null : encryptCells(secrets, item.before, "before", item.id),
  );
  const sent = await db`
    with held as materialized (
      select id from change_sets
      where id = ${id} and holder = ${holder} and held_until > now() and state = 'running' for share)
    update change_items as i
    set state = 'sent', sent_at = clock_timestamp(), encrypted_before = coalesce(n.before, i.encrypted_before)
    from held, unnest(${items.map((item) => item.id)}::text[], ${before}::text[]) as n (id, before)
    where i.id = n.id and i.set_id = held.id and i.state in ('waiting', 'sent')`;
  return sent.count === items.length;
}

/** Records the results of operations; those of a canceled set do not wait again. Those that have one keep it. */
export async function recordOutcomes(
  { db, secrets }: Secrets,
  setId: string,
  outcomes: Outcome[],
): Promise<void> {
  const column = (of: (outcome: Outcome) => string | null | undefined) =>
    outcomes.map((one) => of(one) ?? null);
  const errors = column(({ id, error }) => encryptError(secrets, error ?? "", id));
  const after = column((one) => one.after && encryptCells(secrets, one.after, "after", one.id));
  await db`
    with set as materialized (select state from change_sets where id = ${setId} for share)
    update change_items as i
    set record_id = coalesce(n.record_id, i.record_id), error_type = n.error_type, encrypted_error = n.error,
      encrypted_after = coalesce(n.after, i.encrypted_after),
      state = case when n.state = 'waiting' and set.state = 'canceled' then 'not_applied' else n.state end
    from set, unnest(${column(({ id }) => id)}::text[], ${column(({ state }) => state)}::text[],
      ${column(({ recordId }) => recordId)}::text[], ${column(({ errorType }) => errorType ?? "")}::text[],
      ${errors}::text[], ${after}::text[]) as n (id, state, record_id, error_type, error, after)
    where i.id = n.id and i.set_id = ${setId} and i.state in ('waiting', 'sent')`;
}

/** Records that the last operations of the set were applied, as all others were, and ends it: in one statement. */
export async function endApplied(
  { db, secrets }: Secrets,
  { id, holder }: SetHold,
  items: { id: string; recordId: string; after: CellValues | undefined }[],
): Promise<void> {
  const after = items.map((item) => item.after && encryptCells(secrets, item.after, "after", item.id));
  await db`
    with last as (
      update change_items as i
      set record_id = n.record_id, encrypted_after = coalesce(n.after, i.encrypted_after), state = 'applied'
      from unnest(${items.map((item) => item.id)}::text[], ${items.map(({ recordId }) => recordId)}::text[],
        ${after.map((text) => text ?? null)}::text[]) as n (id, record_id, after)
      where i.id = n.id and i.set_id = ${id} and i.state in ('waiting', 'sent'))
    update change_sets set ended_at = now(), holder = null, held_until = null, problem = '', state = 'applied'
    where id = ${id} and holder = ${holder} and ended_at is null`;
}

/** Ends the set, whose operations all have results. */
export async function endChangeSet(db: Db, { id, holder }: SetHold): Promise<void> {
  await db`
    update change_sets as s
    set ended_at = now(), holder = null, held_until = null, problem = '', state = case
      when s.state = 'canceled' then 'canceled'
      when c.applied = c.all then 'applied' when c.applied = 0 and c.unknown = 0 then 'failed' else 'partly' end
    from (select count(*) as "all", count(*) filter (where state = 'applied') as applied,
      count(*) filter (where state = 'unknown') as unknown from change_items where set_id = ${id}) as c
    where s.id = ${id} and s.holder = ${holder} and s.ended_at is null`;
}

/**
 * Returns which of these records other operations on the base are known to have made. One that changes such a record has
 * not: it may have been recorded before it was known who made the record.
 */
export async function knownRecords(db: Db, baseId: string, recordIds: string[]): Promise<Set<string>> {
  const rows = await db<{ id: string }[]>`
    select i.record_id as id from change_items as i join change_sets as s on s.id = i.set_id
    where s.base_id = ${baseId} and i.operation = 'create' and i.record_id = any (${recordIds})`;
  return new Set(rows.map(({ id }) => id));
}

/** An operation that was applied, and what it replaced. */
export interface AppliedItem {
  operation: OperationKind;
  table: string;
  recordId: string;
  cells: CellValues | undefined;
  before: CellValues | undefined;
  /** Of its cells, those that the source had in another form. */
  after: CellValues | undefined;
}

/** Returns the operations of the set that were applied, the last first. */
export async function appliedItems({ db, secrets }: Secrets, setId: string): Promise<AppliedItem[]> {
  const rows = await db<
    (Omit<AppliedItem, "cells" | "before" | "after"> & { id: string } & Record<
        "cells" | "before" | "after",
        string | null
      >)[]
  >`
    select id, operation, table_ref as "table", record_id as "recordId", encrypted_cells as cells,
      encrypted_before as before, encrypted_after as after
    from change_items where set_id = ${setId} and state = 'applied' order by position desc`;
  return rows.map(({ id, ...row }) => ({
    ...row,
    cells: openCells(secrets, row.cells, "cells", id),
    before: openCells(secrets, row.before, "before", id),
    after: openCells(secrets, row.after, "after", id),
  }));
}
